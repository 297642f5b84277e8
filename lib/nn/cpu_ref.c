/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "nn/ref.h"

/*
 * The reference backend: portable C, one thread, plain layouts. It is the
 * specification that the others are tested against.
 */
static const struct gf_ref_layer *const layers[] = {
	[GF_LAYER_CONV] = &gf_ref_conv,
	[GF_LAYER_BATCHNORM] = &gf_ref_batchnorm,
	[GF_LAYER_RELU] = &gf_ref_relu,
	[GF_LAYER_MAXPOOL] = &gf_ref_maxpool,
	[GF_LAYER_AVGPOOL] = &gf_ref_avgpool,
	[GF_LAYER_GLOBALPOOL] = &gf_ref_globalpool,
	[GF_LAYER_FC] = &gf_ref_fc,
	[GF_LAYER_ADD] = &gf_ref_add,
};

struct state {
	const float *input;  /* of the last forward, borrowed */
	float **out, **dout; /* per layer; dout NULL without gradient */
	void **saved;
};

static void net_free(struct gf_net *net)
{
	struct state *s;

	if (!net)
		return;
	s = net->priv;
	for (size_t l = 0; s && l < net->model->nlayers; l++) {
		free(s->out[l]);
		free(s->dout[l]);
		free(s->saved[l]);
	}
	if (s) {
		free(s->out);
		free(s->dout);
		free(s->saved);
	}
	free(s);
	gf_net_release(net);
	free(net);
}

static int allocate_layer(struct gf_net *net, size_t l)
{
	const struct gf_layer *layer = &net->model->layers[l];
	const struct gf_ref_layer *ops = layers[layer->type];
	size_t count = net->max_batch * gf_shape_elems(&layer->out);
	size_t saved =
		ops->saved_bytes ? ops->saved_bytes(layer, net->max_batch) : 0;
	struct state *s = net->priv;

	s->out[l] = calloc(count, sizeof(float));
	if (net->has_gradient[l])
		s->dout[l] = calloc(count, sizeof(float));
	if (saved)
		s->saved[l] = calloc(saved, 1);
	if (!s->out[l] || (net->has_gradient[l] && !s->dout[l]) ||
	    (saved && !s->saved[l]))
		return -ENOMEM;
	return 0;
}

static int net_new(const struct gf_model *m, size_t max_batch,
		   struct gf_net **net, struct gf_error *err)
{
	struct gf_net *n = gf_xcalloc(1, sizeof(*n));
	struct state *s;
	int rc = gf_net_init(n, m, max_batch, err);

	if (rc) {
		free(n);
		return rc;
	}
	n->priv = s = gf_xcalloc(1, sizeof(*s));
	s->out = gf_xcalloc(m->nlayers, sizeof(*s->out));
	s->dout = gf_xcalloc(m->nlayers, sizeof(*s->dout));
	s->saved = gf_xcalloc(m->nlayers, sizeof(*s->saved));
	for (size_t l = 0; l < m->nlayers; l++) {
		rc = allocate_layer(n, l);
		if (rc) {
			gf_error_errno(err, rc, "layer %s", m->layers[l].name);
			net_free(n);
			return rc;
		}
	}
	*net = n;
	return 0;
}

static struct gf_ref_io layer_io(struct gf_net *net, const float *params,
				 float *grads, size_t l)
{
	const struct gf_layer *layer = &net->model->layers[l];
	struct state *s = net->priv;
	struct gf_ref_io io = {
		.layer = layer,
		.batch = net->batch,
		.training = net->training,
		.out = s->out[l],
		.dout = s->dout[l],
		.saved = s->saved[l],
		.running = net->running + net->running_at[l],
		.weight = gf_net_param(net, (float *)params, l, 0),
		.bias = gf_net_param(net, (float *)params, l, 1),
	};

	for (int i = 0; i < 2; i++) {
		int from = layer->from[i];

		if (from == -2)
			continue;
		io.in[i] = from < 0 ? s->input : s->out[from];
		io.din[i] = from < 0 ? NULL : s->dout[from];
	}
	if (grads) {
		io.dweight = gf_net_param(net, grads, l, 0);
		io.dbias = gf_net_param(net, grads, l, 1);
	}
	return io;
}

static int forward(struct gf_net *net, const float *params, const float *input,
		   size_t batch, int training, struct gf_error *err)
{
	const struct gf_model *m = net->model;
	struct state *s = net->priv;
	int rc = gf_net_begin_forward(net, batch, training, err);

	if (rc)
		return rc;
	s->input = input;
	for (size_t l = 0; l < m->nlayers; l++) {
		struct gf_ref_io io = layer_io(net, params, NULL, l);
		size_t channels = io.layer->in.dims[0];
		const float *saved = io.saved;

		if (!net->on_path[l])
			continue;
		layers[io.layer->type]->forward(&io);
		if (io.layer->type == GF_LAYER_BATCHNORM && training)
			gf_net_update_running(
				net, l, saved, saved + channels,
				batch * gf_shape_spatial(&io.layer->in));
	}
	memcpy(net->logits, s->out[m->nlayers - 1],
	       batch * net->positions * m->classes * sizeof(float));
	return 0;
}

static int backward(struct gf_net *net, const float *params, float *grads,
		    void (*on_grad)(void *ctx, size_t tensor), void *ctx,
		    struct gf_error *err)
{
	const struct gf_model *m = net->model;
	struct state *s = net->priv;
	int rc = gf_net_begin_backward(net, err);

	if (rc)
		return rc;
	for (size_t l = 0; l < m->nlayers; l++)
		if (s->dout[l])
			memset(s->dout[l], 0,
			       net->batch * sizeof(float) *
				       gf_shape_elems(&m->layers[l].out));
	if (s->dout[m->nlayers - 1])
		memcpy(s->dout[m->nlayers - 1], net->dlogits,
		       net->batch * net->positions * m->classes *
			       sizeof(float));
	for (size_t l = m->nlayers; l-- > 0;) {
		struct gf_ref_io io = layer_io(net, params, grads, l);

		if (net->has_gradient[l])
			layers[io.layer->type]->backward(&io);
		else
			gf_net_zero_gradients(net, grads, l);
		gf_net_emit(net, l, on_grad, ctx);
	}
	return 0;
}

const struct gf_backend gf_backend_ref = {
	.name = "ref",
	.net_new = net_new,
	.net_free = net_free,
	.forward = forward,
	.loss = gf_net_softmax_loss,
	.backward = backward,
	.running = gf_net_running,
};
