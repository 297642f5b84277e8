/* SPDX-License-Identifier: BSD-3-Clause */
// Sums over channels, and batch norm. A channel is cut into splits; a block
// adds up one of a channel (or of 32 channels that lie side by side), and a
// warp to each channel adds up the splits, in f64.
#include "nn_sets.h"
#include "typed.h"

namespace
{

#define SPLITS_MAX 512
#define SPLIT_MIN  1024 // values of a channel

struct pair {
	float a, b;
};

struct view {
	unsigned outer, channels, inner;

	__device__ unsigned channel(unsigned i) const
	{
		return (inner == 1 ? i : i / inner) % channels;
	}
};

view small(const struct gf_gpu_view *v)
{
	return view{(unsigned)v->outer, (unsigned)v->channels,
		    (unsigned)v->inner};
}

size_t splits_of(const struct gf_gpu_view *v)
{
	const size_t most =
		v->outer < SPLITS_MAX ? v->outer : (size_t)SPLITS_MAX;
	const size_t wanted = v->outer * v->inner / SPLIT_MIN;

	return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

// Op: pair of(unsigned i, unsigned c) const, of value i in channel c.
template <class Op>
__global__ void __launch_bounds__(THREADS)
	sum_planes(Op op, view v, unsigned splits, pair *partial)
{
	__shared__ float words[2][WARPS];
	const unsigned c = blockIdx.x % v.channels;
	const unsigned split = blockIdx.x / v.channels;
	const unsigned per = (v.outer + splits - 1) / splits;
	const unsigned from = split * per < v.outer ? split * per : v.outer;
	const unsigned to = from + per < v.outer ? from + per : v.outer;
	pair sum = {0, 0};

#pragma unroll 4
	for (unsigned k = threadIdx.x; k < (to - from) * v.inner;
	     k += THREADS) {
		const unsigned o = from + k / v.inner, x = k % v.inner;
		const pair one = op.of((o * v.channels + c) * v.inner + x, c);

		sum.a += one.a;
		sum.b += one.b;
	}
	sum.a = block_sum(sum.a, words[0]);
	sum.b = block_sum(sum.b, words[1]);
	if (threadIdx.x == 0)
		partial[split * v.channels + c] = sum;
}

template <class Op>
__global__ void __launch_bounds__(THREADS)
	sum_columns(Op op, view v, unsigned splits, pair *partial)
{
	__shared__ pair sums[WARPS][WARP];
	const unsigned tiles = (v.channels + WARP - 1) / WARP;
	const unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
	const unsigned c = blockIdx.x % tiles * WARP + lane;
	const unsigned split = blockIdx.x / tiles;
	const unsigned per = (v.outer + splits - 1) / splits;
	const unsigned from = split * per < v.outer ? split * per : v.outer;
	const unsigned to = from + per < v.outer ? from + per : v.outer;
	pair sum = {0, 0};

#pragma unroll 4
	for (unsigned o = from + warp; o < (c < v.channels ? to : 0);
	     o += WARPS) {
		const pair one = op.of(o * v.channels + c, c);

		sum.a += one.a;
		sum.b += one.b;
	}
	sums[warp][lane] = sum;
	__syncthreads();
	if (warp > 0 || c >= v.channels)
		return;
	for (unsigned w = 1; w < WARPS; w++) {
		sum.a += sums[w][lane].a;
		sum.b += sums[w][lane].b;
	}
	partial[split * v.channels + c] = sum;
}

// Op: void end(unsigned c, double a, double b) const
template <class Op>
__global__ void __launch_bounds__(THREADS)
	sum_splits(Op op, unsigned channels, unsigned splits,
		   const pair *partial)
{
	const unsigned lane = threadIdx.x % WARP;
	const unsigned c = blockIdx.x * WARPS + threadIdx.x / WARP;
	double a = 0, b = 0;

	for (unsigned k = lane; k < (c < channels ? splits : 0); k += WARP) {
		a += partial[k * channels + c].a;
		b += partial[k * channels + c].b;
	}
	for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
		a += __shfl_xor_sync(ALL, a, lanes);
		b += __shfl_xor_sync(ALL, b, lanes);
	}
	if (lane == 0 && c < channels)
		op.end(c, a, b);
}

template <class Op>
void sums(struct gf_gpu_stream *s, const Op &op, const struct gf_gpu_view *v,
	  void *work)
{
	const unsigned splits = (unsigned)splits_of(v);
	const size_t tiles = blocks_for(v->channels, WARP);
	pair *partial = (pair *)work;

	if (v->inner == 1)
		LAUNCH(sum_columns<Op>, tiles * splits, s, op, small(v), splits,
		       partial);
	else
		LAUNCH(sum_planes<Op>, v->channels * splits, s, op, small(v),
		       splits, partial);
	LAUNCH(sum_splits<Op>, blocks_for(v->channels, WARPS), s, op,
	       (unsigned)v->channels, splits, partial);
}

template <class T> struct plain {
	const T *x;
	float scale, *to;

	__device__ pair of(unsigned i, unsigned) const
	{
		return pair{get(x[i]), 0};
	}
	__device__ void end(unsigned c, double a, double) const
	{
		to[c] = (float)(scale * a);
	}
};

// Around the first value of the channel, so that the squares' difference does
// not cancel where the mean is far from 0.
template <class T> struct statistics {
	const T *x;
	float *saved, *running;
	unsigned channels, inner;
	double count;
	float momentum;

	__device__ float around(unsigned c) const
	{
		return get(x[c * inner]);
	}
	__device__ pair of(unsigned i, unsigned c) const
	{
		const float d = get(x[i]) - around(c);

		return pair{d, d * d};
	}
	__device__ void end(unsigned c, double a, double b) const
	{
		const double d = a / count, v = b / count - d * d;
		const float mean = (float)(around(c) + d);
		const float variance = v < 0 ? 0 : (float)v;
		const float keep = 1 - momentum;
		const float unbias =
			count > 1 ? (float)count / (float)(count - 1) : 1;

		saved[c] = mean;
		saved[channels + c] = variance;
		if (!running)
			return;
		running[c] = keep * running[c] + momentum * mean;
		running[channels + c] = keep * running[channels + c] +
					momentum * unbias * variance;
	}
};

template <class T> struct normalise {
	typedef T type;
	enum { INPUTS = 1 };
	const T *in[1];
	T *out;
	view v;
	const float *mean, *variance, *weight, *bias;
	float epsilon;

	__device__ float of(unsigned i, const float *x) const
	{
		const unsigned c = v.channel(i);
		const float inverse = 1 / sqrtf(variance[c] + epsilon);

		return weight[c] * inverse * (x[0] - mean[c]) + bias[c];
	}
};

// a: of dout, b: of dout * xhat
template <class T> struct gradient_sums {
	const T *x, *dout;
	const float *saved;
	unsigned channels;
	float epsilon, scale, *dweight, *dbias;
	pair *totals;

	__device__ pair of(unsigned i, unsigned c) const
	{
		const float inverse = 1 / sqrtf(saved[channels + c] + epsilon);
		const float d = get(dout[i]);

		return pair{d, d * (get(x[i]) - saved[c]) * inverse};
	}
	__device__ void end(unsigned c, double a, double b) const
	{
		dbias[c] = (float)(scale * a);
		dweight[c] = (float)(scale * b);
		totals[c] = pair{(float)a, (float)b};
	}
};

template <class T, bool Add> struct gradient {
	typedef T type;
	enum { INPUTS = Add ? 3 : 2 };
	const T *in[3];
	T *out;
	view v;
	const float *saved, *weight;
	const pair *totals;
	float epsilon, share; // 1 / values of a channel

	__device__ float of(unsigned i, const float *x) const
	{
		const unsigned c = v.channel(i);
		const float inverse =
			1 / sqrtf(saved[v.channels + c] + epsilon);
		const float xhat = (x[0] - saved[c]) * inverse;
		const float d = weight[c] * inverse *
				(x[1] - totals[c].a * share -
				 xhat * totals[c].b * share);

		return Add ? x[2] + d : d;
	}
};

template <class T> struct biased {
	typedef T type;
	enum { INPUTS = 1 };
	const T *in[1];
	T *out;
	view v;
	const float *bias;

	__device__ float of(unsigned i, const float *x) const
	{
		return x[0] + bias[v.channel(i)];
	}
};

size_t elems(const struct gf_gpu_view *v)
{
	return v->outer * v->channels * v->inner;
}

template <class T>
void norm_statistics(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	sums(s,
	     statistics<T>{(const T *)o->in, o->saved, o->running,
			   (unsigned)o->view.channels, (unsigned)o->view.inner,
			   (double)(o->view.outer * o->view.inner),
			   o->momentum},
	     &o->view, o->work);
}

template <class T, bool Add>
void norm_backward(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	const T *x = (const T *)o->in, *dout = (const T *)o->dout;
	const size_t splits = splits_of(&o->view);
	pair *totals = (pair *)o->work + splits * o->view.channels;
	T *din = (T *)o->din;

	sums(s,
	     gradient_sums<T>{x, dout, o->saved, (unsigned)o->view.channels,
			      (float)o->epsilon, o->scale, o->dweight, o->dbias,
			      totals},
	     &o->view, o->work);
	if (din)
		map(s,
		    gradient<T, Add>{
			    {x, dout, din},
			    din,
			    small(&o->view),
			    o->saved,
			    o->weight,
			    totals,
			    (float)o->epsilon,
			    1 / (float)(o->view.outer * o->view.inner)},
		    elems(&o->view));
}

} // namespace

size_t gf_gpu_sums_work_bytes(const struct gf_gpu_view *v)
{
	return (splits_of(v) + 1) * v->channels * sizeof(pair);
}

void gf_cuda_nn_add_bias(struct gf_gpu_stream *s, const struct gf_gpu_view *v,
			 const float *bias, void *y)
{
	BY_TYPE(v->dtype,
		map(s, biased<T>{{(const T *)y}, (T *)y, small(v), bias},
		    elems(v)));
}

void gf_cuda_nn_channel_sums(struct gf_gpu_stream *s,
			     const struct gf_gpu_view *v, const void *x,
			     float scale, float *to, void *work)
{
	BY_TYPE(v->dtype, sums(s, plain<T>{(const T *)x, scale, to}, v, work));
}

void gf_cuda_nn_norm_statistics(struct gf_gpu_stream *s,
				const struct gf_gpu_norm *o)
{
	BY_TYPE(o->view.dtype, norm_statistics<T>(s, o));
}

void gf_cuda_nn_norm_apply(struct gf_gpu_stream *s, const struct gf_gpu_norm *o,
			   const float *means, const float *variances)
{
	BY_TYPE(o->view.dtype, map(s,
				   normalise<T>{{(const T *)o->in},
						(T *)o->out,
						small(&o->view),
						means,
						variances,
						o->weight,
						o->bias,
						(float)o->epsilon},
				   elems(&o->view)));
}

void gf_cuda_nn_norm_backward(struct gf_gpu_stream *s,
			      const struct gf_gpu_norm *o)
{
	if (o->add)
		BY_TYPE(o->view.dtype, norm_backward<T, true>(s, o));
	else
		BY_TYPE(o->view.dtype, norm_backward<T, false>(s, o));
}
