/* SPDX-License-Identifier: BSD-3-Clause */
// Pooling over windows. A thread makes one value, or eight channels of a place
// if they lie side by side: backward asks the windows that saw its place, so
// that nothing is added to by two at once.
#include "nn_sets.h"
#include "typed.h"

namespace
{

// One value, as eight<T> are eight.
template <class T> struct one {
	T value;

	__device__ void load(const T *p)
	{
		value = *p;
	}
	__device__ float of(unsigned) const
	{
		return get(value);
	}
	static __device__ void store(T *p, const float *x)
	{
		set(p, *x);
	}
};

// The places that N neighbours come from.
template <unsigned N> struct alignas(N == 1 ? 4 : 16) origins {
	uint32_t of[N];
};

struct place {
	unsigned image, channel;
	int y, x;
};

struct side {
	int begin, end;
};

// Pools with 32-bit sizes. Eight values lie side by side where channels are last.
struct pool {
	bool last; // channels
	unsigned channels;
	int in[2], out[2], kernel[2], stride, pad[2];

	__device__ place of(unsigned i, const int *size) const
	{
		const unsigned area = (unsigned)(size[0] * size[1]);
		const unsigned outer = i / (last ? channels : area),
			       inner = i % (last ? channels : area);
		const unsigned spot = last ? outer % area : inner;

		return place{outer / (last ? area : channels), last ? inner : outer % channels,
			     (int)spot / size[1], (int)spot % size[1]};
	}
	__device__ unsigned index(const place &p, int y, int x, const int *size) const
	{
		const unsigned plane = last ? p.image : p.image * channels + p.channel;
		const unsigned at =
			(plane * (unsigned)size[0] + (unsigned)y) * (unsigned)size[1] + (unsigned)x;

		return last ? at * channels + p.channel : at;
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

template <class T, template <class> class Values, unsigned N>
__global__ void __launch_bounds__(THREADS)
	max_forward(pool o, const T *in, T *out, uint32_t *at, unsigned n)
{
	const unsigned t = blockIdx.x * THREADS + threadIdx.x, i = t * N;
	float best[N] = {};
	origins<N> best_at = {};
	bool first = true;

	if (t >= n / N)
		return;
	o.last |= N > 1;
	const place p = o.of(i, o.out);
	const side ys = o.seen(p.y, 0), xs = o.seen(p.x, 1);

	for (int y = ys.begin; y < ys.end; y++)
		for (int x = xs.begin; x < xs.end; x++) {
			Values<T> q;

			q.load(in + o.index(p, y, x, o.in));
#pragma unroll
			for (unsigned e = 0; e < N; e++) {
				const float v = q.of(e);

				if (first || v > best[e] || (v != v && best[e] == best[e])) {
					best[e] = v;
					best_at.of[e] = (uint32_t)(y * o.in[1] + x);
				}
			}
			first = false;
		}
	Values<T>::store(out + i, best);
	*reinterpret_cast<origins<N> *>(at + i) = best_at;
}

template <class T, template <class> class Values, unsigned N>
__global__ void __launch_bounds__(THREADS)
	max_backward(pool o, const T *dout, const uint32_t *at, T *din, bool add, unsigned n)
{
	const unsigned t = blockIdx.x * THREADS + threadIdx.x, i = t * N;
	float sum[N] = {};
	Values<T> q;

	if (t >= n / N)
		return;
	o.last |= N > 1;
	const place p = o.of(i, o.in);
	const side ys = o.seeing(p.y, 0), xs = o.seeing(p.x, 1);
	const uint32_t self = (uint32_t)(p.y * o.in[1] + p.x);

	if (add) {
		q.load(din + i);
#pragma unroll
		for (unsigned e = 0; e < N; e++)
			sum[e] = q.of(e);
	}
	for (int y = ys.begin; y < ys.end; y++)
		for (int x = xs.begin; x < xs.end; x++) {
			const unsigned w = o.index(p, y, x, o.out);
			const origins<N> from = *reinterpret_cast<const origins<N> *>(at + w);

			q.load(dout + w);
#pragma unroll
			for (unsigned e = 0; e < N; e++)
				if (from.of[e] == self)
					sum[e] += q.of(e);
		}
	Values<T>::store(din + i, sum);
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
			sum += get(in[o.index(p, y, x, o.in)]);
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
			sum += get(dout[o.index(p, y, x, o.out)]);
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
	auto by_eight = max_forward<T, eight, 8>;
	auto by_one = max_forward<T, one, 1>;

	LAUNCH((wide(o) ? by_eight : by_one), blocks_for(wide(o) ? n / 8 : n, THREADS), s, small(o),
	       (const T *)in, (T *)out, at, n);
}

template <class T>
void max_pool_backward(struct gf_gpu_stream *s, const struct gf_gpu_pool *o, const void *dout,
		       const uint32_t *at, void *din, bool add, unsigned n)
{
	auto by_eight = max_backward<T, eight, 8>;
	auto by_one = max_backward<T, one, 1>;

	LAUNCH((wide(o) ? by_eight : by_one), blocks_for(wide(o) ? n / 8 : n, THREADS), s, small(o),
	       (const T *)dout, at, (T *)din, add, n);
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
