/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/graph.h"

#include <string.h>

#include "base/heap.h"
#include "nn/ref.h"

/*
 * The reference backend: portable C, one thread, plain layouts. It is the specification that the
 * others are tested against.
 */
struct state {
	struct gf_ref_io *io; /* per layer */
	float **dout;         /* per layer; NULL without gradient */
};

static void net_free(struct gf_net *net)
{
	GF_FREED struct state *s = NULL;

	if (!net)
		return;
	s = net->priv;
	for (size_t l = 0; l < net->model->nlayers; l++) {
		free(s->io[l].out);
		free(s->io[l].saved);
		free(s->dout[l]);
		gf_ref_io_release(&s->io[l]);
	}
	free(s->io);
	free(s->dout);
	gf_net_release(net);
	free(net);
}

static int allocate_layer(struct gf_net *net, size_t l)
{
	const struct gf_layer *layer = &net->model->layers[l];
	const struct gf_ref_layer *ops = gf_ref_layers[layer->type];
	size_t count = net->max_batch * gf_shape_elems(&layer->out);
	size_t saved = ops->saved_bytes ? ops->saved_bytes(layer, net->max_batch) : 0;
	struct state *s = net->priv;

	s->io[l].out = calloc(count, sizeof(float));
	if (net->has_gradient[l])
		s->dout[l] = calloc(count, sizeof(float));
	if (saved)
		s->io[l].saved = calloc(saved, 1);
	if (!s->io[l].out || (net->has_gradient[l] && !s->dout[l]) || (saved && !s->io[l].saved))
		return -ENOMEM;
	net->layer_memory[l] = (struct gf_net_memory){
		.activations_bytes = count * sizeof(float) + saved,
		.gradients_bytes = net->has_gradient[l] ? count * sizeof(float) : 0,
	};
	gf_net_memory_add(&net->memory, &net->layer_memory[l], false);
	return 0;
}

/* Everything but the sample, which each pass brings. */
static void connect(struct gf_net *net, size_t l)
{
	struct state *s = net->priv;
	struct gf_ref_io *io = &s->io[l];

	io->dout = s->dout[l];
	for (size_t i = 0; i < io->layer->ninputs; i++) {
		int from = io->layer->inputs[i];

		if (from < 0)
			continue;
		io->in[i] = s->io[from].out;
		io->din[i] = s->dout[from];
	}
}

static int net_new(const struct gf_model *m, size_t max_batch, const struct gf_net_options *options,
		   struct gf_net **net, struct gf_error *err)
{
	struct gf_net *n;
	struct state *s;
	int rc;

	if (options->precision != GF_F32)
		return gf_error_set(err, -ENOTSUP, "ref computes in f32, not in %s",
				    gf_dtype_names[options->precision]);
	n = gf_xcalloc(1, sizeof(*n));
	rc = gf_net_init(n, m, max_batch, options, err);
	if (rc) {
		free(n);
		return rc;
	}
	n->priv = s = gf_xcalloc(1, sizeof(*s));
	s->io = gf_xcalloc(m->nlayers, sizeof(*s->io));
	s->dout = gf_xcalloc(m->nlayers, sizeof(*s->dout));
	for (size_t l = 0; l < m->nlayers; l++)
		gf_ref_io_init(&s->io[l], n, l);
	for (size_t l = 0; l < m->nlayers; l++) {
		rc = allocate_layer(n, l);
		if (rc) {
			gf_error_errno(err, rc, "layer %s", m->layers[l].name);
			net_free(n);
			return rc;
		}
		connect(n, l);
	}
	*net = n;
	return 0;
}

static void forward_layer(struct gf_net *net, size_t l, const float *params, const float *input)
{
	struct state *s = net->priv;
	struct gf_ref_io *io = &s->io[l];
	const size_t channels = io->layer->in.dims[0];
	const float *saved = io->saved;

	gf_ref_io_bind(io, params, NULL);
	for (size_t i = 0; i < io->layer->ninputs; i++)
		if (io->layer->inputs[i] < 0)
			io->in[i] = input;
	gf_ref_layers[io->layer->type]->forward(io);
	if (io->layer->type == GF_LAYER_BATCHNORM && net->training)
		gf_net_update_running(net, l, saved, saved + channels,
				      net->batch * gf_shape_spatial(&io->layer->in));
}

static int forward(struct gf_net *net, const float *params, const float *input, size_t batch,
		   int training, struct gf_error *err)
{
	const struct gf_model *m = net->model;
	struct state *s = net->priv;
	int rc = gf_net_begin_forward(net, input, batch, training, err);

	if (rc)
		return rc;
	for (size_t l = 0; l < m->nlayers; l++)
		if (net->on_path[l]) {
			gf_net_need(net, l);
			forward_layer(net, l, params, input);
		}
	memcpy(net->logits, s->io[m->nlayers - 1].out,
	       batch * net->positions * m->classes * sizeof(float));
	return 0;
}

/* Consumers add: every gradient starts at zero, the last at the loss's. */
static void begin_gradients(struct gf_net *net)
{
	const struct gf_model *m = net->model;
	struct state *s = net->priv;

	for (size_t l = 0; l < m->nlayers; l++)
		if (s->dout[l])
			memset(s->dout[l], 0,
			       net->batch * sizeof(float) * gf_shape_elems(&m->layers[l].out));
	if (s->dout[m->nlayers - 1])
		memcpy(s->dout[m->nlayers - 1], net->dlogits,
		       net->batch * net->positions * m->classes * sizeof(float));
}

static int backward(struct gf_net *net, const float *params, float *grads,
		    void (*on_grad)(void *ctx, size_t tensor), void *ctx, struct gf_error *err)
{
	const struct gf_model *m = net->model;
	struct state *s = net->priv;
	int rc = gf_net_begin_backward(net, err);

	if (rc)
		return rc;
	begin_gradients(net);
	for (size_t l = m->nlayers; l-- > 0;) {
		gf_ref_io_bind(&s->io[l], params, grads);
		gf_net_need(net, l);
		if (net->has_gradient[l])
			gf_ref_layers[m->layers[l].type]->backward(&s->io[l]);
		else
			gf_net_zero_gradients(net, grads, l);
		gf_net_emit(net, l, on_grad, ctx);
	}
	return 0;
}

const struct gf_backend gf_backend_ref = {
	.name = "ref",
	.slow = "plain C computes the layers, many times slower than oneDNN, which this build "
		"lacks (Debian: libdnnl-dev; then make)",
	.net_new = net_new,
	.net_free = net_free,
	.forward = forward,
	.loss = gf_net_softmax_loss,
	.result = gf_net_result,
	.backward = backward,
	.running = gf_net_running,
};
