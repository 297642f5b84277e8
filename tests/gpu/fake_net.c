/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "nn/graph.h"

struct state {
	struct gf_net *inner; /* touched by the device alone */
	struct gf_gpu *gpu;
	struct gf_gpu_stream *stream;
	struct gf_gpu_event *through; /* the loss is there */
	float *made;                  /* gradients, before they show */
	size_t count_elems;
	/* of the device */
	double loss;
	size_t correct;
	int rc;
	struct gf_error err;
};

/* The arguments of a pass. */
struct call {
	struct state *s;
	const float *params, *input;
	const int32_t *labels;
	float *grads;
	size_t first, count;
	int training;
	uint64_t seed;
	/* of the loss, as told when it was enqueued */
	float scale;
};

static void enqueue(struct state *s, void (*run)(void *ctx), struct call call)
{
	call.s = s;
	fake_enqueue_copy(s->stream, run, &call, sizeof(call));
}

static void run_samples(void *ctx)
{
	struct call *c = ctx;

	gf_net_set_samples(c->s->inner, c->seed, c->first);
}

static void tell(struct gf_net *net)
{
	enqueue(net->priv, run_samples,
		(struct call){.seed = net->dropout_seed, .first = net->first_sample});
}

static void net_free(struct gf_net *net)
{
	struct state *s;
	struct gf_error ignored;

	if (!net)
		return;
	s = net->priv;
	s->gpu->ops->stream_sync(s->gpu, s->stream, &ignored);
	gf_backend_ref.net_free(s->inner);
	free(s->made);
	free(s);
	gf_net_release(net);
	free(net);
}

static int net_new(const struct gf_model *m, size_t max_batch, const struct gf_net_options *options,
		   struct gf_net **net, struct gf_error *err)
{
	const struct gf_net_options plain = {.labels = options->labels};
	struct state *s = gf_xcalloc(1, sizeof(*s));
	struct gf_net *n = gf_xcalloc(1, sizeof(*n));
	int rc = gf_net_init(n, m, max_batch, options, err);

	rc = rc ? rc : gf_backend_ref.net_new(m, max_batch, &plain, &s->inner, err);
	if (rc)
		abort();
	s->gpu = options->gpu;
	s->stream = options->stream;
	s->gpu->ops->event_new(s->gpu, false, &s->through, err);
	s->count_elems = gf_model_param_count(m);
	s->made = gf_xcalloc(s->count_elems + 1, sizeof(*s->made));
	n->priv = s;
	n->tell = tell;
	*net = n;
	return 0;
}

/* A gradient that is scaled inside, rounded to f16. */
static float through_f16(float g, float scale)
{
	return fabsf(g * scale) > 65504 ? INFINITY : g;
}

/* The first failure is kept for result. */
static void run_forward(void *ctx)
{
	struct call *c = ctx;
	struct state *s = c->s;

	if (!s->rc)
		s->rc = gf_backend_ref.forward(s->inner, c->params, c->input, c->count, c->training,
					       &s->err);
}

static int forward(struct gf_net *net, const float *params, const float *input, size_t batch,
		   int training, struct gf_error *err)
{
	(void)err;
	enqueue(net->priv, run_forward,
		(struct call){
			.params = params, .input = input, .count = batch, .training = training});
	return 0;
}

static void run_loss(void *ctx)
{
	struct call *c = ctx;
	struct state *s = c->s;

	if (!s->rc)
		s->rc = gf_backend_ref.loss(s->inner, c->labels, &s->err);
	if (!s->rc)
		s->rc = gf_backend_ref.result(s->inner, &s->loss, &s->correct, &s->err);
}

static int loss(struct gf_net *net, const int32_t *labels, struct gf_error *err)
{
	struct state *s = net->priv;

	enqueue(s, run_loss, (struct call){.labels = labels});
	return s->gpu->ops->record(s->gpu, s->through, s->stream, err);
}

static int result(struct gf_net *net, double *loss_out, size_t *correct, struct gf_error *err)
{
	struct state *s = net->priv;
	int rc = s->gpu->ops->event_sync(s->gpu, s->through, err);

	if (!rc && s->rc)
		*err = s->err;
	rc = rc ? rc : s->rc;
	*loss_out = s->loss;
	*correct = s->correct;
	return rc;
}

static void run_backward(void *ctx)
{
	struct call *c = ctx;
	struct state *s = c->s;
	int rc = 0;
	size_t i;

	memset(c->grads, 0xff, s->count_elems * sizeof(float));
	if (!s->rc)
		rc = gf_backend_ref.backward(s->inner, c->params, s->made, NULL, NULL, &s->err);
	for (i = 0; i < s->count_elems && c->scale > 1; i++)
		s->made[i] = through_f16(s->made[i], c->scale);
	/* the host may be asking how the loss went */
	if (rc)
		s->rc = rc;
}

static void run_show(void *ctx)
{
	struct call *c = ctx;

	memcpy(c->grads + c->first, c->s->made + c->first, c->count * sizeof(float));
}

static int backward(struct gf_net *net, const float *params, float *grads,
		    void (*on_grad)(void *ctx, size_t tensor), void *ctx, struct gf_error *err)
{
	const struct gf_model *m = net->model;
	size_t *order = gf_model_generation_order(m), i, at = 0, n;

	(void)err;
	enqueue(net->priv, run_backward,
		(struct call){.params = params, .grads = grads, .scale = net->loss_scale});
	for (i = 0; i < m->nparams; i++, at += n) {
		n = gf_shape_elems(&m->params[order[i]].shape);
		enqueue(net->priv, run_show,
			(struct call){.grads = grads, .first = at, .count = n});
		if (on_grad)
			on_grad(ctx, i);
	}
	free(order);
	return 0;
}

static float *running(struct gf_net *net, size_t *count)
{
	struct state *s = net->priv;

	return gf_backend_ref.running(s->inner, count);
}

const struct gf_backend fake_backend = {
	.name = "fake",
	.on_device = true,
	.net_new = net_new,
	.net_free = net_free,
	.forward = forward,
	.loss = loss,
	.result = result,
	.backward = backward,
	.running = running,
};
