/* SPDX-License-Identifier: BSD-3-Clause */
// Layers that look at a row of values as a whole: layer norm and softmax.
#include "channels.h"
#include "nn_sets.h"
#include "rows.h"

namespace
{

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	layernorm_kernel(const T *in, T *out, const float *weight, const float *bias, float *saved,
			 unsigned rows, unsigned width, float epsilon)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	const columns<LANES> c(width);
	typedef known<LANES, HELD> parameters;
	__shared__ float room[2][parameters::ROOM];
	const parameters w(c, weight, room[0]), b(c, bias, room[1]);

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const row<T, 1, LANES, HELD> x(c, r, width, &in);
		float sum = 0, squares = 0;

		x.each([&](unsigned, unsigned, const float *v) { sum += v[0]; });
		const float mean = us::sum(sum, words) / (float)width;
		x.each([&](unsigned, unsigned, const float *v) {
			squares += (v[0] - mean) * (v[0] - mean);
		});
		const float inverse = 1 / sqrtf(us::sum(squares, words) / (float)width + epsilon);
		x.map(out + r * width, [&](unsigned k, unsigned i, const float *v) {
			return w.of(k, i) * (v[0] - mean) * inverse + b.of(k, i);
		});
		if (us::lane() == 0) {
			saved[2 * r] = mean;
			saved[2 * r + 1] = inverse;
		}
	}
}

template <class T, bool Add, unsigned LANES, int HELD>
__device__ void layernorm_rows(const T *const *in, T *din, const float *weight, const float *saved,
			       unsigned rows, unsigned width)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	const columns<LANES> c(width);
	typedef known<LANES, HELD> parameters;
	__shared__ float room[parameters::ROOM];
	const parameters w(c, weight, room);

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const row<T, Add ? 3 : 2, LANES, HELD> x(c, r, width, in);
		const float mean = saved[2 * r], inverse = saved[2 * r + 1];
		float sum = 0, dot = 0;

		x.each([&](unsigned k, unsigned i, const float *v) {
			const float d = v[1] * w.of(k, i);

			sum += d;
			dot += d * (v[0] - mean) * inverse;
		});
		sum = us::sum(sum, words) / (float)width;
		dot = us::sum(dot, words) / (float)width;
		x.map(din + r * width, [&](unsigned k, unsigned i, const float *v) {
			const float xhat = (v[0] - mean) * inverse;
			const float d = (v[1] * w.of(k, i) - sum - xhat * dot) * inverse;

			return Add ? v[Add ? 2 : 0] + d : d;
		});
	}
}

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	layernorm_din(const T *in, const T *dout, T *din, const float *weight, const float *saved,
		      unsigned rows, unsigned width)
{
	const T *from[2] = {in, dout};

	layernorm_rows<T, false, LANES, HELD>(from, din, weight, saved, rows, width);
}

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	layernorm_add(const T *in, const T *dout, T *din, const float *weight, const float *saved,
		      unsigned rows, unsigned width)
{
	const T *from[3] = {in, dout, din};

	layernorm_rows<T, true, LANES, HELD>(from, din, weight, saved, rows, width);
}

// a: of dout, b: of dout * normalised x
template <class T> struct parameter_sums {
	typedef T type;
	enum { INPUTS = 2 };
	typedef nothing channel;
	struct place {
		float mean, inverse;
	};
	const T *in[2]; // x, dout
	const float *saved;
	float scale, *dweight, *dbias;

	__device__ channel at(unsigned) const
	{
		return channel{};
	}
	__device__ place row(unsigned r) const
	{
		return place{saved[2 * (size_t)r], saved[2 * (size_t)r + 1]};
	}
	__device__ pair of(const channel &, const place &p, const float *x) const
	{
		return pair{x[1], x[1] * (x[0] - p.mean) * p.inverse};
	}
	__device__ void end(unsigned c, double a, double b) const
	{
		dbias[c] = (float)(scale * a);
		dweight[c] = (float)(scale * b);
	}
};

// The scores of a query end at its own position if they are causal.
__device__ unsigned scores_of(size_t r, unsigned width, bool causal)
{
	return causal ? (unsigned)(r % width) + 1 : width;
}

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS, 3)
	softmax_kernel(T *p, unsigned rows, unsigned width, bool causal)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	const columns<LANES> c(width);

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const T *in = p;
		const row<T, 1, LANES, HELD> x(c, r, scores_of(r, width, causal), &in);
		exponentials<T, LANES, HELD> e;

		e.of(x, words);
		x.map(p + r * width, [&](unsigned k, unsigned, const float *v) {
			return e.at(k, v[0]) * e.inverse;
		});
	}
}

template <class T, unsigned LANES, int HELD>
__global__ void __launch_bounds__(THREADS)
	softmax_slope(const T *p, T *dp, float scale, unsigned rows, unsigned width, bool causal)
{
	typedef team<LANES> us;
	__shared__ float words[WARPS];
	const columns<LANES> c(width);
	const T *in[2] = {p, dp};

	for (size_t r = us::first_row(); r < rows; r += us::step()) {
		const row<T, 2, LANES, HELD> x(c, r, scores_of(r, width, causal), in);
		float dot = 0;

		x.each([&](unsigned, unsigned, const float *v) { dot += v[0] * v[1]; });
		dot = us::sum(dot, words);
		x.map(dp + r * width, [&](unsigned, unsigned, const float *v) {
			return scale * v[0] * (v[1] - dot);
		});
	}
}

template <class T> void layernorm(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	const unsigned rows = (unsigned)o->view.outer;
	const unsigned width = (unsigned)o->view.channels;

	LAUNCH_ROWS(layernorm_kernel, rows, width, s, (const T *)o->in, (T *)o->out, o->weight,
		    o->bias, o->saved, rows, width, (float)o->epsilon);
}

template <class T> void layernorm_backward(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	const T *in = (const T *)o->in, *dout = (const T *)o->dout;
	const unsigned rows = (unsigned)o->view.outer;
	const unsigned width = (unsigned)o->view.channels;
	T *din = (T *)o->din;

	sums(s, parameter_sums<T>{{in, dout}, o->saved, o->scale, o->dweight, o->dbias}, &o->view,
	     o->work);
	if (din && o->add)
		LAUNCH_ROWS(layernorm_add, rows, width, s, in, dout, din, o->weight, o->saved, rows,
			    width);
	else if (din)
		LAUNCH_ROWS(layernorm_din, rows, width, s, in, dout, din, o->weight, o->saved, rows,
			    width);
}

} // namespace

void gf_cuda_nn_layernorm(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	BY_TYPE(o->view.dtype, layernorm<T>(s, o));
}

void gf_cuda_nn_layernorm_backward(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	BY_TYPE(o->view.dtype, layernorm_backward<T>(s, o));
}

void gf_cuda_nn_softmax(struct gf_gpu_stream *s, const struct gf_gpu_scores *o)
{
	const unsigned rows = (unsigned)o->rows, width = (unsigned)o->width;

	BY_TYPE(o->dtype,
		LAUNCH_ROWS(softmax_kernel, rows, width, s, (T *)o->p, rows, width, o->causal));
}

void gf_cuda_nn_softmax_backward(struct gf_gpu_stream *s, const struct gf_gpu_scores *o)
{
	const unsigned rows = (unsigned)o->rows, width = (unsigned)o->width;

	BY_TYPE(o->dtype, LAUNCH_ROWS(softmax_slope, rows, width, s, (const T *)o->p, (T *)o->dp,
				      o->scale, rows, width, o->causal));
}
