/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn_device.h"

#include <stdlib.h>
#include <string.h>

#include "nn/graph.h"

static struct gf_gpu *gpu;
static struct gf_gpu_stream *stream;
static struct gf_error reason;

/* By net: a test has few at a time. */
#define NETS 8
static struct {
	const struct gf_net *net;
	float *params, *input, *labels, *grads, *running;
	size_t nparams, ninput, nlabels;
	double loss; /* the latest that was right */
	size_t correct;
} nets[NETS];

static void must(int rc)
{
	if (rc) {
		printf("device: %s\n", reason.text);
		exit(1);
	}
}

static const char *open_device(void)
{
	return gpu ? NULL : nn_device_open(&gpu, &stream);
}

float *nn_device_put(const void *from, size_t count)
{
	void *p = NULL;

	(void)open_device();
	must(gpu->ops->alloc(gpu, (count + 1) * 4, &p, &reason));
	if (from && count) {
		must(gpu->ops->copy(gpu, stream, (float *)p + 1, from, count * 4, GF_GPU_TO_DEVICE,
				    &reason));
		must(gpu->ops->stream_sync(gpu, stream, &reason));
	}
	return (float *)p + 1;
}

void nn_device_get(void *to, const float *from, size_t count)
{
	if (count)
		must(gpu->ops->copy(gpu, stream, to, from, count * 4, GF_GPU_TO_HOST, &reason));
	must(gpu->ops->stream_sync(gpu, stream, &reason));
}

void nn_device_drop(float *p)
{
	if (p)
		gpu->ops->free(gpu, p - 1);
}

static size_t slot(const struct gf_net *net)
{
	size_t i = 0;

	while (i < NETS && nets[i].net != net)
		i++;
	if (i == NETS)
		abort();
	return i;
}

static void write_to(float *to, const void *from, size_t count)
{
	must(gpu->ops->copy(gpu, stream, to, from, count * 4, GF_GPU_TO_DEVICE, &reason));
	must(gpu->ops->stream_sync(gpu, stream, &reason));
}

static int net_new(const struct gf_model *m, size_t max_batch, const struct gf_net_options *options,
		   struct gf_net **net, struct gf_error *err)
{
	const char *why = open_device();
	struct gf_net_options there = *options;
	size_t i;
	int rc;

	if (why) {
		printf("%s\n", why);
		exit(77);
	}
	there.gpu = gpu;
	there.stream = stream;
	rc = gf_backend_cuda.net_new(m, max_batch, &there, net, err);
	if (rc)
		return rc;
	i = slot(NULL);
	nets[i].net = *net;
	nets[i].nparams = gf_model_param_count(m);
	nets[i].ninput = gf_shape_elems(&m->input);
	nets[i].nlabels = gf_model_positions(m);
	nets[i].params = nn_device_put(NULL, nets[i].nparams);
	nets[i].grads = nn_device_put(NULL, nets[i].nparams);
	nets[i].input = nn_device_put(NULL, max_batch * nets[i].ninput);
	nets[i].labels = nn_device_put(NULL, max_batch * nets[i].nlabels);
	nets[i].running = gf_xcalloc((*net)->nrunning + 1, sizeof(float));
	return 0;
}

static void net_free(struct gf_net *net)
{
	const size_t i = slot(net);

	gf_backend_cuda.net_free(net);
	nn_device_drop(nets[i].params);
	nn_device_drop(nets[i].grads);
	nn_device_drop(nets[i].input);
	nn_device_drop(nets[i].labels);
	free(nets[i].running);
	memset(&nets[i], 0, sizeof(nets[i]));
}

/* Wrong numbers and labels are reported at once, as the other backends do. */
static int settle(struct gf_net *net, struct gf_error *err)
{
	const size_t i = slot(net);

	return gf_backend_cuda.result(net, &nets[i].loss, &nets[i].correct, err);
}

static int has_numbers(const struct gf_net *net)
{
	return gf_model_vocabulary(net->model) > 0;
}

static int forward(struct gf_net *net, const float *params, const float *input, size_t batch,
		   int training, struct gf_error *err)
{
	const size_t i = slot(net);
	const bool fits = batch <= net->max_batch;
	int32_t *labels;
	int rc;

	write_to(nets[i].params, params, nets[i].nparams);
	if (fits)
		write_to(nets[i].input, input, batch * nets[i].ninput);
	rc = gf_backend_cuda.forward(net, nets[i].params, nets[i].input, batch, training, err);
	if (rc || !has_numbers(net))
		return rc;
	labels = gf_xcalloc(batch * nets[i].nlabels, sizeof(*labels));
	write_to(nets[i].labels, labels, batch * nets[i].nlabels);
	free(labels);
	rc = gf_backend_cuda.loss(net, (int32_t *)(void *)nets[i].labels, err);
	rc = rc ? rc : settle(net, err);
	net->stage = rc ? GF_NET_IDLE : GF_NET_FORWARD;
	return rc;
}

static int loss(struct gf_net *net, const int32_t *labels, struct gf_error *err)
{
	const size_t i = slot(net);
	int rc;

	if (net->stage == GF_NET_FORWARD)
		write_to(nets[i].labels, labels, net->batch * nets[i].nlabels);
	rc = gf_backend_cuda.loss(net, (int32_t *)(void *)nets[i].labels, err);
	rc = rc ? rc : settle(net, err);
	if (rc && net->stage == GF_NET_LOSS)
		net->stage = GF_NET_FORWARD;
	return rc;
}

/* Elements that nothing writes keep their values. */
static int backward(struct gf_net *net, const float *params, float *grads,
		    void (*on_grad)(void *ctx, size_t tensor), void *ctx, struct gf_error *err)
{
	const size_t i = slot(net);
	int rc;

	write_to(nets[i].params, params, nets[i].nparams);
	write_to(nets[i].grads, grads, nets[i].nparams);
	rc = gf_backend_cuda.backward(net, nets[i].params, nets[i].grads, on_grad, ctx, err);
	if (!rc)
		nn_device_get(grads, nets[i].grads, nets[i].nparams);
	return rc;
}

static float *running(struct gf_net *net, size_t *count)
{
	const size_t i = slot(net);
	float *on_device = gf_backend_cuda.running(net, count);

	if (on_device)
		nn_device_get(nets[i].running, on_device, *count);
	return on_device ? nets[i].running : NULL;
}

static int result(struct gf_net *net, double *value, size_t *correct, struct gf_error *err)
{
	const size_t i = slot(net);

	if (!net->has_loss)
		return gf_backend_cuda.result(net, value, correct, err);
	*value = nets[i].loss;
	*correct = nets[i].correct;
	return 0;
}

static const struct gf_backend adapted = {
	.name = "cuda",
	.net_new = net_new,
	.net_free = net_free,
	.forward = forward,
	.loss = loss,
	.result = result,
	.backward = backward,
	.running = running,
};

const struct gf_backend *const nn_device_backends[] = {&adapted, NULL};
