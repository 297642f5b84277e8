/* SPDX-License-Identifier: BSD-3-Clause */
// Each kernel's rate as a share of what a copy within the device reaches, and
// top-k beside sorting with CUB: all in one run, medians of event times.
//	bench_kernels [ELEMENTS [rows]]
// With `rows` it measures layer norm, softmax, the loss and embeddings alone.
// Needs a GPU and its driver; 26 bytes of device memory per element.
#include <cub/device/device_radix_sort.cuh>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "gf_gpu_nn_kernels.h"

#define TRY(call)                                                                                  \
	do {                                                                                       \
		cudaError_t status_ = (call);                                                      \
		if (status_ != cudaSuccess) {                                                      \
			printf("%s: %s\n", #call, cudaGetErrorString(status_));                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define ROUNDS  20
#define WARMUPS 3
#define CHUNK   32000
#define DENSITY 0.001

namespace
{

cudaStream_t stream;
cudaEvent_t before, after;
const struct gf_gpu_kernels *gpu = &gf_gpu_kernels_cuda;
double copy_rate;

struct gf_gpu_stream *s()
{
	return reinterpret_cast<struct gf_gpu_stream *>(stream);
}

template <class T> T *room(size_t count)
{
	void *p;

	TRY(cudaMalloc(&p, count * sizeof(T)));
	return static_cast<T *>(p);
}

double median_s(const std::function<void()> &run)
{
	std::vector<float> ms(ROUNDS);

	for (int i = -WARMUPS; i < ROUNDS; i++) {
		float took;

		TRY(cudaEventRecord(before, stream));
		run();
		TRY(cudaEventRecord(after, stream));
		TRY(cudaEventSynchronize(after));
		TRY(cudaEventElapsedTime(&took, before, after));
		if (i >= 0)
			ms[i] = took;
	}
	TRY(cudaGetLastError());
	std::sort(ms.begin(), ms.end());
	return ms[ROUNDS / 2] * 1e-3;
}

void report_beside(const char *name, double bytes, double rate, const std::function<void()> &run)
{
	const double seconds = median_s(run);

	printf("%-22s %9.3f ms %8.0f GB/s %6.1f %%\n", name, seconds * 1e3, bytes / seconds / 1e9,
	       100 * bytes / seconds / rate);
}

void report(const char *name, double bytes, const std::function<void()> &run)
{
	report_beside(name, bytes, copy_rate, run);
}

// Bytes a second, read and written.
double copied_per_s(float *to, const float *from, size_t count)
{
	return 8.0 * (double)count / median_s([&] {
		       TRY(cudaMemcpyAsync(to, from, 4 * count, cudaMemcpyDeviceToDevice, stream));
	       });
}

// Normal enough: sums of uniform bits, some of them large.
__global__ void draw(float *x, size_t n, uint32_t seed)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		uint64_t h = (i + seed) * 0x9e3779b97f4a7c15u;

		h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;
		h ^= h >> 29;
		x[i] = ((float)(h & 0xffff) + (float)(h >> 16 & 0xffff) +
			(float)(h >> 32 & 0xffff) + (float)(h >> 48)) /
			       65536.0f -
		       2.0f;
	}
}

__global__ void keys_of(const float *x, uint32_t *key, uint32_t *index, size_t n)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x) {
		key[i] = __float_as_uint(x[i]) & 0x7fffffff;
		index[i] = (uint32_t)i;
	}
}

struct arrays {
	size_t n;
	float *x, *y, *z;
	uint16_t *h;
	uint8_t *q;
	uint32_t *flag;
};

void streaming(const arrays &a)
{
	const struct gf_sgd_step step = {0.1f, 0.9f, 1e-4f, 0.5f, 0};
	const double n = (double)a.n;
	double *norms = room<double>(a.n / CHUNK + 1);
	double *squares = room<double>(gf_gpu_clip_work_bytes(a.n) / 8);

	report("add", 12 * n, [&] { gpu->add_f32(s(), a.z, a.x, a.n); });
	report("scale", 8 * n, [&] { gpu->scale_f32(s(), .5f, a.x, a.z, a.n); });
	report("sgd", 20 * n, [&] { gpu->sgd_f32(s(), &step, NULL, a.x, a.y, a.z, a.n); });
	report("clip", 4 * n, [&] {
		const struct gf_gpu_clip o = {.5, 1, squares};

		gpu->clip_f32(s(), &o, a.x, a.n, (float *)a.flag);
	});
	report("nonfinite", 4 * n, [&] { gpu->nonfinite_f32(s(), a.x, a.flag, a.n); });
	report("chunk norms", 4 * n,
	       [&] { gpu->chunk_norms_f32(s(), a.x, NULL, a.n, CHUNK, norms); });
	report("chunk norms, adding", 12 * n,
	       [&] { gpu->chunk_norms_f32(s(), a.z, a.x, a.n, CHUNK, norms); });
	report("f16 encode", 6 * n,
	       [&] { gpu->codecs[GF_CODEC_F16].encode(s(), a.h, a.x, a.n, 0); });
	report("f16 decode", 6 * n,
	       [&] { gpu->codecs[GF_CODEC_F16].decode(s(), a.z, a.h, a.n, 0); });
	report("f16 decode, adding", 10 * n,
	       [&] { gpu->codecs[GF_CODEC_F16].decode_add(s(), a.z, a.h, a.n, 0); });
	report("bf16 encode", 6 * n,
	       [&] { gpu->codecs[GF_CODEC_BF16].encode(s(), a.h, a.x, a.n, 0); });
	report("bf16 decode, adding", 10 * n,
	       [&] { gpu->codecs[GF_CODEC_BF16].decode_add(s(), a.z, a.h, a.n, 0); });
	report("trunc16 encode", 6 * n,
	       [&] { gpu->codecs[GF_CODEC_TRUNC16].encode(s(), a.h, a.x, a.n, 0); });
	report("q8 encode", 5 * n,
	       [&] { gpu->codecs[GF_CODEC_Q8].encode(s(), a.q, a.x, a.n, 1024); });
	report("q8 decode", 5 * n,
	       [&] { gpu->codecs[GF_CODEC_Q8].decode(s(), a.z, a.q, a.n, 1024); });
	report("fp8 encode", 5 * n,
	       [&] { gpu->codecs[GF_CODEC_FP8].encode(s(), a.q, a.x, a.n, 128); });
	report("fp8 decode", 5 * n,
	       [&] { gpu->codecs[GF_CODEC_FP8].decode(s(), a.z, a.q, a.n, 128); });
	report("fp8 decode, adding", 9 * n,
	       [&] { gpu->codecs[GF_CODEC_FP8].decode_add(s(), a.z, a.q, a.n, 128); });
	report("fp4 encode", 4.5 * n,
	       [&] { gpu->codecs[GF_CODEC_FP4].encode(s(), a.q, a.x, a.n, 32); });
	report("fp4 decode", 4.5 * n,
	       [&] { gpu->codecs[GF_CODEC_FP4].decode(s(), a.z, a.q, a.n, 32); });
	report("fp4 decode, adding", 8.5 * n,
	       [&] { gpu->codecs[GF_CODEC_FP4].decode_add(s(), a.z, a.q, a.n, 32); });
	report("q8 decode, adding", 9 * n,
	       [&] { gpu->codecs[GF_CODEC_Q8].decode_add(s(), a.z, a.q, a.n, 1024); });
	TRY(cudaFree(norms));
}

// One chunk in ten.
void chunks(const arrays &a)
{
	std::vector<uint32_t> list;
	std::vector<uint8_t> sent(a.n / CHUNK + 1);
	uint32_t *on_device;
	uint8_t *sent_on_device = room<uint8_t>(sent.size());
	double moved;

	for (uint32_t c = 0; (size_t)(c + 1) * CHUNK <= a.n; c += 10) {
		list.push_back(c);
		sent[c] = 1;
	}
	on_device = room<uint32_t>(list.size() + 1);
	TRY(cudaMemcpy(on_device, list.data(), list.size() * 4, cudaMemcpyHostToDevice));
	TRY(cudaMemcpy(sent_on_device, sent.data(), sent.size(), cudaMemcpyHostToDevice));
	moved = 8.0 * CHUNK * (double)list.size();
	// a tenth of the values: beside a copy of as many
	report_beside("gather chunks", moved, copied_per_s(a.z, a.x, CHUNK * list.size()), [&] {
		gpu->gather_chunks_f32(s(), a.z, a.x, a.n, CHUNK, on_device, list.size());
	});
	report("keep chunks", 4.0 * (double)a.n * 1.9, [&] {
		gpu->keep_chunks_f32(s(), nullptr, a.z, a.x, a.n, CHUNK, sent_on_device, 1);
	});
	TRY(cudaFree(on_device));
	TRY(cudaFree(sent_on_device));
}

// Sorting is what CUB offers for the k largest of so many with their places.
double sort_s(const arrays &a)
{
	uint32_t *key = room<uint32_t>(a.n), *index = room<uint32_t>(a.n);
	uint32_t *key_out = reinterpret_cast<uint32_t *>(a.y);
	uint32_t *index_out = reinterpret_cast<uint32_t *>(a.z);
	size_t bytes = 0;
	void *work;
	double seconds;

	TRY(cub::DeviceRadixSort::SortPairsDescending(NULL, bytes, key, key_out, index, index_out,
						      (int)a.n, 0, 31, stream));
	TRY(cudaMalloc(&work, bytes));
	seconds = median_s([&] {
		keys_of<<<2048, 256, 0, stream>>>(a.x, key, index, a.n);
		TRY(cub::DeviceRadixSort::SortPairsDescending(work, bytes, key, key_out, index,
							      index_out, (int)a.n, 0, 31, stream));
	});
	TRY(cudaFree(work));
	TRY(cudaFree(key));
	TRY(cudaFree(index));
	return seconds;
}

void topk(const arrays &a)
{
	const size_t k = std::max<size_t>(1, (size_t)(DENSITY * (double)a.n));
	const size_t bytes = gf_gpu_topk_work_bytes(a.n);
	struct gf_gpu_topk t = {a.x, NULL, a.n, k, room<uint32_t>(k), room<uint8_t>(bytes)};
	double own_s, cub_s;

	report("topk", 4.0 * (double)a.n, [&] { gpu->topk_f32(s(), &t); });
	own_s = median_s([&] { gpu->topk_f32(s(), &t); });
	TRY(cudaFree(t.work));
	cub_s = sort_s(a);
	printf("topk of %zu, k %zu: %.3f ms; CUB's sort: %.3f ms, %.1f times as long\n", a.n, k,
	       own_s * 1e3, cub_s * 1e3, cub_s / own_s);
	t.work = room<uint8_t>(bytes);
	t.add = a.z;
	TRY(cudaMemset(a.z, 0, a.n * sizeof(float)));
	report("topk, adding", 12.0 * (double)a.n, [&] { gpu->topk_f32(s(), &t); });
	TRY(cudaFree(t.work));
	TRY(cudaFree(t.index));
}

// --- rows of values, in f16
// --------------------------------------------------- As large as
// tests/gpu/rows_torch.py has them, which prints the same names.

__global__ void draw_numbers(float *x, size_t n, uint32_t below)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		x[i] = (float)(((uint32_t)i * 2654435761u >> 8) % below);
}

#define WIDTH   768
#define SCORES  1024
#define CLASSES 128

const struct gf_gpu_nn_kernels *nn = &gf_gpu_nn_kernels_cuda;

void report_rows(const char *name, double bytes, const std::function<void()> &run)
{
	const double seconds = median_s(run);

	printf("rows: %s: %.3f ms, %.0f GB/s, %.1f %% of a copy\n", name, seconds * 1e3,
	       bytes / seconds / 1e9, 100 * bytes / seconds / copy_rate);
}

void embeddings(const arrays &a, uint32_t entries)
{
	const size_t count = a.n / WIDTH;
	const double n = (double)(count * WIDTH), table = 4.0 * entries * WIDTH;
	float *numbers = room<float>(count);
	float *weight = room<float>((size_t)entries * WIDTH);
	float *dweight = room<float>((size_t)entries * WIDTH);
	const struct gf_gpu_embedding e = {GF_F16, numbers, count, 1, WIDTH, entries, 1, false};
	void *work = room<char>(gf_gpu_embed_work_bytes(&e) + 1);
	auto *outcome = room<struct gf_gpu_outcome>(1);
	char name[64];

	draw_numbers<<<2048, 256, 0, stream>>>(numbers, count, entries);
	snprintf(name, sizeof(name), "embedding of %u", entries);
	report_rows(name, 2 * n + table, [&] { nn->embed(s(), &e, weight, a.z, outcome); });
	snprintf(name, sizeof(name), "embedding of %u, backward", entries);
	report_rows(name, 2 * n + table,
		    [&] { nn->embed_backward(s(), &e, a.y, 1, dweight, work); });
	TRY(cudaFree(numbers));
	TRY(cudaFree(weight));
	TRY(cudaFree(dweight));
	TRY(cudaFree(work));
	TRY(cudaFree(outcome));
}

void layernorm(const arrays &a)
{
	const size_t rows = a.n / WIDTH;
	const double n = (double)(rows * WIDTH);
	struct gf_gpu_norm o = {};

	o.view = {GF_F16, rows, WIDTH, 1};
	o.epsilon = 1e-5;
	o.weight = room<float>(WIDTH);
	o.bias = room<float>(WIDTH);
	o.dweight = room<float>(WIDTH);
	o.dbias = room<float>(WIDTH);
	o.saved = room<float>(2 * rows);
	o.in = a.x;
	o.dout = a.y;
	o.out = o.din = a.z;
	o.scale = 1;
	o.work = room<char>(gf_gpu_sums_work_bytes(&o.view));
	report_rows("layer norm", 4 * n, [&] { nn->layernorm(s(), &o); });
	report_rows("layer norm, backward", 6 * n, [&] { nn->layernorm_backward(s(), &o); });
}

void softmax(const arrays &a, bool causal)
{
	const size_t rows = a.n / SCORES / SCORES * SCORES;
	const double n = (double)(rows * SCORES);
	const struct gf_gpu_scores o = {GF_F16, a.z, a.y, 0.125f, rows, SCORES, causal};

	// half of what is causal is not read
	report_rows(causal ? "causal softmax" : "softmax", (causal ? 3 : 4) * n,
		    [&] { nn->softmax(s(), &o); });
	report_rows(causal ? "causal softmax, backward" : "softmax, backward", (causal ? 4 : 6) * n,
		    [&] { nn->softmax_backward(s(), &o); });
}

void loss(const arrays &a)
{
	const size_t rows = a.n / CLASSES;
	struct gf_gpu_loss o = {};

	o.dtype = GF_F16;
	o.logits = a.x;
	o.dlogits = a.z;
	o.labels = room<int32_t>(rows);
	o.rows = o.counted = rows;
	o.no_label = -1;
	o.classes = CLASSES;
	o.scale = 1;
	o.work = room<char>(12 * rows);
	o.outcome = room<struct gf_gpu_outcome>(1);
	TRY(cudaMemset((void *)o.labels, 0, 4 * rows));
	report_rows("loss", 4.0 * (double)(rows * CLASSES), [&] { nn->softmax_loss(s(), &o); });
}

// Overwrites x, y and z with values of f16.
void rows(const arrays &a)
{
	for (float *to : {a.x, a.y, a.z}) {
		gpu->codecs[GF_CODEC_F16].encode(s(), a.h, to, a.n, 0);
		TRY(cudaMemcpyAsync(to, a.h, 2 * a.n, cudaMemcpyDeviceToDevice, stream));
	}
	layernorm(a);
	softmax(a, false);
	softmax(a, true);
	loss(a);
	embeddings(a, 128);
	embeddings(a, 50257);
}

} // namespace

int main(int argc, char **argv)
{
	const size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000000;
	struct cudaDeviceProp p;
	int devices = 0;
	arrays a;

	if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
		printf("no GPU that CUDA can use\n");
		return 77;
	}
	if (n < 100000 || n > 2000000000) {
		printf("want 100000 to 2000000000 elements\n");
		return 2;
	}
	TRY(cudaGetDeviceProperties(&p, 0));
	TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	TRY(cudaEventCreate(&before));
	TRY(cudaEventCreate(&after));
	a = arrays{n,
		   room<float>(n),
		   room<float>(n),
		   room<float>(n),
		   room<uint16_t>(n),
		   room<uint8_t>(n + (n / 1024 + 1) * 4),
		   room<uint32_t>(1)};
	draw<<<2048, 256, 0, stream>>>(a.x, n, 1);
	draw<<<2048, 256, 0, stream>>>(a.y, n, 2);
	draw<<<2048, 256, 0, stream>>>(a.z, n, 3);
	copy_rate = copied_per_s(a.z, a.x, n);
	printf("%s, %zu elements; a copy within the device: %.0f GB/s\n", p.name, n,
	       copy_rate / 1e9);
	if (argc > 2) {
		rows(a);
		return 0;
	}
	streaming(a);
	chunks(a);
	topk(a);
	return 0;
}
