/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/compute.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "data/loader.h"
#include "data/order.h"

struct net {
	struct gf_net_config config;
	struct gf_net *net;
	struct gf_loader *loader;
	const struct gf_batch *batch; /* the loader's, of this step */
	float *values;                /* for tests */
	int32_t *labels;
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
	n->batch = gf_loader_take(n->loader, step, part);
	gf_net_set_samples(n->net, n->config.seed, n->batch->first_sample);
}

static int forward(struct gf_compute *c, double *loss, size_t *correct,
		   struct gf_error *err)
{
	struct net *n = c->priv;
	const struct gf_net_config *k = &n->config;
	int rc;

	*loss = 0;
	*correct = 0;
	if (serves(k))
		return 0;
	rc = k->backend->forward(n->net, k->params, n->batch->values, k->batch,
				 1, err);
	if (!rc)
		rc = k->backend->loss(n->net, n->batch->labels, err);
	return rc ? rc : k->backend->result(n->net, loss, correct, err);
}

static int backward(struct gf_compute *c, float *grads,
		    void (*on_grad)(void *ctx, size_t tensor), void *ctx,
		    struct gf_error *err)
{
	struct net *n = c->priv;
	size_t i;

	for (i = 0; serves(&n->config) && i < n->config.model->nparams; i++)
		on_grad(ctx, i);
	if (serves(&n->config))
		return 0;
	return n->config.backend->backward(n->net, n->config.params, grads,
					   on_grad, ctx, err);
}

static void update(struct gf_compute *c, struct gf_method *m, size_t step,
		   double lr)
{
	(void)c;
	gf_method_update(m, step, lr);
}

float *gf_compute_running(struct gf_compute *c, size_t *count)
{
	struct net *n = c->priv;

	return n->config.backend->running(n->net, count);
}

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
		rc = k->backend->forward(n->net, k->params, n->values, b, 0,
					 err);
		if (!rc)
			rc = k->backend->loss(n->net, n->labels, err);
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
	float *own = k->backend->running(n->net, &nrunning), *kept = NULL;
	int rc;

	/* training goes on with this rank's own statistics */
	if (nrunning) {
		kept = gf_xmemdup(own, nrunning * sizeof(*own));
		memcpy(own, running, nrunning * sizeof(*own));
	}
	*loss_sum = 0;
	*correct = 0;
	first = count = 0;
	if (!serves(k))
		gf_order_share(k->data->count[GF_PART_TEST], k->ranks, k->rank,
			       &first, &count);
	rc = test_range(n, first, count, loss_sum, correct, err);
	if (nrunning)
		memcpy(own, kept, nrunning * sizeof(*own));
	free(kept);
	return rc;
}

static void close_net(struct gf_compute *c)
{
	struct net *n = c->priv;

	if (!n)
		return;
	if (n->net)
		n->config.backend->net_free(n->net);
	gf_loader_free(n->loader);
	free(n->values);
	free(n->labels);
	free(n);
	memset(c, 0, sizeof(*c));
}

static const struct gf_compute_ops net_ops = {
	.load = load,
	.forward = forward,
	.backward = backward,
	.update = update,
	.close = close_net,
};

int gf_compute_net(const struct gf_net_config *config, struct gf_compute *c,
		   struct gf_error *err)
{
	struct net *n = gf_xcalloc(1, sizeof(*n));

	n->config = *config;
	n->values =
		gf_xcalloc(config->batch * gf_shape_elems(&config->data->shape),
			   sizeof(*n->values));
	n->labels = gf_xcalloc(config->batch * config->data->positions,
			       sizeof(*n->labels));
	c->ops = &net_ops;
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
	return config->backend->net_new(config->model, config->batch, &n->net,
					err);
}
