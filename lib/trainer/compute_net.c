/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/computing.h"

#include <string.h>

#include "base/heap.h"
#include "data/loader.h"
#include "trainer/net_device.h"

/* Threads that fetch for a GPU, which is faster than one of them. */
#define DEVICE_LOADERS 4

struct net {
	struct gf_compute_ops ops; /* a device's do more */
	struct gf_train_net_config config;
	struct gf_net *net;
	struct gf_loader *loader;
	const struct gf_batch *batch;       /* the loader's, of this step; NULL */
	size_t step, part;                  /* of the batch; which micro-batch it is */
	struct gf_train_device *device;     /* NULL: the host */
	struct gf_train_device_batch there; /* the batch, on the device, */
	bool is_there;                      /* if it is */
	float *running;                     /* the host's, of a net on a device */
	double scale;                       /* that the net was told; 0: none */
};

static bool serves(const struct gf_train_net_config *k)
{
	return k->rank >= k->ranks;
}

/* The loader may overwrite a batch that is on the device. */
static void let_go(struct net *n)
{
	if (n->device && n->batch)
		(void)gf_train_device_copied(n->device, NULL);
	n->batch = NULL;
	n->is_there = false;
}

static int take(struct net *n, size_t step, size_t part, struct gf_error *err)
{
	let_go(n);
	n->step = step;
	n->part = part;
	return gf_loader_take(n->loader, step, part, &n->batch, err);
}

static int load(struct gf_compute *c, size_t step, size_t part, struct gf_error *err)
{
	struct net *n = c->priv;
	int rc = 0;

	if (serves(&n->config))
		return 0;
	if (!n->batch || n->step != step || n->part != part)
		rc = take(n, step, part, err);
	if (!rc)
		gf_net_set_samples(n->net, n->config.seed, n->batch->first_sample);
	return rc;
}

/* The first `batch` samples of it. */
static int send(struct net *n, size_t batch, struct gf_error *err)
{
	const struct gf_dataset *d = n->config.data;
	int rc;

	n->there = (struct gf_train_device_batch){
		.values = n->batch->values,
		.labels = n->batch->labels,
		.nvalues = batch * gf_shape_elems(&d->shape),
		.nlabels = batch * d->positions,
	};
	rc = gf_train_device_input(n->device, &n->there, err);
	n->is_there = !rc;
	return rc;
}

/* The next batch goes to the device beside the pass that is under way, if the loader has it. */
static int send_next(struct net *n, struct gf_error *err)
{
	const bool last = n->part + 1 == n->config.accumulate;
	const size_t step = last ? n->step + 1 : n->step;
	const size_t part = last ? 0 : n->part + 1;

	if (!n->device || !gf_loader_ready(n->loader, step, part))
		return 0;
	return take(n, step, part, err) ?: send(n, n->config.batch, err);
}

/* A captured pass keeps the scale that it was captured with, so a new scale gives up captured
 * passes. */
static int scale(struct gf_compute *c, double scale, struct gf_error *err)
{
	struct net *n = c->priv;

	if (!n->config.half || serves(&n->config) || scale == n->scale)
		return 0;
	n->scale = scale;
	gf_net_set_loss_scale(n->net, (float)scale);
	return n->device ? gf_train_device_forget(n->device, err) : 0;
}

/* On the device, where the batch is. */
static int pass_there(struct net *n, size_t batch, bool training, struct gf_error *err)
{
	const struct gf_train_device_pass pass = {
		.backend = n->config.backend,
		.net = n->net,
		.on = n->there,
		.batch = batch,
		.training = training,
		.part = n->part,
	};

	return gf_train_device_forward(n->device, &pass, err);
}

/* Forward and loss of the batch's first `batch` samples. */
static int pass(struct net *n, size_t batch, bool training, struct gf_error *err)
{
	const struct gf_train_net_config *k = &n->config;
	int rc = 0;

	if (n->device) {
		rc = n->is_there ? 0 : send(n, batch, err);
		return rc ?: pass_there(n, batch, training, err);
	}
	rc = k->backend->forward(n->net, k->params, n->batch->values, batch, training, err);
	return rc ?: k->backend->loss(n->net, n->batch->labels, err);
}

static int forward(struct gf_compute *c, struct gf_error *err)
{
	struct net *n = c->priv;
	int rc;

	if (serves(&n->config))
		return 0;
	gf_net_set_need(n->net, c->on_need, c->need_ctx);
	rc = pass(n, n->config.batch, true, err);
	/* tests come between steps, where parameters stand */
	gf_net_set_need(n->net, NULL, NULL);
	return rc;
}

static int result(struct gf_compute *c, double *loss, size_t *correct, struct gf_error *err)
{
	struct net *n = c->priv;

	*loss = 0;
	*correct = 0;
	if (serves(&n->config))
		return 0;
	return send_next(n, err) ?: n->config.backend->result(n->net, loss, correct, err);
}

static int backward(struct gf_compute *c, float *grads, void (*on_grad)(void *ctx, size_t tensor),
		    void *ctx, struct gf_error *err)
{
	struct net *n = c->priv;
	const struct gf_train_net_config *k = &n->config;
	int rc;

	for (size_t i = 0; serves(k) && i < k->model->nparams; i++)
		on_grad(ctx, i);
	if (serves(k))
		return 0;
	if (n->device)
		return gf_train_device_backward(n->device, grads, on_grad, ctx, err);
	gf_net_set_need(n->net, c->on_need, c->need_ctx);
	rc = k->backend->backward(n->net, k->params, grads, on_grad, ctx, err);
	gf_net_set_need(n->net, NULL, NULL);
	return rc;
}

static int backward_early(struct gf_compute *c, float *grads, struct gf_error *err)
{
	struct net *n = c->priv;

	return serves(&n->config) ? 0 : gf_train_device_early(n->device, grads, err);
}

static double forward_s(const struct gf_compute *c)
{
	const struct net *n = c->priv;

	return gf_train_device_forward_s(n->device);
}

static int updated(struct gf_compute *c, struct gf_error *err)
{
	struct net *n = c->priv;

	return n->device && !n->config.stays ? gf_train_device_join(n->device, err) : 0;
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

	if (!n->device)
		return 0;
	return gf_train_device_copy(n->device, n->running, own, count, GF_GPU_TO_HOST, err);
}

/* Running statistics for the following passes. */
static int set_running(struct net *n, const float *from, struct gf_error *err)
{
	size_t count;
	float *own = n->config.backend->running(n->net, &count);

	if (!count)
		return 0;
	if (n->device)
		return gf_train_device_copy(n->device, own, from, count, GF_GPU_TO_DEVICE, err);
	memcpy(own, from, count * sizeof(*own));
	return 0;
}

int gf_compute_send(struct gf_compute *c, struct gf_error *err)
{
	struct net *n = c->priv;
	int rc;

	if (!n->device)
		return 0;
	rc = gf_train_device_copy(n->device, gf_compute_arrays(c).params, n->config.params,
				  gf_model_param_count(n->config.model), GF_GPU_TO_DEVICE, err);
	return rc ?: set_running(n, n->running, err);
}

struct gf_train_arrays gf_compute_arrays(const struct gf_compute *c)
{
	const struct net *n = c->priv;

	return n->device ? gf_train_device_arrays(n->device) : (struct gf_train_arrays){0};
}

struct gf_net_memory gf_compute_memory(const struct gf_compute *c)
{
	const struct net *n = c->priv;

	return gf_net_memory(n->net);
}

size_t gf_compute_test_bytes(const struct gf_compute *c)
{
	const struct net *n = c->priv;
	struct gf_net_memory all = gf_net_memory(n->net), one;
	size_t l, sum = all.weights_bytes + all.activations_bytes + all.gradients_bytes;

	for (l = 0; l < n->config.model->nlayers && !n->device; l++) {
		one = gf_net_layer_memory(n->net, l);
		sum -= one.weights_bytes + one.activations_bytes + one.gradients_bytes;
	}
	return n->device ? 0 : sum;
}

struct gf_optim_watch gf_compute_watch(struct gf_compute *c)
{
	struct net *n = c->priv;
	struct gf_optim_watch watch = {NULL, NULL};

	if (n->device && !n->config.stays)
		watch = (struct gf_optim_watch){gf_train_device_changed, n->device};
	return watch;
}

/* --- tests ---------------------------------------------------------------- */

/* A batch that was taken ahead for the next step is taken again. */
static int test_share(struct net *n, struct gf_score *score, struct gf_error *err)
{
	const struct gf_train_net_config *k = &n->config;
	size_t number, right, count;
	double loss;
	int rc;

	for (number = 0;; number++) {
		let_go(n);
		rc = gf_loader_take_test(n->loader, number, &n->batch, &count, err);
		if (rc || !count)
			break;
		rc = pass(n, count, false, err);
		rc = rc ?: k->backend->result(n->net, &loss, &right, err);
		if (rc)
			break;
		score->loss += loss * (double)(count * gf_dataset_labels(k->data));
		score->correct += right;
	}
	let_go(n);
	return rc;
}

int gf_compute_test(struct gf_compute *c, const float *running, struct gf_score *score,
		    struct gf_error *err)
{
	struct net *n = c->priv;
	size_t nrunning;
	const float *own = gf_compute_running(c, &nrunning);
	GF_FREED float *kept = NULL;
	int rc, after;

	rc = gf_compute_fetch(c, err);
	if (rc)
		return rc;
	/* training goes on with this rank's own statistics */
	kept = gf_xmemdup(own, nrunning * sizeof(*own));
	rc = set_running(n, running, err);
	*score = (struct gf_score){0};
	if (!rc && !serves(&n->config))
		rc = test_share(n, score, err);
	after = set_running(n, kept, rc ? NULL : err);
	return rc ?: after;
}

static void abandon_net(struct gf_compute *c)
{
	struct net *n = c->priv;

	if (!n)
		return;
	gf_loader_free(n->loader);
	n->loader = NULL;
}

static void close_net(struct gf_compute *c)
{
	struct net *n = c->priv;

	if (!n)
		return;
	abandon_net(c);
	if (n->net)
		n->config.backend->net_free(n->net);
	gf_train_device_free(n->device);
	free(n->running);
	free(n);
	memset(c, 0, sizeof(*c));
}

static const struct gf_compute_ops host_ops = {
	.load = load,
	.scale = scale,
	.forward = forward,
	.backward = backward,
	.result = result,
	.updated = updated,
	.abandon = abandon_net,
	.close = close_net,
};

static int open_device(struct net *n, struct gf_error *err)
{
	const struct gf_train_net_config *k = &n->config;
	int rc = gf_train_device_new(
		&(struct gf_train_device_config){
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

static void open_loader(struct net *n)
{
	const struct gf_train_net_config *k = &n->config;
	struct gf_batch room[GF_LOADER_BATCHES];

	if (serves(k))
		return;
	/* batches lie where the device copies them from */
	for (size_t i = 0; n->device && i < GF_LOADER_BATCHES; i++) {
		struct gf_train_device_room r = gf_train_device_room(n->device, i);

		room[i] = (struct gf_batch){r.values, r.labels, 0};
	}
	n->loader = gf_loader_new(&(struct gf_loader_config){
		.data = k->data,
		.augment = k->augment,
		.batch = k->batch,
		.accumulate = k->accumulate,
		.test_samples = k->test_samples,
		.ranks = k->ranks,
		.rank = k->rank,
		.seed = k->seed,
		.threads = k->loaders  ? k->loaders
			   : n->device ? DEVICE_LOADERS
				       : 1,
		.room = n->device ? room : NULL,
	});
}

int gf_compute_net(const struct gf_train_net_config *config, struct gf_compute *c,
		   struct gf_error *err)
{
	struct net *n = gf_xcalloc(1, sizeof(*n));
	size_t count;
	int rc = 0;

	n->config = *config;
	n->ops = host_ops;
	if (config->backend->on_device) {
		n->ops.backward_early = backward_early;
		n->ops.forward_s = config->stays ? NULL : forward_s;
	}
	c->ops = &n->ops;
	c->priv = n;
	if (config->backend->on_device)
		rc = open_device(n, err);
	if (rc)
		return rc;
	open_loader(n);
	rc = config->backend->net_new(config->model, config->batch,
				      &(struct gf_net_options){
					      .threads = config->threads,
					      .labels = gf_dataset_labels(config->data),
					      .precision = config->precision,
					      .in_place = config->in_place,
					      .gpu = config->gpu,
					      .stream = config->stream,
				      },
				      &n->net, err);
	if (rc)
		return rc;
	if (!n->device)
		return 0;
	config->backend->running(n->net, &count);
	n->running = gf_xcalloc(count + 1, sizeof(*n->running));
	return gf_compute_fetch(c, err);
}
