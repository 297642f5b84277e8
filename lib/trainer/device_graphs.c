/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/net_device.h"

#include "base/array.h"
#include "base/heap.h"

/* A graph, and the gradients that it makes: of the pass's list. */
struct piece {
	struct gf_gpu_graph *graph;
	size_t end; /* after the last one; the first is the previous piece's end */
};

struct passes {
	bool prepared, captured;
	struct piece *pieces;
	size_t npieces, pieces_capacity;
	size_t *tensors; /* in the order in which they are made */
	size_t ntensors;
};

struct gf_train_graphs {
	struct gf_train_graphs_config k;
	bool *cut;
	struct passes *passes; /* per key */
};

int gf_train_graphs_new(const struct gf_train_graphs_config *config,
			struct gf_train_graphs **graphs, struct gf_error *err)
{
	struct gf_train_graphs *g;

	if (!config->gpu->ops->capture_begin)
		return gf_error_set(err, -ENOTSUP, "%s captures no graphs of what it is given",
				    config->gpu->ops->name);
	g = gf_xcalloc(1, sizeof(*g));
	g->k = *config;
	g->cut = gf_xcalloc(config->ntensors + 1, sizeof(*g->cut));
	for (size_t i = 0; i < config->ntensors; i++)
		g->cut[i] = config->cut[i];
	g->passes = gf_xcalloc(config->keys, sizeof(*g->passes));
	for (size_t i = 0; i < config->keys; i++)
		g->passes[i].tensors = gf_xcalloc(config->ntensors + 1, sizeof(size_t));
	*graphs = g;
	return 0;
}

static void forget(struct gf_train_graphs *g, struct passes *p)
{
	for (size_t i = 0; i < p->npieces; i++)
		g->k.gpu->ops->graph_free(g->k.gpu, p->pieces[i].graph);
	p->npieces = p->ntensors = 0;
	p->captured = false;
}

void gf_train_graphs_forget(struct gf_train_graphs *g)
{
	for (size_t i = 0; i < g->k.keys; i++)
		forget(g, &g->passes[i]);
}

void gf_train_graphs_free(struct gf_train_graphs *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->k.keys; i++) {
		forget(g, &g->passes[i]);
		free(g->passes[i].pieces);
		free(g->passes[i].tensors);
	}
	free(g->passes);
	free(g->cut);
	free(g);
}

/* Launches one piece of a pass, then reports the gradients that it makes. */
static int launch(struct gf_train_graphs *g, const struct passes *p, size_t piece,
		  const struct gf_train_pass *pass, struct gf_error *err)
{
	size_t i = piece ? p->pieces[piece - 1].end : 0;
	int rc = g->k.gpu->ops->graph_launch(g->k.gpu, g->k.stream, p->pieces[piece].graph, err);

	for (; !rc && pass->on_grad && i < p->pieces[piece].end; i++)
		pass->on_grad(pass->ctx, p->tensors[i]);
	return rc;
}

/* --- capturing ------------------------------------------------------------ */

struct capture {
	struct gf_train_graphs *g;
	struct passes *p;
	const struct gf_train_pass *pass;
	bool open;
	int rc;
	struct gf_error *err;
};

static void open_piece(struct capture *c)
{
	c->rc = c->g->k.gpu->ops->capture_begin(c->g->k.gpu, c->g->k.stream, c->err);
	c->open = !c->rc;
}

static void end_piece(struct capture *c, struct gf_error *err)
{
	struct gf_gpu_graph *graph = NULL;
	struct piece *piece;
	int rc = c->g->k.gpu->ops->capture_end(c->g->k.gpu, c->g->k.stream, &graph, err);

	c->open = false;
	c->rc = c->rc ? c->rc : rc;
	if (rc)
		return;
	piece = gf_array_push(&c->p->pieces, &c->p->npieces, &c->p->pieces_capacity);
	*piece = (struct piece){graph, c->p->ntensors};
}

static void made(void *ctx, size_t tensor)
{
	struct capture *c = ctx;

	if (c->rc)
		return;
	c->p->tensors[c->p->ntensors++] = tensor;
	if (!c->g->cut[tensor])
		return;
	end_piece(c, c->err);
	if (!c->rc)
		c->rc = launch(c->g, c->p, c->p->npieces - 1, c->pass, c->err);
	if (!c->rc)
		open_piece(c);
}

static int capture(struct gf_train_graphs *g, struct passes *p, const struct gf_train_pass *pass,
		   struct gf_error *err)
{
	struct capture c = {.g = g, .p = p, .pass = pass, .err = err};
	struct gf_error ignored;
	int rc;

	open_piece(&c);
	if (c.rc)
		return c.rc;
	rc = pass->run(pass->ctx, made, &c, err);
	rc = c.rc ? c.rc : rc;
	if (c.open)
		end_piece(&c, rc ? &ignored : err);
	rc = rc ?: c.rc;
	rc = rc ?: launch(g, p, p->npieces - 1, pass, err);
	p->captured = !rc;
	if (rc)
		gf_error_prefix(err, "--cuda-graph");
	return rc;
}

/* --- a pass --------------------------------------------------------------- */

static void tell(void *ctx, size_t tensor)
{
	const struct gf_train_pass *pass = ctx;

	if (pass->on_grad)
		pass->on_grad(pass->ctx, tensor);
}

int gf_train_graphs_run(struct gf_train_graphs *g, size_t key, const struct gf_train_pass *pass,
			struct gf_error *err)
{
	struct passes *p = g ? &g->passes[key] : NULL;
	int rc = 0;

	if (p && p->captured) {
		for (size_t i = 0; i < p->npieces && !rc; i++)
			rc = launch(g, p, i, pass, err);
		return rc;
	}
	if (p && p->prepared)
		return capture(g, p, pass, err);
	if (p)
		p->prepared = true;
	return pass->run(pass->ctx, tell, (void *)pass, err);
}
