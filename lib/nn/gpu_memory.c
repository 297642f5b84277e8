/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_net.h"

#include "base/array.h"
#include "base/heap.h"

/* --- places --------------------------------------------------------------- */

/* Larger first; of equal ones the one that stands first. */
GF_ORDER(by_size, struct gf_gpu_thing *, GF_BY((*y)->size_bytes, (*x)->size_bytes) ?: GF_BY(*x, *y))

GF_ORDER(by_place, struct gf_gpu_thing *, GF_BY((*x)->at, (*y)->at))

static bool meet(const struct gf_gpu_thing *a, const struct gf_gpu_thing *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* The lowest gap between those that it meets; `met` is room for them. */
static void find_place(struct gf_gpu_thing *t, struct gf_gpu_thing **placed, size_t nplaced,
		       struct gf_gpu_thing **met)
{
	const size_t size = gf_gpu_align(t->size_bytes);
	size_t n = 0, at = 0;

	for (size_t i = 0; i < nplaced; i++)
		if (meet(t, placed[i]))
			met[n++] = placed[i];
	qsort(met, n, sizeof(*met), by_place);
	for (size_t i = 0; i < n && met[i]->at < at + size; i++) {
		const size_t end = met[i]->at + gf_gpu_align(met[i]->size_bytes);

		at = end > at ? end : at;
	}
	t->at = at;
}

size_t gf_gpu_plan(struct gf_gpu_thing *things, size_t count)
{
	GF_FREED struct gf_gpu_thing **order = gf_xcalloc(count + 1, sizeof(*order));
	GF_FREED struct gf_gpu_thing **met = gf_xcalloc(count + 1, sizeof(*met));
	size_t total = 0, n = 0;

	for (size_t i = 0; i < count; i++)
		if (things[i].size_bytes)
			order[n++] = &things[i];
	qsort(order, n, sizeof(*order), by_size);
	for (size_t i = 0; i < n; i++) {
		const size_t size = gf_gpu_align(order[i]->size_bytes);

		find_place(order[i], order, i, met);
		if (order[i]->at + size > total)
			total = order[i]->at + size;
	}
	return total;
}

/* --- a net ---------------------------------------------------------------- */

/*
 * A pass is a row of steps. The samples are there at step 0, layer l runs forward at 1 + l, the
 * loss is computed at 1 + L, and layer l runs backward at 1 + 2L - l. Each array of a layer is
 * needed for some of the steps:
 *	output		from the layer's forward to the last reader
 *	saved		from the layer's forward to its backward
 *	gradient	from its first consumer's backward to the layer's own
 * The output of layers that are done together is made by the first of them, and a gradient may lie
 * in the memory of another layer's (gpu_fuse.c).
 * A layer that may work in place takes its input's memory, unless another layer still reads that
 * memory.
 */
enum { OUT, SAVED, GRADIENT, KINDS };

struct plan {
	struct gf_gpu_net *g;
	size_t nlayers, batch;
	size_t *root;                /* per layer: whose memory its output lies in */
	struct gf_gpu_thing *things; /* KINDS per layer, then the samples */
	size_t count;
};

static size_t forward_at(size_t l)
{
	return 1 + l;
}

static size_t loss_at(const struct plan *p)
{
	return 1 + p->nlayers;
}

static size_t backward_at(const struct plan *p, size_t l)
{
	return 1 + 2 * p->nlayers - l;
}

static struct gf_gpu_thing *thing(const struct plan *p, size_t l, int kind)
{
	return &p->things[l * KINDS + (size_t)kind];
}

static const struct gf_gpu_layer *ops_of(const struct plan *p, size_t l)
{
	return gf_gpu_layers[p->g->net->model->layers[l].type];
}

static bool needs_out(const struct plan *p, size_t l)
{
	return p->g->net->has_gradient[l] && ops_of(p, l)->needs_out;
}

static void find_roots(struct plan *p)
{
	const struct gf_net *net = p->g->net;

	for (size_t l = 0; l < p->nlayers; l++) {
		const int from = net->model->layers[l].inputs[0];

		p->root[l] = l;
		if (from >= 0 && ops_of(p, l)->in_place && net->on_path[l] &&
		    !p->g->io[l].forward_done && net->consumers[from] == 1 &&
		    !needs_out(p, (size_t)from))
			p->root[l] = p->root[from];
	}
}

static void live(struct gf_gpu_thing *t, size_t at)
{
	t->first = at < t->first ? at : t->first;
	t->last = at > t->last ? at : t->last;
}

/* A thing's first use makes its interval. */
static void begin(struct gf_gpu_thing *t, size_t size_bytes, size_t at)
{
	*t = (struct gf_gpu_thing){.size_bytes = size_bytes, .first = at, .last = at};
}

static void place_layer(struct plan *p, size_t l)
{
	const struct gf_net *net = p->g->net;
	const struct gf_layer *layer = &net->model->layers[l];
	const struct gf_gpu_layer *ops = ops_of(p, l);
	const size_t size = gf_gpu_bytes(p->g, p->batch * gf_shape_elems(&layer->out));
	struct gf_gpu_thing *out = thing(p, p->root[l], OUT);

	if (!net->on_path[l])
		return;
	if (p->root[l] == l && !p->g->io[l].silent)
		begin(out, size, forward_at(p->g->io[l].maker));
	if (!p->g->io[l].silent)
		live(out, forward_at(l));
	if (needs_out(p, l) && !p->g->io[l].silent)
		live(out, backward_at(p, l));
	if (ops->saved_bytes) {
		begin(thing(p, l, SAVED), ops->saved_bytes(&p->g->io[l], p->batch), forward_at(l));
		if (net->has_gradient[l])
			live(thing(p, l, SAVED), backward_at(p, l));
	}
	if (l + 1 == p->nlayers)
		live(out, loss_at(p));
}

/* After those of the layers that read it, whose gradient it may share. */
static void place_gradient(struct plan *p, size_t l)
{
	const struct gf_net *net = p->g->net;
	const bool has = net->has_gradient[l], last = l + 1 == p->nlayers;
	struct gf_gpu_thing *t = thing(p, p->g->io[l].gradient, GRADIENT);

	if (!has && !last)
		return;
	if (p->g->io[l].gradient == l)
		begin(t, gf_gpu_bytes(p->g, p->batch * gf_shape_elems(&net->model->layers[l].out)),
		      last ? loss_at(p) : backward_at(p, l));
	if (has)
		live(t, backward_at(p, l));
}

/* A layer's inputs live as long as it reads them. */
static void read_inputs(struct plan *p, size_t l)
{
	const struct gf_net *net = p->g->net;
	const struct gf_layer *layer = &net->model->layers[l];
	struct gf_gpu_thing *samples = &p->things[p->count - 1];
	struct gf_gpu_thing none = {0};

	for (size_t i = 0; i < layer->ninputs && net->on_path[l]; i++) {
		const int from = layer->inputs[i];
		struct gf_gpu_thing *in = from < 0 ? samples : thing(p, p->root[from], OUT);

		if (from >= 0 && p->g->io[from].silent)
			in = &none;
		live(in, forward_at(l));
		if (net->has_gradient[l] && ops_of(p, l)->needs_in)
			live(in, backward_at(p, l));
		if (from >= 0 && net->has_gradient[l] && net->has_gradient[from])
			live(thing(p, p->g->io[from].gradient, GRADIENT), backward_at(p, l));
	}
}

/* Word numbers are looked up where they are. */
static bool reads_values(const struct gf_model *m)
{
	for (size_t l = 0; l < m->nlayers; l++)
		for (size_t i = 0; i < m->layers[l].ninputs; i++)
			if (m->layers[l].inputs[i] < 0 && m->layers[l].type != GF_LAYER_EMBEDDING)
				return true;
	return false;
}

static void make_plan(struct plan *p)
{
	const struct gf_model *m = p->g->net->model;
	const size_t samples = gf_gpu_bytes(p->g, p->batch * gf_shape_elems(&m->input));

	begin(&p->things[p->count - 1], reads_values(m) ? samples : 0, 0);
	find_roots(p);
	for (size_t l = 0; l < p->nlayers; l++)
		place_layer(p, l);
	for (size_t l = p->nlayers; l-- > 0;)
		place_gradient(p, l);
	for (size_t l = 0; l < p->nlayers; l++)
		read_inputs(p, l);
}

/* Without gradients, then with them: the difference is their cost. */
static size_t place(struct plan *p, struct gf_net_memory *bytes)
{
	size_t *sizes = gf_xcalloc(p->nlayers, sizeof(*sizes)), all;

	for (size_t l = 0; l < p->nlayers; l++) {
		sizes[l] = thing(p, l, GRADIENT)->size_bytes;
		thing(p, l, GRADIENT)->size_bytes = 0;
	}
	bytes->activations_bytes = gf_gpu_plan(p->things, p->count);
	for (size_t l = 0; l < p->nlayers; l++)
		thing(p, l, GRADIENT)->size_bytes = sizes[l];
	all = gf_gpu_plan(p->things, p->count);
	bytes->gradients_bytes =
		all > bytes->activations_bytes ? all - bytes->activations_bytes : 0;
	free(sizes);
	return all;
}

/* What stays from a layer's forward to its backward. */
static void note_layers(const struct plan *p)
{
	for (size_t l = 0; l < p->nlayers; l++) {
		const struct gf_gpu_thing *out = thing(p, l, OUT), *saved = thing(p, l, SAVED);
		struct gf_net_memory *m = &p->g->net->layer_memory[l];

		m->activations_bytes = (out->last > loss_at(p) ? out->size_bytes : 0) +
				       (saved->last > loss_at(p) ? saved->size_bytes : 0);
	}
}

/* --- the rest, one after the other ------------------------------------------
 */

struct cut {
	char *base; /* NULL: only adds up */
	size_t at;
};

static void *take(struct cut *c, size_t bytes)
{
	char *p = c->base ? c->base + c->at : NULL;

	c->at += gf_gpu_align(bytes);
	return p;
}

static void cut_fixed(struct gf_gpu_net *g, struct cut *c)
{
	const struct gf_net *net = g->net;
	const struct gf_model *m = net->model;
	const size_t rows = net->max_batch * net->positions;
	size_t before;

	g->running = take(c, net->nrunning * sizeof(float));
	g->samples = take(c, sizeof(*g->samples));
	g->outcome = take(c, sizeof(*g->outcome));
	g->loss_work = take(c, rows * (sizeof(double) + sizeof(uint32_t)));
	before = c->at;
	for (size_t l = 0; l < m->nlayers; l++)
		if (gf_gpu_layers[m->layers[l].type]->weight_bytes)
			g->io[l].weight =
				take(c, gf_gpu_layers[m->layers[l].type]->weight_bytes(&g->io[l]));
	g->net->memory.weights_bytes = c->at - before;
	before = c->at;
	g->scratch = take(c, g->scratch_bytes);
	g->work = take(c, g->work_bytes);
	g->net->memory.workspace_bytes = c->at - before + GF_GPU_BLAS_BYTES;
}

static void find_scratch(struct gf_gpu_net *g)
{
	const struct gf_model *m = g->net->model;

	for (size_t l = 0; l < m->nlayers; l++) {
		const struct gf_gpu_layer *ops = gf_gpu_layers[m->layers[l].type];
		const size_t bytes =
			ops->scratch_bytes ? ops->scratch_bytes(&g->io[l], g->net->max_batch) : 0;

		if (bytes > g->scratch_bytes)
			g->scratch_bytes = bytes;
	}
}

static int take_memory(struct gf_gpu_net *g, size_t bytes, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = g->gpu->ops;
	size_t free_bytes = 0;
	void *memory = NULL;
	int rc = ops->free_bytes(g->gpu, &free_bytes, err);

	if (rc)
		return rc;
	if (bytes <= free_bytes)
		rc = ops->alloc(g->gpu, bytes, &memory, err);
	if (bytes > free_bytes || rc)
		return gf_error_set(
			err, -ENOMEM,
			"%s, batches of %zu: want %zu bytes on GPU %d (weights %zu, activations "
			"%zu, their gradients %zu, workspace %zu), found %zu free",
			g->net->model->name, g->net->max_batch, bytes, g->gpu->index,
			g->net->memory.weights_bytes, g->net->memory.activations_bytes,
			g->net->memory.gradients_bytes, g->net->memory.workspace_bytes, free_bytes);
	g->memory = memory;
	return ops->zero(g->gpu, g->stream, memory, bytes, err);
}

/* Pointers that stay as they are from pass to pass. */
static void connect(const struct plan *p, char *base)
{
	struct gf_gpu_net *g = p->g;
	const struct gf_net *net = g->net;
	GF_FREED bool *begun = gf_xcalloc(p->nlayers, sizeof(*begun));

	if (p->things[p->count - 1].size_bytes)
		g->input = base + p->things[p->count - 1].at;
	for (size_t l = 0; l < p->nlayers; l++) {
		struct gf_gpu_io *io = &g->io[l];

		io->out = base + thing(p, p->root[io->writes], OUT)->at;
		io->saved = base + thing(p, l, SAVED)->at;
		io->dout = base + thing(p, io->gradient, GRADIENT)->at;
	}
	for (size_t l = p->nlayers; l-- > 0;) {
		struct gf_gpu_io *io = &g->io[l];

		for (size_t i = 0; i < io->layer->ninputs; i++) {
			const int from = io->layer->inputs[i];

			io->in[i] = from < 0 ? g->input : g->io[from].out;
			if (from < 0 || !net->has_gradient[l] || !net->has_gradient[from])
				continue;
			io->din[i] = g->io[from].dout;
			io->add[i] = begun[from];
			begun[from] = true;
		}
	}
}

int gf_gpu_memory(struct gf_gpu_net *g, void **blas_work, struct gf_error *err)
{
	struct plan p = {
		.g = g,
		.nlayers = g->net->model->nlayers,
		.batch = g->net->max_batch,
	};
	struct cut cut = {NULL, 0};
	size_t planned;
	int rc;

	p.count = p.nlayers * KINDS + 1;
	p.root = gf_xcalloc(p.nlayers, sizeof(*p.root));
	p.things = gf_xcalloc(p.count, sizeof(*p.things));
	find_scratch(g);
	gf_gpu_fuse(g);
	make_plan(&p);
	planned = place(&p, &g->net->memory);
	note_layers(&p);
	cut_fixed(g, &cut);
	rc = take_memory(g, cut.at + GF_GPU_BLAS_BYTES + planned, err);
	if (!rc) {
		cut = (struct cut){g->memory, 0};
		cut_fixed(g, &cut);
		*blas_work = take(&cut, GF_GPU_BLAS_BYTES);
		connect(&p, g->memory + cut.at);
	}
	free(p.root);
	free(p.things);
	return rc;
}
