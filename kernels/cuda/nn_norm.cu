/* SPDX-License-Identifier: BSD-3-Clause */
// Sums over channels, and batch norm.
#include "channels.h"
#include "nn_sets.h"

namespace
{

template <class T> struct plain {
	typedef T type;
	enum { INPUTS = 1 };
	typedef nothing channel, place;
	const T *in[1];
	float scale, *to;

	__device__ channel at(unsigned) const
	{
		return channel{};
	}
	__device__ place row(unsigned) const
	{
		return place{};
	}
	__device__ pair of(const channel &, const place &, const float *x) const
	{
		return pair{x[0], 0};
	}
	__device__ void end(unsigned c, double a, double) const
	{
		to[c] = (float)(scale * a);
	}
};

template <class T> struct biased {
	typedef T type;
	enum { INPUTS = 1 };
	struct channel {
		float bias;
	};
	const T *in[1];
	T *out;
	const float *bias;

	__device__ channel at(unsigned c) const
	{
		return channel{bias[c]};
	}
	__device__ float of(const channel &k, const float *x) const
	{
		return x[0] + k.bias;
	}
};

// What forward and backward know of a channel.
struct factors {
	float mean, scale, bias, inverse;

	__device__ float of(float x) const
	{
		return fmaf(scale, x - mean, bias);
	}
};

// Where they lie: four numbers of a channel side by side.
struct source {
	float *saved;
	const float *weight, *bias;
	unsigned channels;

	__device__ factors of(unsigned c) const
	{
		const float4 v = load4(saved + 4 * (size_t)c);

		return factors{v.x, v.y, v.z, v.w};
	}
	__device__ void save(unsigned c, float mean, float inverse) const
	{
		store4(saved + 4 * (size_t)c,
		       make_float4(mean, weight[c] * inverse, bias[c], inverse));
	}
};

source source_of(const struct gf_gpu_norm *o)
{
	return source{o->saved, o->weight, o->bias, (unsigned)o->view.channels};
}

// Around the first value of the channel, so that the squares' difference does
// not cancel if the mean is far from 0.
template <class T> struct statistics {
	typedef T type;
	enum { INPUTS = 1 };
	typedef nothing place;
	struct channel {
		float around;
	};
	const T *in[1];
	source to;
	float *running;
	unsigned inner;
	double count;
	float momentum, epsilon;

	__device__ channel at(unsigned c) const
	{
		return channel{get(in[0][c * inner])};
	}
	__device__ place row(unsigned) const
	{
		return place{};
	}
	__device__ pair of(const channel &k, const place &, const float *x) const
	{
		const float d = x[0] - k.around;

		return pair{d, d * d};
	}
	__device__ void end(unsigned c, double a, double b) const
	{
		const double d = a / count, v = b / count - d * d;
		const float mean = (float)(at(c).around + d);
		const float variance = v < 0 ? 0 : (float)v;
		const float keep = 1 - momentum;
		const float unbias = count > 1 ? (float)count / (float)(count - 1) : 1;

		to.save(c, mean, 1 / sqrtf(variance + epsilon));
		if (!running)
			return;
		running[c] = keep * running[c] + momentum * mean;
		running[to.channels + c] =
			keep * running[to.channels + c] + momentum * unbias * variance;
	}
};

__global__ void __launch_bounds__(THREADS)
	take_running(source from, const float *running, float epsilon)
{
	const unsigned c = blockIdx.x * THREADS + threadIdx.x;

	if (c < from.channels)
		from.save(c, running[c], 1 / sqrtf(running[from.channels + c] + epsilon));
}

template <class T, bool Add, bool Relu> struct normalise {
	typedef T type;
	enum { INPUTS = Add ? 2 : 1 };
	typedef factors channel;
	const T *in[2];
	T *out;
	source from;

	__device__ channel at(unsigned c) const
	{
		return from.of(c);
	}
	__device__ float of(const channel &k, const float *x) const
	{
		const float y = Add ? k.of(x[0]) + x[INPUTS - 1] : k.of(x[0]);

		return Relu && y < 0 ? 0 : y; // NaN stays
	}
};

// A gradient that a ReLU did not pass on leaves nothing.
template <bool Relu> __device__ float passed(const factors &k, float x, float dout)
{
	return !Relu || k.of(x) > 0 ? dout : 0;
}

// a: of dout, b: of dout * (x - mean)
template <class T, bool Relu> struct gradient_sums {
	typedef T type;
	enum { INPUTS = 2 };
	typedef factors channel;
	typedef nothing place;
	const T *in[2]; // x, dout
	source from;
	float scale, *dweight, *dbias, share;
	pair *totals;

	__device__ channel at(unsigned c) const
	{
		return from.of(c);
	}
	__device__ place row(unsigned) const
	{
		return place{};
	}
	__device__ pair of(const channel &k, const place &, const float *x) const
	{
		const float d = passed<Relu>(k, x[0], x[1]);

		return pair{d, d * (x[0] - k.mean)};
	}
	__device__ void end(unsigned c, double a, double b) const
	{
		const double inverse = from.of(c).inverse;
		const double by = -(double)share * from.weight[c] * inverse;

		dbias[c] = (float)(scale * a);
		dweight[c] = (float)(scale * b * inverse);
		totals[c] = pair{(float)(by * a), (float)(by * b * inverse * inverse)};
	}
};

template <class T, bool Add, bool Relu> struct gradient {
	typedef T type;
	enum { INPUTS = Add ? 3 : 2 };
	struct channel {
		factors f;
		pair total;
	};
	const T *in[3]; // x, dout, din
	T *out;
	source from;
	const pair *totals;

	__device__ channel at(unsigned c) const
	{
		return channel{from.of(c), totals[c]};
	}
	__device__ float of(const channel &k, const float *x) const
	{
		const float dout = passed<Relu>(k.f, x[0], x[1]);
		const float d = fmaf(k.f.scale, dout, fmaf(k.total.b, x[0] - k.f.mean, k.total.a));

		return Add ? x[INPUTS - 1] + d : d;
	}
};

template <class T, bool Add, bool Relu>
void norm_apply(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	map_channels(s,
		     normalise<T, Add, Relu>{
			     {(const T *)o->in, (const T *)o->addend}, (T *)o->out, source_of(o)},
		     &o->view);
}

template <class T> void norm_apply(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	if (o->addend && o->relu)
		norm_apply<T, true, true>(s, o);
	else if (o->addend)
		norm_apply<T, true, false>(s, o);
	else if (o->relu)
		norm_apply<T, false, true>(s, o);
	else
		norm_apply<T, false, false>(s, o);
}

template <class T, bool Relu>
void norm_backward(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	const T *x = (const T *)o->in, *dout = (const T *)o->dout;
	pair *totals = (pair *)o->work + splits_of(&o->view) * o->view.channels;
	T *din = (T *)o->din;

	sums(s,
	     gradient_sums<T, Relu>{{x, dout},
				    source_of(o),
				    o->scale,
				    o->dweight,
				    o->dbias,
				    1 / (float)(o->view.outer * o->view.inner),
				    totals},
	     &o->view, o->work);
	if (din && o->add)
		map_channels(s, gradient<T, true, Relu>{{x, dout, din}, din, source_of(o), totals},
			     &o->view);
	else if (din)
		map_channels(s,
			     gradient<T, false, Relu>{{x, dout, NULL}, din, source_of(o), totals},
			     &o->view);
}

} // namespace

size_t gf_gpu_sums_work_bytes(const struct gf_gpu_view *v)
{
	return (splits_of(v) + 1) * v->channels * sizeof(pair);
}

void gf_cuda_nn_add_bias(struct gf_gpu_stream *s, const struct gf_gpu_view *v, const float *bias,
			 void *y)
{
	BY_TYPE(v->dtype, map_channels(s, biased<T>{{(const T *)y}, (T *)y, bias}, v));
}

void gf_cuda_nn_channel_sums(struct gf_gpu_stream *s, const struct gf_gpu_view *v, const void *x,
			     float scale, float *to, void *work)
{
	BY_TYPE(v->dtype, sums(s, plain<T>{{(const T *)x}, scale, to}, v, work));
}

void gf_cuda_nn_norm_statistics(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	BY_TYPE(o->view.dtype, sums(s,
				    statistics<T>{{(const T *)o->in},
						  source_of(o),
						  o->running,
						  (unsigned)o->view.inner,
						  (double)(o->view.outer * o->view.inner),
						  o->momentum,
						  (float)o->epsilon},
				    &o->view, o->work));
}

void gf_cuda_nn_norm_running(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	LAUNCH(take_running, blocks_for(o->view.channels, THREADS), s, source_of(o),
	       (const float *)o->running, (float)o->epsilon);
}

void gf_cuda_nn_norm_apply(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	BY_TYPE(o->view.dtype, norm_apply<T>(s, o));
}

void gf_cuda_nn_norm_backward(struct gf_gpu_stream *s, const struct gf_gpu_norm *o)
{
	if (o->relu)
		BY_TYPE(o->view.dtype, norm_backward<T, true>(s, o));
	else
		BY_TYPE(o->view.dtype, norm_backward<T, false>(s, o));
}
