/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

#include <pthread.h>

#include <cudnn.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/library.h"

/*
 * Convolutions by cuDNN's calls with descriptors, which every cuDNN 9 has. cuDNN's heuristics rank
 * its algorithms; the first deterministic one that fits is taken, so the choice depends on the
 * sizes and the device alone. If the heuristics offer none, a default is taken that is
 * deterministic and exists for every shape. f32 is computed as f32, not in TF32. PyTorch
 * measures all algorithms first, and gains nothing by it (docs/gpu.md).
 *
 * A bias and a ReLU are steps of their own: cuDNN's fused call wants a bias, which a convolution
 * before a batch norm lacks.
 */
#define CALLS(CALL)                                                                                \
	CALL(Create)                                                                               \
	CALL(Destroy)                                                                              \
	CALL(SetStream)                                                                            \
	CALL(GetErrorString)                                                                       \
	CALL(CreateTensorDescriptor)                                                               \
	CALL(DestroyTensorDescriptor)                                                              \
	CALL(SetTensor4dDescriptor)                                                                \
	CALL(CreateFilterDescriptor)                                                               \
	CALL(DestroyFilterDescriptor)                                                              \
	CALL(SetFilter4dDescriptor)                                                                \
	CALL(CreateConvolutionDescriptor)                                                          \
	CALL(DestroyConvolutionDescriptor)                                                         \
	CALL(SetConvolution2dDescriptor)                                                           \
	CALL(SetConvolutionGroupCount)                                                             \
	CALL(SetConvolutionMathType)                                                               \
	CALL(GetConvolutionForwardAlgorithm_v7)                                                    \
	CALL(GetConvolutionBackwardDataAlgorithm_v7)                                               \
	CALL(GetConvolutionBackwardFilterAlgorithm_v7)                                             \
	CALL(GetConvolutionForwardWorkspaceSize)                                                   \
	CALL(GetConvolutionBackwardDataWorkspaceSize)                                              \
	CALL(GetConvolutionBackwardFilterWorkspaceSize)                                            \
	CALL(ConvolutionForward)                                                                   \
	CALL(ConvolutionBackwardData)                                                              \
	CALL(ConvolutionBackwardFilter)

#define POINTER(name) __typeof__(cudnn##name) *name;
static struct {
	CALLS(POINTER)
} cudnn;

#define SYMBOL(name) {"cudnn" #name, offsetof(__typeof__(cudnn), name)},
static const struct gf_symbol symbols[] = {CALLS(SYMBOL)};

#define STRING(x) #x
#define NUMBER(x) STRING(x)
#define FILE_NAME "libcudnn.so." NUMBER(CUDNN_MAJOR)

/* Written once, under pthread_once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct gf_error reason;
static int loaded;

static void load(void)
{
	loaded = gf_library_open(FILE_NAME, symbols, GF_ARRAY_LENGTH(symbols), &cudnn, &reason);
}

static int check(cudnnStatus_t status, const char *what, struct gf_error *err)
{
	if (status == CUDNN_STATUS_SUCCESS)
		return 0;
	return gf_error_set(err, -EIO, "%s: %s", what, cudnn.GetErrorString(status));
}

#define CUDNN_CHECK(name, ...) check(cudnn.name(__VA_ARGS__), "cudnn" #name, err)

/* Sets rc and the reason, and goes to out. */
#define CUDNN_TRY(name, ...)                                                                       \
	do {                                                                                       \
		rc = CUDNN_CHECK(name, __VA_ARGS__);                                               \
		if (rc)                                                                            \
			goto out;                                                                  \
	} while (0)

struct gf_gpu_dnn {
	cudnnHandle_t handle;
};

int gf_gpu_dnn_new(struct gf_gpu_stream *s, struct gf_gpu_dnn **dnn, struct gf_error *err)
{
	struct gf_gpu_dnn *d;
	int rc;

	pthread_once(&once, load);
	if (loaded)
		return gf_error_set(err, loaded, "no cuDNN here: %s", reason.text);
	d = gf_xcalloc(1, sizeof(*d));
	CUDNN_TRY(Create, &d->handle);
	CUDNN_TRY(SetStream, d->handle, (cudaStream_t)s);
out:
	if (rc)
		gf_gpu_dnn_free(d);
	else
		*dnn = d;
	return rc;
}

void gf_gpu_dnn_free(struct gf_gpu_dnn *dnn)
{
	if (dnn && dnn->handle)
		(void)cudnn.Destroy(dnn->handle);
	free(dnn);
}

struct gf_gpu_conv {
	struct gf_gpu_dnn *dnn;
	cudnnTensorDescriptor_t in, out;
	cudnnFilterDescriptor_t filter;
	cudnnConvolutionDescriptor_t conv;
	cudnnConvolutionFwdAlgo_t forward;
	cudnnConvolutionBwdDataAlgo_t data;
	cudnnConvolutionBwdFilterAlgo_t weight;
	size_t forward_bytes, data_bytes, weight_bytes;
};

void gf_gpu_conv_free(struct gf_gpu_conv *c)
{
	if (!c)
		return;
	if (c->in)
		(void)cudnn.DestroyTensorDescriptor(c->in);
	if (c->out)
		(void)cudnn.DestroyTensorDescriptor(c->out);
	if (c->filter)
		(void)cudnn.DestroyFilterDescriptor(c->filter);
	if (c->conv)
		(void)cudnn.DestroyConvolutionDescriptor(c->conv);
	free(c);
}

static int describe(struct gf_gpu_conv *c, const struct gf_gpu_conv_shape *s, struct gf_error *err)
{
	const cudnnTensorFormat_t format = s->channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
	const cudnnDataType_t type = s->dtype == GF_F16    ? CUDNN_DATA_HALF
				     : s->dtype == GF_BF16 ? CUDNN_DATA_BFLOAT16
							   : CUDNN_DATA_FLOAT;
	int rc;

	CUDNN_TRY(CreateTensorDescriptor, &c->in);
	CUDNN_TRY(SetTensor4dDescriptor, c->in, format, type, (int)s->batch, (int)s->in[0],
		  (int)s->in[1], (int)s->in[2]);
	CUDNN_TRY(CreateTensorDescriptor, &c->out);
	CUDNN_TRY(SetTensor4dDescriptor, c->out, format, type, (int)s->batch, (int)s->out[0],
		  (int)s->out[1], (int)s->out[2]);
	CUDNN_TRY(CreateFilterDescriptor, &c->filter);
	CUDNN_TRY(SetFilter4dDescriptor, c->filter, type, format, (int)s->out[0],
		  (int)(s->in[0] / s->groups), (int)s->kernel[0], (int)s->kernel[1]);
	CUDNN_TRY(CreateConvolutionDescriptor, &c->conv);
	CUDNN_TRY(SetConvolution2dDescriptor, c->conv, (int)s->pad[0], (int)s->pad[1],
		  (int)s->stride, (int)s->stride, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
	CUDNN_TRY(SetConvolutionGroupCount, c->conv, (int)s->groups);
	CUDNN_TRY(SetConvolutionMathType, c->conv,
		  s->dtype == GF_F32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH);
out:
	return rc;
}

#define RANKED 16 /* more than there are algorithms */

/* One of them, whatever it computes. */
struct way {
	bool usable;
	size_t memory;
	int algo;
};

/* The first that fits; else the smallest, which for a smaller batch is not larger than it was for a
 * larger one; else `otherwise`. */
static int pick(const struct way *ways, int n, size_t most, int otherwise)
{
	const struct way *smallest = NULL;

	for (int i = 0; i < n; i++) {
		if (!ways[i].usable)
			continue;
		if (ways[i].memory <= most)
			return ways[i].algo;
		if (!smallest || ways[i].memory < smallest->memory)
			smallest = &ways[i];
	}
	return smallest ? smallest->algo : otherwise;
}

#define WAYS(to, perf, n)                                                                          \
	do {                                                                                       \
		for (int i_ = 0; i_ < (n); i_++)                                                   \
			(to)[i_] = (struct way){(perf)[i_].status == CUDNN_STATUS_SUCCESS &&       \
							(perf)[i_].determinism ==                  \
								CUDNN_DETERMINISTIC,               \
						(perf)[i_].memory, (int)(perf)[i_].algo};          \
	} while (0)

static int choose(struct gf_gpu_conv *c, size_t most, struct gf_error *err)
{
	cudnnConvolutionFwdAlgoPerf_t forward[RANKED];
	cudnnConvolutionBwdDataAlgoPerf_t data[RANKED];
	cudnnConvolutionBwdFilterAlgoPerf_t weight[RANKED];
	cudnnHandle_t h = c->dnn->handle;
	struct way ways[RANKED];
	int rc, n = 0;

	CUDNN_TRY(GetConvolutionForwardAlgorithm_v7, h, c->in, c->filter, c->conv, c->out, RANKED,
		  &n, forward);
	WAYS(ways, forward, n);
	c->forward = (cudnnConvolutionFwdAlgo_t)pick(ways, n, most,
						     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
	CUDNN_TRY(GetConvolutionBackwardDataAlgorithm_v7, h, c->filter, c->out, c->conv, c->in,
		  RANKED, &n, data);
	WAYS(ways, data, n);
	c->data = (cudnnConvolutionBwdDataAlgo_t)pick(ways, n, most,
						      CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
	CUDNN_TRY(GetConvolutionBackwardFilterAlgorithm_v7, h, c->in, c->out, c->conv, c->filter,
		  RANKED, &n, weight);
	WAYS(ways, weight, n);
	c->weight = (cudnnConvolutionBwdFilterAlgo_t)pick(ways, n, most,
							  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
	CUDNN_TRY(GetConvolutionForwardWorkspaceSize, h, c->in, c->filter, c->conv, c->out,
		  c->forward, &c->forward_bytes);
	CUDNN_TRY(GetConvolutionBackwardDataWorkspaceSize, h, c->filter, c->out, c->conv, c->in,
		  c->data, &c->data_bytes);
	CUDNN_TRY(GetConvolutionBackwardFilterWorkspaceSize, h, c->in, c->out, c->conv, c->filter,
		  c->weight, &c->weight_bytes);
out:
	return rc;
}

int gf_gpu_conv_new(struct gf_gpu_dnn *dnn, const struct gf_gpu_conv_shape *shape, size_t most,
		    struct gf_gpu_conv **conv, struct gf_error *err)
{
	struct gf_gpu_conv *c = gf_xcalloc(1, sizeof(*c));
	int rc;

	c->dnn = dnn;
	rc = describe(c, shape, err);
	rc = rc ?: choose(c, most, err);
	if (rc)
		gf_gpu_conv_free(c);
	else
		*conv = c;
	return rc;
}

size_t gf_gpu_conv_work_bytes(const struct gf_gpu_conv *c)
{
	size_t bytes = c->forward_bytes;

	bytes = c->data_bytes > bytes ? c->data_bytes : bytes;
	return c->weight_bytes > bytes ? c->weight_bytes : bytes;
}

static const float one = 1, zero = 0;

/* --- the layer -------------------------------------------------------------
 */

/* Filters are copied in each pass, to where they are aligned and lie as the images do; so is their
 * gradient. */
#define WORK_MOST ((size_t)1 << 30) /* faster ways that want more are left */

static void filter_sizes(const struct gf_layer *l, size_t sizes[3])
{
	sizes[0] = l->filters;
	sizes[1] = l->in.dims[0] / l->groups;
	sizes[2] = l->kernel * l->kernel_w;
}

static size_t filter_bytes(const struct gf_gpu_io *io)
{
	size_t sizes[3];

	filter_sizes(io->layer, sizes);
	return gf_gpu_bytes(io->g, sizes[0] * sizes[1] * sizes[2]);
}

static int open_conv(struct gf_gpu_io *io, size_t batch, size_t most, struct gf_gpu_conv **conv,
		     struct gf_error *err)
{
	const struct gf_layer *l = io->layer;
	const struct gf_gpu_conv_shape shape = {
		.dtype = io->g->dtype,
		.channels_last = io->g->channels_last,
		.batch = batch,
		.groups = l->groups,
		.in = {l->in.dims[0], l->in.dims[1], l->in.dims[2]},
		.out = {l->out.dims[0], l->out.dims[1], l->out.dims[2]},
		.kernel = {l->kernel, l->kernel_w},
		.stride = l->stride,
		.pad = {l->pad, l->pad_w},
	};

	return gf_gpu_conv_new(io->g->dnn, &shape, most, conv, err);
}

static void keep(struct gf_gpu_io *io, size_t batch, struct gf_gpu_conv *conv)
{
	struct gf_gpu_conv_of *of = gf_array_push(&io->convs, &io->nconvs, &io->convs_capacity);

	*of = (struct gf_gpu_conv_of){batch, conv};
}

static int prepare(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_net *g = io->g;
	struct gf_gpu_conv *c;
	size_t bytes;
	int rc = open_conv(io, g->net->max_batch, WORK_MOST, &c, err);

	if (rc)
		return rc;
	keep(io, g->net->max_batch, c);
	bytes = gf_gpu_conv_work_bytes(c);
	if (bytes > g->work_bytes)
		g->work_bytes = bytes;
	return 0;
}

/* From here on passes have a workspace of so many bytes, or more. Work that is enqueued keeps the
 * one before. */
static int grow_work(struct gf_gpu_net *g, size_t bytes, struct gf_error *err)
{
	void *work;
	int rc;

	if (bytes <= g->work_bytes)
		return 0;
	rc = g->gpu->ops->alloc(g->gpu, bytes, &work, err);
	if (rc) {
		gf_error_prefix(err, "a workspace of %zu bytes", bytes);
		return rc;
	}
	*gf_array_push(&g->grown, &g->ngrown, &g->grown_capacity) = work;
	g->work = work;
	g->work_bytes = bytes;
	g->net->memory.workspace_bytes += bytes;
	return 0;
}

/* The one for the pass's batch. A smaller batch, the last of an epoch, may want a larger workspace
 * than the largest batch: filter gradients are cut into more parts where there are fewer images. */
static int conv_of(struct gf_gpu_io *io, struct gf_gpu_conv **conv, struct gf_error *err)
{
	struct gf_gpu_conv *c;
	int rc;

	for (size_t i = 0; i < io->nconvs; i++)
		if (io->convs[i].batch == io->batch) {
			*conv = io->convs[i].conv;
			return 0;
		}
	rc = open_conv(io, io->batch, io->g->work_bytes, &c, err);
	if (rc)
		return rc;
	rc = grow_work(io->g, gf_gpu_conv_work_bytes(c), err);
	if (rc) {
		gf_error_prefix(err, "batch of %zu", io->batch);
		gf_gpu_conv_free(c);
		return rc;
	}
	keep(io, io->batch, c);
	*conv = c;
	return 0;
}

static int forward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_net *g = io->g;
	const struct gf_gpu_view v = gf_gpu_view_of(g, &io->layer->out, io->batch);
	struct gf_gpu_conv *conv;
	size_t sizes[3];
	int rc = conv_of(io, &conv, err);

	if (rc)
		return rc;
	filter_sizes(io->layer, sizes);
	gf_gpu_from_plain(g, io->param[0], io->weight, sizes);
	rc = CUDNN_CHECK(ConvolutionForward, g->dnn->handle, &one, conv->in, io->in[0],
			 conv->filter, io->weight, conv->conv, conv->forward, g->work,
			 conv->forward_bytes, &zero, conv->out, io->out);
	if (!rc && io->param[1])
		g->kernels->add_bias(g->stream, &v, io->param[1], io->out);
	return rc;
}

/* What gf_gpu_from_plain does, the other way. */
static void to_plain(const struct gf_gpu_net *g, const void *from, float *to, const size_t sizes[3])
{
	const struct gf_gpu_permute p = {
		.from_type = g->dtype,
		.to_type = GF_F32,
		.from = from,
		.to = to,
		.outer = sizes[0],
		.a = g->channels_last ? sizes[2] : sizes[1] * sizes[2],
		.b = g->channels_last ? sizes[1] : 1,
		.scale = g->unscale,
	};

	g->kernels->permute(g->stream, &p);
}

static int backward(struct gf_gpu_io *io, struct gf_error *err)
{
	struct gf_gpu_net *g = io->g;
	const struct gf_gpu_view v = gf_gpu_view_of(g, &io->layer->out, io->batch);
	struct gf_gpu_conv *conv;
	size_t sizes[3];
	int rc = conv_of(io, &conv, err);

	if (!rc && io->dparam[0]) {
		filter_sizes(io->layer, sizes);
		rc = CUDNN_CHECK(ConvolutionBackwardFilter, g->dnn->handle, &one, conv->in,
				 io->in[0], conv->out, io->dout, conv->conv, conv->weight, g->work,
				 conv->weight_bytes, &zero, conv->filter, g->scratch);
		if (!rc)
			to_plain(g, g->scratch, io->dparam[0], sizes);
	}
	if (!rc && io->dparam[1])
		g->kernels->channel_sums(g->stream, &v, io->dout, g->unscale, io->dparam[1],
					 g->scratch);
	if (!rc && io->din[0])
		rc = CUDNN_CHECK(ConvolutionBackwardData, g->dnn->handle, &one, conv->filter,
				 io->weight, conv->out, io->dout, conv->conv, conv->data, g->work,
				 conv->data_bytes, io->add[0] ? &one : &zero, conv->in, io->din[0]);
	return rc;
}

static size_t scratch_bytes(const struct gf_gpu_io *io, size_t batch)
{
	const struct gf_gpu_view v = gf_gpu_view_of(io->g, &io->layer->out, batch);
	const size_t filter = filter_bytes(io), sums = gf_gpu_sums_work_bytes(&v);

	return filter > sums ? filter : sums;
}

const struct gf_gpu_layer gf_gpu_conv = {
	.forward = forward,
	.backward = backward,
	.prepare = prepare,
	.weight_bytes = filter_bytes,
	.scratch_bytes = scratch_bytes,
	.needs_in = true,
};
