/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

#include "base/heap.h"

/* --- forward ---------------------------------------------------------------
 */

/* The one layer that reads l's output; nlayers if there are more or none. */
static size_t reader_of(const struct gf_net *net, size_t l)
{
	const struct gf_model *m = net->model;
	size_t r = l + 1;

	if (net->consumers[l] != 1)
		return m->nlayers;
	for (; r < m->nlayers; r++)
		for (size_t i = 0; i < m->layers[r].ninputs; i++)
			if (m->layers[r].inputs[i] == (int)l)
				return r;
	return r;
}

static bool is(const struct gf_net *net, size_t l, enum gf_layer_type type)
{
	return l < net->model->nlayers && net->on_path[l] && net->model->layers[l].type == type;
}

static void write_for(struct gf_gpu_net *g, size_t norm, size_t relu)
{
	g->io[norm].writes = relu;
	g->io[norm].silent = true;
	g->io[relu].maker = norm;
	g->io[relu].forward_done = true;
}

/* Batch norm, then the sum with what was there before it, then ReLU. */
static void fuse_sum(struct gf_gpu_net *g, size_t norm, size_t add)
{
	const struct gf_layer *l = &g->net->model->layers[add];
	const size_t relu = reader_of(g->net, add);
	const int other = l->inputs[l->inputs[0] == (int)norm];

	if (other < 0 || (size_t)other > norm || !is(g->net, relu, GF_LAYER_RELU))
		return;
	write_for(g, norm, relu);
	g->io[norm].addend = (size_t)other;
	g->io[norm].adds = true;
	g->io[add].silent = true;
	g->io[add].forward_done = true;
}

static void fuse_forward(struct gf_gpu_net *g)
{
	const struct gf_net *net = g->net;

	for (size_t l = 0; l < net->model->nlayers; l++) {
		const size_t next = reader_of(net, l);

		if (!is(net, l, GF_LAYER_BATCHNORM))
			continue;
		if (is(net, next, GF_LAYER_RELU)) { /* both ways in one */
			write_for(g, l, next);
			g->io[l].relu = true;
			g->io[next].backward_done = true;
		} else if (is(net, next, GF_LAYER_ADD)) {
			fuse_sum(g, l, next);
		}
	}
}

/* --- gradients -------------------------------------------------------------
 */

/* Per layer: has its gradient begun, and is it read by another layer's backward later than by its
 * own, so that it stays as it is? */
struct state {
	struct gf_gpu_net *g;
	bool *begun, *held;
};

/* The inputs of l that a gradient goes to, as it comes from l first of all. */
static bool first_from(const struct state *s, size_t l, int from)
{
	const struct gf_net *net = s->g->net;

	return from >= 0 && net->has_gradient[l] && net->has_gradient[from] && !s->begun[from];
}

static void share(const struct state *s, size_t l, int from)
{
	s->g->io[from].gradient = s->g->io[l].gradient;
}

/* Do all other layers that read `from` come before `at`, and so add to its gradient after that
 * layer's backward? */
static bool others_before(const struct state *s, size_t from, size_t at, size_t except)
{
	const struct gf_model *m = s->g->net->model;

	for (size_t r = at; r < m->nlayers; r++)
		for (size_t i = 0; i < m->layers[r].ninputs; i++)
			if (r != except && m->layers[r].inputs[i] == (int)from)
				return false;
	return true;
}

/* A sum's gradient is that of both sides. The later side only reads it, and before anything is
 * added to it for the earlier one. */
static void share_sum(const struct state *s, size_t l)
{
	const int *in = s->g->net->model->layers[l].inputs;
	const int early = in[0] < in[1] ? in[0] : in[1];
	const int late = in[0] < in[1] ? in[1] : in[0];

	if (first_from(s, l, early)) {
		share(s, l, early);
		if (early != late && first_from(s, l, late) && s->g->net->consumers[late] == 1 &&
		    !s->g->io[late].backward_done &&
		    others_before(s, (size_t)early, (size_t)late, l)) {
			share(s, l, late);
			s->held[late] = true;
		}
	} else if (first_from(s, l, late)) {
		share(s, l, late);
	}
}

static void share_gradients(struct gf_gpu_net *g)
{
	const struct gf_model *m = g->net->model;
	const struct state s = {
		.g = g,
		.begun = gf_xcalloc(m->nlayers, sizeof(*s.begun)),
		.held = gf_xcalloc(m->nlayers, sizeof(*s.held)),
	};

	for (size_t l = m->nlayers; l-- > 0;) {
		const struct gf_layer *layer = &m->layers[l];
		const enum gf_gpu_gradient passes = gf_gpu_layers[layer->type]->passes;

		if (g->io[l].backward_done)
			share(&s, l, layer->inputs[0]);
		else if (passes == GF_GPU_IN_PLACE && !s.held[l] &&
			 first_from(&s, l, layer->inputs[0]))
			share(&s, l, layer->inputs[0]);
		else if (passes == GF_GPU_AS_IT_IS && !s.held[l])
			share_sum(&s, l);
		for (size_t i = 0; i < layer->ninputs; i++)
			if (first_from(&s, l, layer->inputs[i]))
				s.begun[layer->inputs[i]] = true;
	}
	free(s.begun);
	free(s.held);
}

void gf_gpu_fuse(struct gf_gpu_net *g)
{
	for (size_t l = 0; l < g->net->model->nlayers; l++)
		g->io[l].writes = g->io[l].maker = g->io[l].gradient = l;
	fuse_forward(g);
	share_gradients(g);
}
