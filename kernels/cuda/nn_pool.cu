/* SPDX-License-Identifier: BSD-3-Clause */
// Pooling over windows. A thread makes one value, or eight channels of a place
// if they lie side by side: backward asks the windows that saw its place, so
// that nothing is added to by two at once.
#include "nn_sets.h"
#include "typed.h"

namespace
{

__device__ inline void load4(const uint32_t *p, uint32_t *x)
{
	const uint4 v = *reinterpret_cast<const uint4 *>(p);

	x[0] = v.x;
	x[1] = v.y;
	x[2] = v.z;
	x[3] = v.w;
}

__device__ inline void store4(uint32_t *p, const uint32_t *x)
{
	*reinterpret_cast<uint4 *>(p) = make_uint4(x[0], x[1], x[2], x[3]);
}

struct place {
	unsigned plane; // n*channels + c
	int y, x;
};

struct side {
	int begin, end;
};

// Pools with 32-bit sizes.
struct pool {
	bool last; // channels
	unsigned channels;
	int in[2], out[2], kernel[2], stride, pad[2];

	__device__ place of(unsigned i, const int *size) const
	{
		const unsigned area = (unsigned)(size[0] * size[1]);
		unsigned spot, plane;

		if (last) {
			const unsigned row = i / channels;

			spot = row % area;
			plane = row / area * channels + i % channels;
		} else {
			spot = i % area;
			plane = i / area;
		}
		return place{plane, (int)spot / size[1], (int)spot % size[1]};
	}
	__device__ unsigned index(unsigned plane, int y, int x, const int *size) const
	{
		const unsigned area = (unsigned)(size[0] * size[1]);
		const unsigned spot = (unsigned)(y * size[1] + x);

		if (last)
			return (plane / channels * area + spot) * channels + plane % channels;
		return plane * area + spot;
	}
	// What a window sees of the input.
	__device__ side seen(int window, int d) const
	{
		const int begin = window * stride - pad[d];
		const int end = begin + kernel[d];

		return side{begin > 0 ? begin : 0, end < in[d] ? end : in[d]};
	}
	// The windows that see a place of the input.
	__device__ side seeing(int at, int d) const
	{
		const int first = at + pad[d] - kernel[d] + 1;
		const int end = (at + pad[d]) / stride + 1;

		return side{first > 0 ? (first + stride - 1) / stride : 0,
			    end < out[d] ? end : out[d]};
	}
};

template <class T>
__global__ void __launch_bounds__(THREADS)
	max_forward(pool o, const T *in, T *out, uint32_t *at, unsigned n)
{
	const unsigned i = blockIdx.x * THREADS + threadIdx.x;
	float best = 0;
	int best_at = -1;

	if (i >= n)
		return;
	const place p = o.of(i, o.out);
	const side ys = o.seen(p.y, 0), xs = o.seen(p.x, 1);

	for (int y = ys.begin; y < ys.end; y++)
		for (int x = xs.begin; x < xs.end; x++) {
			const float v = get(in[o.index(p.plane, y, x, o.in)]);

			if (best_at < 0 || v > best || (v != v && best == best)) {
				best = v;
				best_at = y * o.in[1] + x;
			}
		}
	set(out + i, best);
	at[i] = (uint32_t)best_at;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
	max_backward(pool o, const T *dout, const uint32_t *at, T *din, bool add, unsigned n)
{
	const unsigned i = blockIdx.x * THREADS + threadIdx.x;

	if (i >= n)
		return;
	const place p = o.of(i, o.in);
	const side ys = o.seeing(p.y, 0), xs = o.seeing(p.x, 1);
	const uint32_t self = (uint32_t)(p.y * o.in[1] + p.x);
	float sum = add ? get(din[i]) : 0;

	for (int y = ys.begin; y < ys.end; y++)
		for (int x = xs.begin; x < xs.end; x++) {
			const unsigned w = o.index(p.plane, y, x, o.out);

			if (at[w] == self)
				sum += get(dout[w]);
		}
	set(din + i, sum);
}

// The same for eight channels that lie side by side; n: values.
struct spot {
	unsigned image, channel; // the first of eight
	int y, x;
};

__device__ spot spot_of(const pool &o, unsigned i, const int *size)
{
	const unsigned groups = o.channels / 8;
	const unsigned area = (unsigned)(size[0] * size[1]);
	const unsigned row = i / groups, at = row % area;

	return spot{row / area, i % groups * 8, (int)at / size[1], (int)at % size[1]};
}

__device__ unsigned index_of(const pool &o, const spot &p, int y, int x, const int *size)
{
	return ((p.image * (unsigned)size[0] + (unsigned)y) * (unsigned)size[1] + (unsigned)x) *
		       o.channels +
	       p.channel;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
	max_forward_wide(pool o, const T *in, T *out, uint32_t *at, unsigned n)
{
	const unsigned i = blockIdx.x * THREADS + threadIdx.x;
	float best[8] = {};
	uint32_t best_at[8] = {};
	bool first = true;

	if (i >= n / 8)
		return;
	const spot p = spot_of(o, i, o.out);
	const side ys = o.seen(p.y, 0), xs = o.seen(p.x, 1);

	for (int y = ys.begin; y < ys.end; y++)
		for (int x = xs.begin; x < xs.end; x++) {
			eight<T> q;

			q.load(in + index_of(o, p, y, x, o.in));
#pragma unroll
			for (unsigned e = 0; e < 8; e++) {
				const float v = q.of(e);

				if (first || v > best[e] || (v != v && best[e] == best[e])) {
					best[e] = v;
					best_at[e] = (uint32_t)(y * o.in[1] + x);
				}
			}
			first = false;
		}
	eight<T>::store(out + 8 * (size_t)i, best);
	store4(at + 8 * (size_t)i, best_at);
	store4(at + 8 * (size_t)i + 4, best_at + 4);
}

template <class T, bool Add>
__global__ void __launch_bounds__(THREADS)
	max_backward_wide(pool o, const T *dout, const uint32_t *at, T *din, unsigned n)
{
	const unsigned i = blockIdx.x * THREADS + threadIdx.x;
	float sum[8] = {};

	if (i >= n / 8)
		return;
	const spot p = spot_of(o, i, o.in);
	const side ys = o.seeing(p.y, 0), xs = o.seeing(p.x, 1);
	const uint32_t self = (uint32_t)(p.y * o.in[1] + p.x);

	if (Add) {
		eight<T> q;

		q.load(din + 8 * (size_t)i);
#pragma unroll
		for (unsigned e = 0; e < 8; e++)
			sum[e] = q.of(e);
	}
	for (int y = ys.begin; y < ys.end; y++)
		for (int x = xs.begin; x < xs.end; x++) {
			const unsigned w = index_of(o, p, y, x, o.out);
			uint32_t from[8];
			eight<T> q;

			load4(at + w, from);
			load4(at + w + 4, from + 4);
			q.load(dout + w);
#pragma unroll
			for (unsigned e = 0; e < 8; e++)
				if (from[e] == self)
					sum[e] += q.of(e);
		}
	eight<T>::store(din + 8 * (size_t)i, sum);
}

template <class T>
__global__ void __launch_bounds__(THREADS) mean_forward(pool o, const T *in, T *out, unsigned n)
{
	const unsigned i = blockIdx.x * THREADS + threadIdx.x;
	float sum = 0;

	if (i >= n)
		return;
	const place p = o.of(i, o.out);
	const side ys = o.seen(p.y, 0), xs = o.seen(p.x, 1);

	for (int y = ys.begin; y < ys.end; y++)
		for (int x = xs.begin; x < xs.end; x++)
			sum += get(in[o.index(p.plane, y, x, o.in)]);
	set(out + i, sum / (float)(o.kernel[0] * o.kernel[1]));
}

template <class T>
__global__ void __launch_bounds__(THREADS)
	mean_backward(pool o, const T *dout, T *din, bool add, unsigned n)
{
	const unsigned i = blockIdx.x * THREADS + threadIdx.x;
	float sum = 0;

	if (i >= n)
		return;
	const place p = o.of(i, o.in);
	const side ys = o.seeing(p.y, 0), xs = o.seeing(p.x, 1);

	for (int y = ys.begin; y < ys.end; y++)
		for (int x = xs.begin; x < xs.end; x++)
			sum += get(dout[o.index(p.plane, y, x, o.out)]);
	sum /= (float)(o.kernel[0] * o.kernel[1]);
	set(din + i, add ? get(din[i]) + sum : sum);
}

pool small(const struct gf_gpu_pool *o)
{
	return pool{o->channels_last,
		    (unsigned)o->channels,
		    {(int)o->in[0], (int)o->in[1]},
		    {(int)o->out[0], (int)o->out[1]},
		    {(int)o->kernel[0], (int)o->kernel[1]},
		    (int)o->stride,
		    {(int)o->pad[0], (int)o->pad[1]}};
}

bool wide(const struct gf_gpu_pool *o)
{
	return o->channels_last && o->channels % 8 == 0;
}

unsigned count(const struct gf_gpu_pool *o, const size_t *size)
{
	return (unsigned)(o->batch * o->channels * size[0] * size[1]);
}

template <class T>
void max_pool(struct gf_gpu_stream *s, const struct gf_gpu_pool *o, const void *in, void *out,
	      uint32_t *at, unsigned n)
{
	if (wide(o))
		LAUNCH(max_forward_wide<T>, blocks_for(n / 8, THREADS), s, small(o), (const T *)in,
		       (T *)out, at, n);
	else
		LAUNCH(max_forward<T>, blocks_for(n, THREADS), s, small(o), (const T *)in, (T *)out,
		       at, n);
}

template <class T>
void max_pool_backward(struct gf_gpu_stream *s, const struct gf_gpu_pool *o, const void *dout,
		       const uint32_t *at, void *din, bool add, unsigned n)
{
	auto adding = max_backward_wide<T, true>;
	auto setting = max_backward_wide<T, false>;

	if (wide(o))
		LAUNCH((add ? adding : setting), blocks_for(n / 8, THREADS), s, small(o),
		       (const T *)dout, at, (T *)din, n);
	else
		LAUNCH(max_backward<T>, blocks_for(n, THREADS), s, small(o), (const T *)dout, at,
		       (T *)din, add, n);
}

} // namespace

void gf_cuda_nn_maxpool(struct gf_gpu_stream *s, const struct gf_gpu_pool *o, const void *in,
			void *out, uint32_t *at)
{
	const unsigned n = count(o, o->out);

	if (n > 0)
		BY_TYPE(o->dtype, max_pool<T>(s, o, in, out, at, n));
}

void gf_cuda_nn_maxpool_backward(struct gf_gpu_stream *s, const struct gf_gpu_pool *o,
				 const void *dout, const uint32_t *at, void *din, bool add)
{
	const unsigned n = count(o, o->in);

	if (n > 0)
		BY_TYPE(o->dtype, max_pool_backward<T>(s, o, dout, at, din, add, n));
}

void gf_cuda_nn_avgpool(struct gf_gpu_stream *s, const struct gf_gpu_pool *o, const void *in,
			void *out)
{
	const unsigned n = count(o, o->out);

	if (n > 0)
		BY_TYPE(o->dtype, LAUNCH(mean_forward<T>, blocks_for(n, THREADS), s, small(o),
					 (const T *)in, (T *)out, n));
}

void gf_cuda_nn_avgpool_backward(struct gf_gpu_stream *s, const struct gf_gpu_pool *o,
				 const void *dout, void *din, bool add)
{
	const unsigned n = count(o, o->in);

	if (n > 0)
		BY_TYPE(o->dtype, LAUNCH(mean_backward<T>, blocks_for(n, THREADS), s, small(o),
					 (const T *)dout, (T *)din, add, n));
}
