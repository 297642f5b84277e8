/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/compute.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "data/loader.h"
#include "data/order.h"
#include "train/net_device.h"

struct net {
	struct gf_net_config config;
	struct gf_net *net;
	struct gf_loader *loader;
	const struct gf_batch *batch; /* the loader's, of this step */
	size_t part;                  /* its micro-batch that is computed */
	float *values;                /* for tests */
	int32_t *labels;
	struct gf_net_device *device; /* NULL: the host */
	float *running;               /* the host's, of a net on a device */
	double scale;                 /* that the net was told; 0: none */
};

static bool serves(const struct gf_net_config *k)
{
	return k->rank >= k->ranks;
}

static void load(struct gf_compute *c, size_t step, size_t part)
{
	struct net *n = c->priv;

	if (serves(&n->config))
		return;
	n->part = part;
	n->batch = gf_loader_take(n->loader, step, part);
	gf_net_set_samples(n->net, n->config.seed, n->batch->first_sample);
}

/* A captured pass keeps the scale that it was captured with, so a new scale
 * gives up captured passes. */
static int scale(struct gf_compute *c, double scale, struct gf_error *err)
{
	struct net *n = c->priv;

	if (!n->config.half || serves(&n->config) || scale == n->scale)
		return 0;
	n->scale = scale;
	gf_net_set_loss_scale(n->net, (float)scale);
	return n->device ? gf_net_device_forget(n->device, err) : 0;
}

/* Forward and loss of `batch` samples. */
static int compute(struct net *n, const float *values, const int32_t *labels,
		   size_t batch, bool training, struct gf_error *err)
{
	const struct gf_net_config *k = &n->config;
	struct gf_net_device_pass pass = {
		.backend = k->backend,
		.net = n->net,
		.on =
			{
				.values = values,
				.labels = labels,
				.nvalues =
					batch * gf_shape_elems(&k->data->shape),
				.nlabels = batch * k->data->positions,
			},
		.batch = batch,
		.training = training,
		.part = n->part,
	};
	int rc;

	if (n->device) {
		rc = gf_net_device_input(n->device, &pass.on, err);
		return rc ? rc : gf_net_device_forward(n->device, &pass, err);
	}
	rc = k->backend->forward(n->net, k->params, values, batch, training,
				 err);
	return rc ? rc : k->backend->loss(n->net, labels, err);
}

static int forward(struct gf_compute *c, struct gf_error *err)
{
	struct net *n = c->priv;
	int rc;

	if (serves(&n->config))
		return 0;
	gf_net_set_need(n->net, c->on_need, c->need_ctx);
	rc = compute(n, n->batch->values, n->batch->labels, n->config.batch,
		     true, err);
	/* tests come between steps, where parameters stand */
	gf_net_set_need(n->net, NULL, NULL);
	return rc;
}

static int result(struct gf_compute *c, double *loss, size_t *correct,
		  struct gf_error *err)
{
	struct net *n = c->priv;

	*loss = 0;
	*correct = 0;
	if (serves(&n->config))
		return 0;
	return n->config.backend->result(n->net, loss, correct, err);
}

static int backward(struct gf_compute *c, float *grads,
		    void (*on_grad)(void *ctx, size_t tensor), void *ctx,
		    struct gf_error *err)
{
	struct net *n = c->priv;
	const struct gf_net_config *k = &n->config;
	size_t i;

	for (i = 0; serves(k) && i < k->model->nparams; i++)
		on_grad(ctx, i);
	if (serves(k))
		return 0;
	if (n->device)
		return gf_net_device_backward(n->device, grads, on_grad, ctx,
					      err);
	return k->backend->backward(n->net, k->params, grads, on_grad, ctx,
				    err);
}

static int backward_early(struct gf_compute *c, float *grads,
			  struct gf_error *err)
{
	struct net *n = c->priv;

	if (serves(&n->config))
		return 0;
	return gf_net_device_early(n->device, grads, err);
}

static double forward_s(const struct gf_compute *c)
{
	const struct net *n = c->priv;

	return gf_net_device_forward_s(n->device);
}

static int update(struct gf_compute *c, struct gf_method *m, size_t step,
		  double lr, struct gf_error *err)
{
	struct net *n = c->priv;

	gf_method_update(m, step, lr);
	return n->device && !n->config.stays
		       ? gf_net_device_join(n->device, err)
		       : 0;
}

/* --- what is kept where --------------------------------------------------- */

float *gf_compute_running(struct gf_compute *c, size_t *count)
{
	struct net *n = c->priv;
	float *own = n->config.backend->running(n->net, count);

	return n->device ? n->running : own;
}

int gf_compute_fetch(struct gf_compute *c, struct gf_error *err)
{
	struct net *n = c->priv;
	size_t count;
	const float *own = n->config.backend->running(n->net, &count);

	if (!n->device || !count)
		return 0;
	return gf_net_device_fetch(n->device, n->running, own, count, err);
}

/* Running statistics for the following passes. */
static int set_running(struct net *n, const float *from, struct gf_error *err)
{
	size_t count;
	float *own = n->config.backend->running(n->net, &count);

	if (!count)
		return 0;
	if (n->device)
		return gf_net_device_send(n->device, own, from, count, err);
	memcpy(own, from, count * sizeof(*own));
	return 0;
}

int gf_compute_send(struct gf_compute *c, struct gf_error *err)
{
	struct net *n = c->priv;
	int rc;

	if (!n->device)
		return 0;
	rc = gf_net_device_send(n->device, gf_net_device_params(n->device),
				n->config.params,
				gf_model_param_count(n->config.model), err);
	return rc ? rc : set_running(n, n->running, err);
}

float *gf_compute_device_params(const struct gf_compute *c)
{
	const struct net *n = c->priv;

	return n->device ? gf_net_device_params(n->device) : NULL;
}

float *gf_compute_device_grads(const struct gf_compute *c)
{
	const struct net *n = c->priv;

	return n->device ? gf_net_device_grads(n->device) : NULL;
}

size_t gf_compute_device_stride(const struct gf_compute *c)
{
	const struct net *n = c->priv;

	return n->device ? gf_net_device_stride(n->device) : 0;
}

void gf_compute_take(struct gf_compute *c, const struct gf_stage_taker *by)
{
	struct net *n = c->priv;

	gf_net_device_take(n->device, by);
}

struct gf_optim_watch gf_compute_watch(struct gf_compute *c)
{
	struct net *n = c->priv;
	struct gf_optim_watch watch = {NULL, NULL};

	if (n->device && !n->config.stays)
		watch = (struct gf_optim_watch){gf_net_device_changed,
						n->device};
	return watch;
}

/* --- tests ---------------------------------------------------------------- */

static int test_range(struct net *n, size_t first, size_t count,
		      double *loss_sum, size_t *correct, struct gf_error *err)
{
	const struct gf_net_config *k = &n->config;
	size_t *indices = gf_xcalloc(k->batch, sizeof(*indices));
	size_t i, right, b;
	double loss;
	int rc = 0;

	for (; count && !rc; first += b, count -= b) {
		b = count < k->batch ? count : k->batch;
		for (i = 0; i < b; i++)
			indices[i] = first + i;
		gf_dataset_batch(k->data, GF_PART_TEST, indices, b, n->values,
				 n->labels);
		rc = compute(n, n->values, n->labels, b, false, err);
		if (!rc)
			rc = k->backend->result(n->net, &loss, &right, err);
		if (rc)
			break;
		*loss_sum += loss * (double)(b * k->data->positions);
		*correct += right;
	}
	free(indices);
	return rc;
}

int gf_compute_test(struct gf_compute *c, const float *running,
		    double *loss_sum, size_t *correct, struct gf_error *err)
{
	struct net *n = c->priv;
	const struct gf_net_config *k = &n->config;
	size_t first, count, nrunning;
	const float *own = gf_compute_running(c, &nrunning);
	float *kept;
	int rc, after;

	rc = gf_compute_fetch(c, err);
	if (rc)
		return rc;
	/* training goes on with this rank's own statistics */
	kept = gf_xmemdup(own, nrunning * sizeof(*own));
	rc = set_running(n, running, err);
	*loss_sum = 0;
	*correct = 0;
	first = count = 0;
	if (!serves(k))
		gf_order_share(k->data->count[GF_PART_TEST], k->ranks, k->rank,
			       &first, &count);
	rc = rc ? rc : test_range(n, first, count, loss_sum, correct, err);
	after = set_running(n, kept, rc ? NULL : err);
	free(kept);
	return rc ? rc : after;
}

static void close_net(struct gf_compute *c)
{
	struct net *n = c->priv;

	if (!n)
		return;
	if (n->net)
		n->config.backend->net_free(n->net);
	gf_net_device_free(n->device);
	free(n->running);
	gf_loader_free(n->loader);
	free(n->values);
	free(n->labels);
	free(n);
	memset(c, 0, sizeof(*c));
}

static const struct gf_compute_ops net_ops = {
	.load = load,
	.scale = scale,
	.forward = forward,
	.backward = backward,
	.result = result,
	.update = update,
	.close = close_net,
};

/* A net on a device. */
static const struct gf_compute_ops resident_ops = {
	.load = load,
	.scale = scale,
	.forward = forward,
	.backward = backward,
	.backward_early = backward_early,
	.result = result,
	.update = update,
	.close = close_net,
};

/* The same, whose gradients go by the host. */
static const struct gf_compute_ops staged_ops = {
	.load = load,
	.scale = scale,
	.forward = forward,
	.backward = backward,
	.backward_early = backward_early,
	.result = result,
	.forward_s = forward_s,
	.update = update,
	.close = close_net,
};

static int open_device(struct net *n, struct gf_error *err)
{
	const struct gf_net_config *k = &n->config;
	int rc = gf_net_device_new(
		&(struct gf_net_device_config){
			.gpu = k->gpu,
			.stream = k->stream,
			.model = k->model,
			.params = k->params,
			.values = k->batch * gf_shape_elems(&k->data->shape),
			.labels = k->batch * k->data->positions,
			.timeout_s = k->timeout_s,
			.stays = k->stays,
			.pools = k->pools,
			.accumulate = k->accumulate,
			.cut = k->cut,
		},
		&n->device, err);
	return rc;
}

int gf_compute_net(const struct gf_net_config *config, struct gf_compute *c,
		   struct gf_error *err)
{
	struct net *n = gf_xcalloc(1, sizeof(*n));
	size_t count;
	int rc = 0;

	n->config = *config;
	n->values =
		gf_xcalloc(config->batch * gf_shape_elems(&config->data->shape),
			   sizeof(*n->values));
	n->labels = gf_xcalloc(config->batch * config->data->positions,
			       sizeof(*n->labels));
	c->ops = !config->backend->on_device ? &net_ops
		 : config->stays             ? &resident_ops
					     : &staged_ops;
	c->priv = n;
	if (!serves(config))
		n->loader = gf_loader_new(&(struct gf_loader_config){
			.data = config->data,
			.augment = config->augment,
			.batch = config->batch,
			.accumulate = config->accumulate,
			.ranks = config->ranks,
			.rank = config->rank,
			.seed = config->seed,
		});
	if (config->backend->on_device)
		rc = open_device(n, err);
	rc = rc ? rc
		: config->backend->net_new(
			  config->model, config->batch,
			  &(struct gf_net_options){
				  .threads = config->threads,
				  .precision = config->precision,
				  .gpu = config->gpu,
				  .stream = config->stream,
			  },
			  &n->net, err);
	if (rc || !n->device)
		return rc;
	config->backend->running(n->net, &count);
	n->running = gf_xcalloc(count + 1, sizeof(*n->running));
	return gf_compute_fetch(c, err);
}
