/* SPDX-License-Identifier: BSD-3-Clause */
// Convolutions (fake_math.h).
#include <string.h>

#include <vector>

#include <cudnn.h>

#include "fake_math.h"

using namespace fake;

namespace
{

struct dnn_handle {
	gf_gpu_stream *stream;
};

struct tensor {
	bool set, last; // channels
	type t;
	int n, c, h, w;

	size_t count() const
	{
		return (size_t)n * (size_t)c * (size_t)h * (size_t)w;
	}
	size_t index(int in, int ic, int ih, int iw) const
	{
		return last ? (((size_t)in * h + ih) * w + iw) * c + ic
			    : (((size_t)in * c + ic) * h + ih) * w + iw;
	}
	void check(const void *p, const char *what) const
	{
		want(set, "a descriptor that says nothing");
		want(p && (uintptr_t)p % 16 == 0, "an array without alignment");
		want(host_gpu_has(p, count() * size_of(t)), what);
	}
};

struct convolution {
	bool set;
	int pad[2], stride[2], groups;
	cudnnMathType_t math;
};

type type_of(cudnnDataType_t t)
{
	want(t == CUDNN_DATA_FLOAT || t == CUDNN_DATA_HALF ||
		     t == CUDNN_DATA_BFLOAT16,
	     "a type that convolutions do not have");
	return t == CUDNN_DATA_FLOAT ? F32 : t == CUDNN_DATA_HALF ? F16 : BF16;
}

// What the three computations have in common.
struct shape {
	tensor x, w, y;
	convolution c;

	void check() const
	{
		want(x.set && w.set && y.set && c.set,
		     "a descriptor that says nothing");
		want(x.t == w.t && x.t == y.t, "types that do not agree");
		want(x.last == w.last && x.last == y.last,
		     "layouts that do not agree");
		want(c.groups > 0 && w.n % c.groups == 0 &&
			     w.c * c.groups == x.c && w.n == y.c && x.n == y.n,
		     "channels that do not agree");
		want((x.h + 2 * c.pad[0] - w.h) / c.stride[0] + 1 == y.h &&
			     (x.w + 2 * c.pad[1] - w.w) / c.stride[1] + 1 ==
				     y.w,
		     "an output that the filter does not give");
		want(x.t == F32 ? c.math == CUDNN_FMA_MATH
				: c.math == CUDNN_TENSOR_OP_MATH,
		     "another kind of arithmetic");
	}
	// Calls f(x, w, y) with the places of all that are multiplied.
	template <class F> void each(F f) const
	{
		const int per = y.c / c.groups;

		for (int n = 0; n < y.n; n++)
			for (int o = 0; o < y.c; o++)
				for (int i = 0; i < y.h * y.w; i++)
					for (int k = 0; k < w.c * w.h * w.w;
					     k++)
						one(n, o, i, k, o / per, f);
	}
	template <class F>
	void one(int n, int o, int i, int k, int group, F f) const
	{
		const int ic = k / (w.h * w.w), kh = k / w.w % w.h;
		const int kw = k % w.w, oh = i / y.w, ow = i % y.w;
		const int ih = oh * c.stride[0] + kh - c.pad[0];
		const int iw = ow * c.stride[1] + kw - c.pad[1];

		if (ih >= 0 && ih < x.h && iw >= 0 && iw < x.w)
			f(x.index(n, group * w.c + ic, ih, iw),
			  w.index(o, ic, kh, kw), y.index(n, o, oh, ow));
	}
};

shape shape_of(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
	       cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t y)
{
	const shape s = {*of<tensor>(x), *of<tensor>(w), *of<tensor>(y),
			 *of<convolution>(c)};

	s.check();
	return s;
}

void check_work(const void *work, size_t given, size_t needed)
{
	want(given >= needed, "a workspace that is too small");
	want(needed == 0 || (work && host_gpu_has(work, given)),
	     "a workspace outside the device's memory");
}

// Offered: one that is not deterministic, one that wants everything, the one
// to take, and one that has not worked.
#define CHOSEN_BYTES 1000

// As the real one's may be: fewer images want more.
size_t filter_bytes(const shape &s)
{
	return (size_t)(16 * CHOSEN_BYTES / s.x.n);
}

template <class P, class A>
void rank(P *perf, int room, int *n, A chosen, A other)
{
	const P offers[] = {
		{other,
		 CUDNN_STATUS_SUCCESS,
		 1,
		 0,
		 CUDNN_NON_DETERMINISTIC,
		 CUDNN_DEFAULT_MATH,
		 {0, 0, 0}},
		{other,
		 CUDNN_STATUS_SUCCESS,
		 2,
		 (size_t)1 << 40,
		 CUDNN_DETERMINISTIC,
		 CUDNN_DEFAULT_MATH,
		 {0, 0, 0}},
		{other,
		 CUDNN_STATUS_NOT_SUPPORTED,
		 -1,
		 0,
		 CUDNN_DETERMINISTIC,
		 CUDNN_DEFAULT_MATH,
		 {0, 0, 0}},
		{chosen,
		 CUDNN_STATUS_SUCCESS,
		 3,
		 CHOSEN_BYTES,
		 CUDNN_DETERMINISTIC,
		 CUDNN_DEFAULT_MATH,
		 {0, 0, 0}},
	};

	want(room >= 4, "room for few algorithms");
	memcpy(perf, offers, sizeof(offers));
	*n = 4;
}

#define FORWARD CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
#define DATA    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED
#define FILTER  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED

#define CALL(name)                                                             \
	do {                                                                   \
		if (fails(name))                                               \
			return CUDNN_STATUS_EXECUTION_FAILED;                  \
	} while (0)

cudnnStatus_t dnn_create(cudnnHandle_t *h)
{
	CALL("cudnnCreate");
	*h = make_as<dnn_handle, cudnnHandle_t>();
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t dnn_destroy(cudnnHandle_t h)
{
	destroy<dnn_handle>(h);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t dnn_stream(cudnnHandle_t h, cudaStream_t s)
{
	set_stream<dnn_handle>(h, s);
	return CUDNN_STATUS_SUCCESS;
}

const char *dnn_error(cudnnStatus_t)
{
	return "CUDNN_STATUS_EXECUTION_FAILED";
}

template <class T, class P> cudnnStatus_t dnn_make(P *p)
{
	*p = make_as<T, P>();
	return CUDNN_STATUS_SUCCESS;
}

template <class T, class P> cudnnStatus_t dnn_unmake(P p)
{
	destroy<T>(p);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_tensor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t f,
			 cudnnDataType_t t, int n, int c, int h, int w)
{
	want(n > 0 && c > 0 && h > 0 && w > 0, "a tensor without values");
	*of<tensor>(d) =
		tensor{true, f == CUDNN_TENSOR_NHWC, type_of(t), n, c, h, w};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_filter(cudnnFilterDescriptor_t d, cudnnDataType_t t,
			 cudnnTensorFormat_t f, int k, int c, int h, int w)
{
	want(k > 0 && c > 0 && h > 0 && w > 0, "a filter without values");
	*of<tensor>(d) =
		tensor{true, f == CUDNN_TENSOR_NHWC, type_of(t), k, c, h, w};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_conv(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w,
		       int u, int v, int dilation_h, int dilation_w,
		       cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
	want(dilation_h == 1 && dilation_w == 1 && u > 0 && v > 0 &&
		     pad_h >= 0 && pad_w >= 0,
	     "strides, pads or dilations");
	want(mode == CUDNN_CROSS_CORRELATION, "filters that are turned round");
	want(compute == CUDNN_DATA_FLOAT, "sums that are not f32");
	*of<convolution>(d) = convolution{
		true, {pad_h, pad_w}, {u, v}, 1, CUDNN_DEFAULT_MATH};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_groups(cudnnConvolutionDescriptor_t d, int groups)
{
	want(of<convolution>(d)->set, "groups before the rest");
	of<convolution>(d)->groups = groups;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_math(cudnnConvolutionDescriptor_t d, cudnnMathType_t math)
{
	want(of<convolution>(d)->set, "arithmetic before the rest");
	of<convolution>(d)->math = math;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t rank_forward(cudnnHandle_t h, cudnnTensorDescriptor_t x,
			   cudnnFilterDescriptor_t w,
			   cudnnConvolutionDescriptor_t c,
			   cudnnTensorDescriptor_t y, int room, int *n,
			   cudnnConvolutionFwdAlgoPerf_t *perf)
{
	CALL("cudnnGetConvolutionForwardAlgorithm_v7");
	(void)of<dnn_handle>(h);
	(void)shape_of(x, w, c, y);
	rank(perf, room, n, FORWARD, CUDNN_CONVOLUTION_FWD_ALGO_FFT);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t rank_data(cudnnHandle_t h, cudnnFilterDescriptor_t w,
			cudnnTensorDescriptor_t dy,
			cudnnConvolutionDescriptor_t c,
			cudnnTensorDescriptor_t dx, int room, int *n,
			cudnnConvolutionBwdDataAlgoPerf_t *perf)
{
	(void)of<dnn_handle>(h);
	(void)shape_of(dx, w, c, dy);
	rank(perf, room, n, DATA, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t rank_filter(cudnnHandle_t h, cudnnTensorDescriptor_t x,
			  cudnnTensorDescriptor_t dy,
			  cudnnConvolutionDescriptor_t c,
			  cudnnFilterDescriptor_t dw, int room, int *n,
			  cudnnConvolutionBwdFilterAlgoPerf_t *perf)
{
	(void)of<dnn_handle>(h);
	(void)shape_of(x, dw, c, dy);
	rank(perf, room, n, FILTER, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t work_forward(cudnnHandle_t, cudnnTensorDescriptor_t x,
			   cudnnFilterDescriptor_t w,
			   cudnnConvolutionDescriptor_t c,
			   cudnnTensorDescriptor_t y,
			   cudnnConvolutionFwdAlgo_t algo, size_t *bytes)
{
	(void)shape_of(x, w, c, y);
	want(algo == FORWARD, "an algorithm that was not to be taken");
	*bytes = CHOSEN_BYTES;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t work_data(cudnnHandle_t, cudnnFilterDescriptor_t w,
			cudnnTensorDescriptor_t dy,
			cudnnConvolutionDescriptor_t c,
			cudnnTensorDescriptor_t dx,
			cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes)
{
	(void)shape_of(dx, w, c, dy);
	want(algo == DATA, "an algorithm that was not to be taken");
	*bytes = CHOSEN_BYTES / 2;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t work_filter(cudnnHandle_t, cudnnTensorDescriptor_t x,
			  cudnnTensorDescriptor_t dy,
			  cudnnConvolutionDescriptor_t c,
			  cudnnFilterDescriptor_t dw,
			  cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes)
{
	want(algo == FILTER, "an algorithm that was not to be taken");
	*bytes = filter_bytes(shape_of(x, dw, c, dy));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t conv_forward(cudnnHandle_t h, const void *alpha,
			   cudnnTensorDescriptor_t xd, const void *x,
			   cudnnFilterDescriptor_t wd, const void *w,
			   cudnnConvolutionDescriptor_t cd,
			   cudnnConvolutionFwdAlgo_t algo, void *work,
			   size_t bytes, const void *beta,
			   cudnnTensorDescriptor_t yd, void *y)
{
	const shape s = shape_of(xd, wd, cd, yd);
	const float a = *(const float *)alpha, b = *(const float *)beta;

	CALL("cudnnConvolutionForward");
	s.x.check(x, "an input outside the device's memory");
	s.w.check(w, "a filter outside the device's memory");
	s.y.check(y, "an output outside the device's memory");
	want(algo == FORWARD && x != y && w != y, "an algorithm, or an alias");
	check_work(work, bytes, CHOSEN_BYTES);
	host_gpu_enqueue(of<dnn_handle>(h)->stream, [=] {
		users{{h, xd, wd, cd, yd}}.check();
		std::vector<double> sums(s.y.count());

		memset(work, 0xff, bytes);
		s.each([&](size_t xi, size_t wi, size_t yi) {
			sums[yi] += (double)at(x, s.x.t, xi) * at(w, s.x.t, wi);
		});
		for (size_t i = 0; i < sums.size(); i++)
			blend(y, s.y.t, i, a, sums[i], b);
	});
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t conv_data(cudnnHandle_t h, const void *alpha,
			cudnnFilterDescriptor_t wd, const void *w,
			cudnnTensorDescriptor_t yd, const void *dy,
			cudnnConvolutionDescriptor_t cd,
			cudnnConvolutionBwdDataAlgo_t algo, void *work,
			size_t bytes, const void *beta,
			cudnnTensorDescriptor_t xd, void *dx)
{
	const shape s = shape_of(xd, wd, cd, yd);
	const float a = *(const float *)alpha, b = *(const float *)beta;

	CALL("cudnnConvolutionBackwardData");
	s.x.check(dx, "a gradient outside the device's memory");
	s.w.check(w, "a filter outside the device's memory");
	s.y.check(dy, "a gradient outside the device's memory");
	want(algo == DATA && dx != dy && w != dx, "an algorithm, or an alias");
	check_work(work, bytes, CHOSEN_BYTES / 2);
	host_gpu_enqueue(of<dnn_handle>(h)->stream, [=] {
		users{{h, xd, wd, cd, yd}}.check();
		std::vector<double> sums(s.x.count());

		memset(work, 0xff, bytes);
		s.each([&](size_t xi, size_t wi, size_t yi) {
			sums[xi] +=
				(double)at(dy, s.x.t, yi) * at(w, s.x.t, wi);
		});
		for (size_t i = 0; i < sums.size(); i++)
			blend(dx, s.x.t, i, a, sums[i], b);
	});
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t conv_filter(cudnnHandle_t h, const void *alpha,
			  cudnnTensorDescriptor_t xd, const void *x,
			  cudnnTensorDescriptor_t yd, const void *dy,
			  cudnnConvolutionDescriptor_t cd,
			  cudnnConvolutionBwdFilterAlgo_t algo, void *work,
			  size_t bytes, const void *beta,
			  cudnnFilterDescriptor_t wd, void *dw)
{
	const shape s = shape_of(xd, wd, cd, yd);
	const float a = *(const float *)alpha, b = *(const float *)beta;

	CALL("cudnnConvolutionBackwardFilter");
	s.x.check(x, "an input outside the device's memory");
	s.w.check(dw, "a filter outside the device's memory");
	s.y.check(dy, "a gradient outside the device's memory");
	want(algo == FILTER && x != dw && dy != dw,
	     "an algorithm, or an alias");
	check_work(work, bytes, filter_bytes(s));
	host_gpu_enqueue(of<dnn_handle>(h)->stream, [=] {
		users{{h, xd, wd, cd, yd}}.check();
		std::vector<double> sums(s.w.count());

		memset(work, 0xff, bytes);
		s.each([&](size_t xi, size_t wi, size_t yi) {
			sums[wi] +=
				(double)at(dy, s.x.t, yi) * at(x, s.x.t, xi);
		});
		for (size_t i = 0; i < sums.size(); i++)
			blend(dw, s.w.t, i, a, sums[i], b);
	});
	return CUDNN_STATUS_SUCCESS;
}

} // namespace

const struct entry fake::cudnn_entries[] = {
	ENTRY(cudnnCreate, dnn_create),
	ENTRY(cudnnDestroy, dnn_destroy),
	ENTRY(cudnnSetStream, dnn_stream),
	ENTRY(cudnnGetErrorString, dnn_error),
	ENTRY(cudnnCreateTensorDescriptor, dnn_make<tensor>),
	ENTRY(cudnnDestroyTensorDescriptor, dnn_unmake<tensor>),
	ENTRY(cudnnSetTensor4dDescriptor, set_tensor),
	ENTRY(cudnnCreateFilterDescriptor, dnn_make<tensor>),
	ENTRY(cudnnDestroyFilterDescriptor, dnn_unmake<tensor>),
	ENTRY(cudnnSetFilter4dDescriptor, set_filter),
	ENTRY(cudnnCreateConvolutionDescriptor, dnn_make<convolution>),
	ENTRY(cudnnDestroyConvolutionDescriptor, dnn_unmake<convolution>),
	ENTRY(cudnnSetConvolution2dDescriptor, set_conv),
	ENTRY(cudnnSetConvolutionGroupCount, set_groups),
	ENTRY(cudnnSetConvolutionMathType, set_math),
	ENTRY(cudnnGetConvolutionForwardAlgorithm_v7, rank_forward),
	ENTRY(cudnnGetConvolutionBackwardDataAlgorithm_v7, rank_data),
	ENTRY(cudnnGetConvolutionBackwardFilterAlgorithm_v7, rank_filter),
	ENTRY(cudnnGetConvolutionForwardWorkspaceSize, work_forward),
	ENTRY(cudnnGetConvolutionBackwardDataWorkspaceSize, work_data),
	ENTRY(cudnnGetConvolutionBackwardFilterWorkspaceSize, work_filter),
	ENTRY(cudnnConvolutionForward, conv_forward),
	ENTRY(cudnnConvolutionBackwardData, conv_data),
	ENTRY(cudnnConvolutionBackwardFilter, conv_filter),
	{NULL, NULL},
};
