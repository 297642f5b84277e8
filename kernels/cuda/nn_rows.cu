/* SPDX-License-Identifier: BSD-3-Clause */
// Layers that look at a row of values at a time, a block to each: layer norm,
// softmax, the loss.
#include "nn_sets.h"
#include "typed.h"

namespace
{

template <class T>
__global__ void __launch_bounds__(THREADS)
	layernorm_kernel(const T *in, T *out, const float *weight,
			 const float *bias, float *saved, unsigned width,
			 float epsilon)
{
	__shared__ float words[WARPS];
	const size_t base = (size_t)blockIdx.x * width;
	float sum = 0, squares = 0;

	for (unsigned i = threadIdx.x; i < width; i += THREADS)
		sum += get(in[base + i]);
	const float mean = block_sum(sum, words) / (float)width;
	for (unsigned i = threadIdx.x; i < width; i += THREADS) {
		const float d = get(in[base + i]) - mean;

		squares += d * d;
	}
	const float inverse =
		1 / sqrtf(block_sum(squares, words) / (float)width + epsilon);
	for (unsigned i = threadIdx.x; i < width; i += THREADS)
		set(out + base + i,
		    weight[i] * (get(in[base + i]) - mean) * inverse + bias[i]);
	if (threadIdx.x == 0) {
		saved[2 * (size_t)blockIdx.x] = mean;
		saved[2 * (size_t)blockIdx.x + 1] = inverse;
	}
}

template <class T>
__global__ void __launch_bounds__(THREADS)
	layernorm_din(const T *in, const T *dout, T *din, const float *weight,
		      const float *saved, unsigned width, bool add)
{
	__shared__ float words[WARPS];
	const size_t base = (size_t)blockIdx.x * width;
	const float mean = saved[2 * (size_t)blockIdx.x];
	const float inverse = saved[2 * (size_t)blockIdx.x + 1];
	float sum = 0, dot = 0;

	for (unsigned i = threadIdx.x; i < width; i += THREADS) {
		const float d = get(dout[base + i]) * weight[i];

		sum += d;
		dot += d * (get(in[base + i]) - mean) * inverse;
	}
	sum = block_sum(sum, words) / (float)width;
	dot = block_sum(dot, words) / (float)width;
	for (unsigned i = threadIdx.x; i < width; i += THREADS) {
		const float xhat = (get(in[base + i]) - mean) * inverse;
		const float d =
			(get(dout[base + i]) * weight[i] - sum - xhat * dot) *
			inverse;

		set(din + base + i, add ? get(din[base + i]) + d : d);
	}
}

// Down the rows: 32 columns to a block, its warps take rows in turn.
template <class T>
__global__ void __launch_bounds__(THREADS)
	layernorm_parameters(const T *in, const T *dout, const float *saved,
			     unsigned rows, unsigned width, float scale,
			     float *dweight, float *dbias)
{
	__shared__ float sums[2][WARPS][WARP];
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	const unsigned c = blockIdx.x * WARP + lane;
	double weight = 0, bias = 0;
	float dot = 0, sum = 0;

	for (unsigned r = warp; r < rows && c < width; r += WARPS) {
		const size_t i = (size_t)r * width + c;
		const float d = get(dout[i]);

		sum += d;
		dot += d * (get(in[i]) - saved[2 * (size_t)r]) *
		       saved[2 * (size_t)r + 1];
	}
	sums[0][warp][lane] = sum;
	sums[1][warp][lane] = dot;
	__syncthreads();
	if (warp > 0 || c >= width)
		return;
	for (unsigned w = 0; w < WARPS; w++) {
		bias += sums[0][w][lane];
		weight += sums[1][w][lane];
	}
	dbias[c] = (float)(scale * bias);
	dweight[c] = (float)(scale * weight);
}

// The largest of a block, NaN left out; words as for block_sum.
__device__ float block_max(float x, float *words)
{
	for (int lanes = WARP / 2; lanes > 0; lanes /= 2)
		x = fmaxf(x, __shfl_xor_sync(ALL, x, lanes));
	__syncthreads();
	if (threadIdx.x % WARP == 0)
		words[threadIdx.x / WARP] = x;
	__syncthreads();
	for (unsigned w = 0; w < WARPS; w++)
		x = fmaxf(x, words[w]);
	return x;
}

template <class T>
__global__ void __launch_bounds__(THREADS) softmax_kernel(T *p, unsigned width)
{
	__shared__ float words[WARPS];
	T *row = p + (size_t)blockIdx.x * width;
	float max = -INFINITY, sum = 0;

	for (unsigned i = threadIdx.x; i < width; i += THREADS)
		max = fmaxf(max, get(row[i]));
	max = block_max(max, words);
	for (unsigned i = threadIdx.x; i < width; i += THREADS)
		sum += expf(get(row[i]) - max);
	sum = block_sum(sum, words);
	for (unsigned i = threadIdx.x; i < width; i += THREADS)
		set(row + i, expf(get(row[i]) - max) / sum);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
	softmax_slope(const T *p, T *dp, float scale, unsigned width)
{
	__shared__ float words[WARPS];
	const size_t base = (size_t)blockIdx.x * width;
	float dot = 0;

	for (unsigned i = threadIdx.x; i < width; i += THREADS)
		dot += get(p[base + i]) * get(dp[base + i]);
	dot = block_sum(dot, words);
	for (unsigned i = threadIdx.x; i < width; i += THREADS)
		set(dp + base + i,
		    scale * get(p[base + i]) * (get(dp[base + i]) - dot));
}

// One row of the loss: its part of the sum, and whether it is right.
template <class T>
__global__ void __launch_bounds__(THREADS)
	loss_rows(const T *logits, const int32_t *labels, T *dlogits,
		  unsigned classes, float scale, double *losses, uint32_t *hits)
{
	__shared__ float words[WARPS];
	__shared__ uint32_t first[THREADS];
	const size_t base = (size_t)blockIdx.x * classes;
	const int32_t label = labels[blockIdx.x];
	const bool known = label >= 0 && (unsigned)label < classes;
	float max = -INFINITY, sum = 0;
	uint32_t at = GF_GPU_NO_INDEX;

	for (unsigned i = threadIdx.x; i < classes; i += THREADS)
		max = fmaxf(max, get(logits[base + i]));
	max = block_max(max, words);
	for (unsigned i = threadIdx.x; i < classes; i += THREADS) {
		const float x = get(logits[base + i]);

		sum += expf(x - max);
		if (at == GF_GPU_NO_INDEX && x == max)
			at = i;
	}
	first[threadIdx.x] = at;
	sum = block_sum(sum, words);
	for (unsigned i = threadIdx.x; i < classes; i += THREADS) {
		const float p = expf(get(logits[base + i]) - max) / sum;

		set(dlogits + base + i,
		    scale * (p - (known && i == (unsigned)label)));
	}
	if (threadIdx.x > 0)
		return;
	for (unsigned t = 1; t < THREADS; t++)
		at = first[t] < at ? first[t] : at;
	losses[blockIdx.x] =
		known ? log((double)sum) -
				(double)(get(logits[base + (size_t)label]) -
					 max)
		      : 0;
	hits[blockIdx.x] = known ? at == (uint32_t)label : 2;
}

__global__ void __launch_bounds__(THREADS)
	loss_end(const int32_t *labels, const double *losses,
		 const uint32_t *hits, unsigned rows, struct gf_gpu_outcome *to)
{
	__shared__ double sums[THREADS];
	__shared__ uint32_t rights[THREADS], wrongs[THREADS];
	uint32_t right = 0, wrong = 0;
	double sum = 0;

	for (unsigned i = threadIdx.x; i < rows; i += THREADS) {
		sum += losses[i];
		right += hits[i] == 1;
		if (hits[i] == 2 && !wrong)
			wrong = i + 1;
	}
	sums[threadIdx.x] = sum;
	rights[threadIdx.x] = right;
	wrongs[threadIdx.x] = wrong;
	__syncthreads();
	if (threadIdx.x > 0)
		return;
	for (unsigned t = 1; t < THREADS; t++) {
		sum += sums[t];
		right += rights[t];
		if (wrongs[t] && (!wrong || wrongs[t] < wrong))
			wrong = wrongs[t];
	}
	to->loss = sum / (double)rows;
	to->correct = right;
	to->bad_label = wrong;
	to->label = wrong ? labels[wrong - 1] : 0;
}

template <class T>
void softmax_loss(struct gf_gpu_stream *s, const struct gf_gpu_loss *o)
{
	double *losses = (double *)o->work;
	uint32_t *hits = (uint32_t *)(losses + o->rows);

	LAUNCH(loss_rows<T>, o->rows, s, (const T *)o->logits, o->labels,
	       (T *)o->dlogits, (unsigned)o->classes, o->scale / (float)o->rows,
	       losses, hits);
	LAUNCH(loss_end, 1, s, o->labels, losses, hits, (unsigned)o->rows,
	       o->outcome);
}

template <class T>
void layernorm_backward(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	const T *in = (const T *)o->in, *dout = (const T *)o->dout;
	const unsigned width = (unsigned)o->view.channels;

	LAUNCH(layernorm_parameters<T>, blocks_for(width, WARP), s, in, dout,
	       o->saved, (unsigned)o->view.outer, width, o->scale, o->dweight,
	       o->dbias);
	if (o->din)
		LAUNCH(layernorm_din<T>, o->view.outer, s, in, dout,
		       (T *)o->din, o->weight, o->saved, width, o->add);
}

} // namespace

void gf_cuda_nn_layernorm(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	BY_TYPE(o->view.dtype,
		LAUNCH(layernorm_kernel<T>, o->view.outer, s, (const T *)o->in,
		       (T *)o->out, o->weight, o->bias, o->saved,
		       (unsigned)o->view.channels, (float)o->epsilon));
}

void gf_cuda_nn_layernorm_backward(struct gf_gpu_stream *s,
				   const struct gf_gpu_norm *o)
{
	BY_TYPE(o->view.dtype, layernorm_backward<T>(s, o));
}

void gf_cuda_nn_softmax(struct gf_gpu_stream *s, enum gf_dtype dtype, void *p,
			size_t rows, size_t width)
{
	BY_TYPE(dtype,
		LAUNCH(softmax_kernel<T>, rows, s, (T *)p, (unsigned)width));
}

void gf_cuda_nn_softmax_backward(struct gf_gpu_stream *s, enum gf_dtype dtype,
				 const void *p, void *dp, float scale,
				 size_t rows, size_t width)
{
	BY_TYPE(dtype, LAUNCH(softmax_slope<T>, rows, s, (const T *)p, (T *)dp,
			      scale, (unsigned)width));
}

void gf_cuda_nn_softmax_loss(struct gf_gpu_stream *s,
			     const struct gf_gpu_loss *o)
{
	BY_TYPE(o->dtype, softmax_loss<T>(s, o));
}
