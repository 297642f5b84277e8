/* SPDX-License-Identifier: BSD-3-Clause */
// Layers that treat every value alone, and those that only move values.
#include "nn_sets.h"
#include "typed.h"

namespace
{

#define SQRT_HALF 0.70710678118654752f
#define DENSITY   0.39894228040143268f // of the normal distribution at 0

template <int F> __device__ float value(float x)
{
	if (F == GF_GPU_RELU)
		return x < 0 ? 0 : x; // NaN stays
	if (F == GF_GPU_TANH)
		return tanhf(x);
	return 0.5f * x * (1 + erff(x * SQRT_HALF));
}

template <int F> __device__ float slope(float kept)
{
	if (F == GF_GPU_RELU)
		return kept > 0 ? 1 : 0;
	if (F == GF_GPU_TANH)
		return 1 - kept * kept;
	return 0.5f * (1 + erff(kept * SQRT_HALF)) + kept * DENSITY * expf(-kept * kept / 2);
}

template <class T, int F> struct forward {
	typedef T type;
	enum { INPUTS = 1 };
	const T *in[1];
	T *out;

	__device__ float of(unsigned, const float *x) const
	{
		return value<F>(x[0]);
	}
};

// A value that is not passed on leaves nothing, whatever its gradient.
template <class T, int F, bool Add> struct backward {
	typedef T type;
	enum { INPUTS = Add ? 3 : 2 };
	const T *in[3];
	T *out;

	__device__ float of(unsigned, const float *x) const
	{
		const float by = slope<F>(x[0]);
		const float d = F == GF_GPU_RELU && by == 0 ? 0 : x[1] * by;

		return Add ? x[2] + d : d;
	}
};

template <class T> struct sum {
	typedef T type;
	enum { INPUTS = 2 };
	const T *in[2];
	T *out;

	__device__ float of(unsigned, const float *x) const
	{
		return x[0] + x[1];
	}
};

template <class T, bool Add> struct masked {
	typedef T type;
	enum { INPUTS = Add ? 2 : 1 };
	const T *in[2];
	T *out;
	const uint8_t *keeps;
	float scale;

	__device__ float of(unsigned i, const float *x) const
	{
		const float kept = keeps[i] ? x[0] * scale : 0;

		return Add ? x[1] + kept : kept;
	}
};

template <class T>
void apply(struct gf_gpu_stream *s, enum gf_gpu_function f, const void *in, void *out, size_t n)
{
	const T *from = (const T *)in;
	T *to = (T *)out;

	if (f == GF_GPU_RELU)
		map(s, forward<T, GF_GPU_RELU>{{from}, to}, n);
	else if (f == GF_GPU_TANH)
		map(s, forward<T, GF_GPU_TANH>{{from}, to}, n);
	else
		map(s, forward<T, GF_GPU_GELU>{{from}, to}, n);
}

template <class T, int F>
void apply_backward(struct gf_gpu_stream *s, const struct gf_gpu_slope *o, size_t n)
{
	const T *kept = (const T *)o->kept, *dout = (const T *)o->dout;
	T *din = (T *)o->din;

	if (o->add)
		map(s, backward<T, F, true>{{kept, dout, din}, din}, n);
	else
		map(s, backward<T, F, false>{{kept, dout, NULL}, din}, n);
}

// A tile goes through shared memory, so that both sides are walked in order.
#define TILE 32

template <class From, class To>
__global__ void __launch_bounds__(THREADS)
	permute_kernel(const From *from, To *to, unsigned a, unsigned b, float scale)
{
	__shared__ float tile[TILE][TILE + 1];
	const unsigned columns = (b + TILE - 1) / TILE;
	const unsigned rows = (a + TILE - 1) / TILE;
	const unsigned at = blockIdx.x % (columns * rows);
	const size_t base = (size_t)(blockIdx.x / (columns * rows)) * a * b;
	const unsigned i0 = at / columns * TILE, j0 = at % columns * TILE;
	const unsigned lane = threadIdx.x % TILE;

	for (unsigned k = threadIdx.x / TILE; k < TILE; k += THREADS / TILE)
		if (i0 + k < a && j0 + lane < b)
			tile[k][lane] = get(from[base + (size_t)(i0 + k) * b + j0 + lane]);
	__syncthreads();
	for (unsigned k = threadIdx.x / TILE; k < TILE; k += THREADS / TILE)
		if (j0 + k < b && i0 + lane < a)
			set(to + base + (size_t)(j0 + k) * a + i0 + lane, scale * tile[lane][k]);
}

// Few rows, as of an image's colours: a thread has some columns of them.
#define NARROW 4

template <class From, class To>
__global__ void __launch_bounds__(THREADS)
	narrow_kernel(const From *from, To *to, unsigned outer, unsigned a, unsigned b, float scale)
{
	const unsigned first = blockIdx.x * (THREADS * 4) + threadIdx.x;
	float x[4][NARROW];

#pragma unroll
	for (unsigned u = 0; u < 4; u++) {
		const unsigned i = first + u * THREADS, o = i / b;

#pragma unroll
		for (unsigned k = 0; k < NARROW; k++)
			if (i < outer * b && k < a)
				x[u][k] = get(from[((size_t)o * a + k) * b + i - o * b]);
	}
#pragma unroll
	for (unsigned u = 0; u < 4; u++) {
		const unsigned i = first + u * THREADS;

#pragma unroll
		for (unsigned k = 0; k < NARROW; k++)
			if (i < outer * b && k < a)
				set(to + (size_t)i * a + k, scale * x[u][k]);
	}
}

template <class From, class To>
__global__ void __launch_bounds__(THREADS)
	convert_kernel(const From *from, To *to, unsigned n, float scale)
{
	const unsigned i = blockIdx.x * (THREADS * 4) + threadIdx.x;

#pragma unroll
	for (unsigned u = 0; u < 4; u++)
		if (i + u * THREADS < n)
			set(to + i + u * THREADS, scale * get(from[i + u * THREADS]));
}

template <class From, class To>
void permute(struct gf_gpu_stream *s, const struct gf_gpu_permute *p)
{
	const From *from = (const From *)p->from;
	To *to = (To *)p->to;
	const size_t n = p->outer * p->a * p->b;
	const size_t tiles = blocks_for(p->a, TILE) * blocks_for(p->b, TILE);
	auto straight = convert_kernel<From, To>;
	auto across = permute_kernel<From, To>;
	auto narrow = narrow_kernel<From, To>;

	if (n == 0)
		return;
	if (p->a == 1 || p->b == 1)
		LAUNCH(straight, blocks_for(n, (size_t)THREADS * 4), s, from, to, (unsigned)n,
		       p->scale);
	else if (p->a <= NARROW)
		LAUNCH(narrow, blocks_for(p->outer * p->b, THREADS * 4), s, from, to,
		       (unsigned)p->outer, (unsigned)p->a, (unsigned)p->b, p->scale);
	else
		LAUNCH(across, p->outer * tiles, s, from, to, (unsigned)p->a, (unsigned)p->b,
		       p->scale);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
	rows_kernel(const T *from, T *to, unsigned n, unsigned width, size_t from_step,
		    size_t to_step, bool add)
{
	const unsigned first = blockIdx.x * (THREADS * 4) + threadIdx.x;

#pragma unroll
	for (unsigned u = 0; u < 4; u++) {
		const unsigned i = first + u * THREADS;
		const unsigned row = i / width, column = i - row * width;
		T *at = to + row * to_step + column;
		float x;

		if (i >= n)
			return;
		x = get(from[row * from_step + column]);
		set(at, add ? get(*at) + x : x);
	}
}

} // namespace

void gf_cuda_nn_apply(struct gf_gpu_stream *s, enum gf_dtype dtype, enum gf_gpu_function function,
		      const void *in, void *out, size_t n)
{
	BY_TYPE(dtype, apply<T>(s, function, in, out, n));
}

void gf_cuda_nn_apply_backward(struct gf_gpu_stream *s, const struct gf_gpu_slope *o, size_t n)
{
	if (o->function == GF_GPU_RELU)
		BY_TYPE(o->dtype, apply_backward<T, GF_GPU_RELU>(s, o, n));
	else if (o->function == GF_GPU_TANH)
		BY_TYPE(o->dtype, apply_backward<T, GF_GPU_TANH>(s, o, n));
	else
		BY_TYPE(o->dtype, apply_backward<T, GF_GPU_GELU>(s, o, n));
}

void gf_cuda_nn_sum(struct gf_gpu_stream *s, enum gf_dtype dtype, const void *a, const void *b,
		    void *out, size_t n)
{
	BY_TYPE(dtype, map(s, sum<T>{{(const T *)a, (const T *)b}, (T *)out}, n));
}

void gf_cuda_nn_permute(struct gf_gpu_stream *s, const struct gf_gpu_permute *p)
{
	if (p->from_type == GF_F32)
		BY_TYPE(p->to_type, permute<float, T>(s, p));
	else if (p->to_type == GF_F32)
		BY_TYPE(p->from_type, permute<T, float>(s, p));
	else
		BY_TYPE(p->to_type, permute<T, T>(s, p));
}

void gf_cuda_nn_copy_rows(struct gf_gpu_stream *s, const struct gf_gpu_rows *r)
{
	const size_t n = r->rows * r->width;

	if (n > 0)
		BY_TYPE(r->dtype, LAUNCH(rows_kernel<T>, blocks_for(n, (size_t)THREADS * 4), s,
					 (const T *)r->from, (T *)r->to, (unsigned)n,
					 (unsigned)r->width, r->from_step, r->to_step, r->add));
}

void gf_cuda_nn_keep(struct gf_gpu_stream *s, enum gf_dtype dtype, const uint8_t *keeps,
		     float scale, const void *from, void *to, bool add, size_t n)
{
	if (add)
		BY_TYPE(dtype,
			map(s, masked<T, true>{{(const T *)from, (T *)to}, (T *)to, keeps, scale},
			    n));
	else
		BY_TYPE(dtype,
			map(s, masked<T, false>{{(const T *)from, NULL}, (T *)to, keeps, scale},
			    n));
}
