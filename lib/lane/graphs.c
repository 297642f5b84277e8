/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs as graphs. A group of NCCL's costs the host about 100 us on a
 * communicator that does not block, as NCCL starts a thread for it; a graph of
 * a whole program costs one launch.
 *
 * NCCL wants an operation captured by all of its ranks or by none, and launched
 * by all from that capture. So nothing here depends on the rank: a program is
 * enqueued plainly the first time, which also connects the ranks, and captured
 * on each place that its data has afterwards. Graphs are freed before their
 * communicators, which wait for them; one that is under way is freed when it
 * has ended.
 */

#include "base/array.h"
#include "lane/lane_parts.h"

/* Places of one program's data: pools come round, but a caller may bring new
 * memory for ever. */
#define PLACES_MOST 8

/* Messages come in the same order in every step: the next one is likely to be
 * the one wanted. *places: that the program has, if it is not found. */
static struct gf_lane_graph *find(struct gf_lane *l,
				  const struct gf_lane_program *p,
				  const void *data, size_t *places)
{
	size_t i, k;

	*places = 0;
	for (i = 0; i < l->ngraphs; i++) {
		k = (l->next_graph + i) % l->ngraphs;
		if (l->graphs[k].program != p)
			continue;
		if (l->graphs[k].data == data) {
			l->next_graph = k + 1;
			return &l->graphs[k];
		}
		++*places;
	}
	return NULL;
}

static int capture(struct gf_lane *l, struct gf_lane_graph *g,
		   struct gf_error *err)
{
	const struct gf_gpu_ops *ops = l->gpu->ops;
	struct gf_gpu_graph *graph = NULL;
	struct gf_error ignored;
	int rc = ops->capture_begin(l->gpu, l->stream, err), ended;

	if (rc)
		return rc;
	rc = gf_lane_enqueue(l, g->program, g->data, err);
	ended = ops->capture_end(l->gpu, l->stream, &graph,
				 rc ? &ignored : err);
	rc = rc ? rc : ended;
	if (rc) {
		ops->graph_free(l->gpu, graph);
		return rc;
	}
	g->graph = graph;
	return 0;
}

int gf_lane_run(struct gf_lane *l, const struct gf_lane_program *p, void *data,
		struct gf_error *err)
{
	struct gf_lane_graph *g;
	size_t places;
	int rc = 0;

	/* the size of sets varies */
	if (!l->captures || !l->gpu->ops->capture_begin || p->sets ||
	    !p->nsteps)
		return gf_lane_enqueue(l, p, data, err);
	g = find(l, p, data, &places);
	if (!g && places == PLACES_MOST)
		return gf_lane_enqueue(l, p, data, err);
	if (!g) {
		g = gf_array_push(&l->graphs, &l->ngraphs, &l->graphs_capacity);
		*g = (struct gf_lane_graph){p, data, NULL};
		if (!places)
			return gf_lane_enqueue(l, p, data, err);
	}
	if (!g->graph)
		rc = capture(l, g, err);
	rc = rc ? rc
		: l->gpu->ops->graph_launch(l->gpu, l->stream, g->graph, err);
	if (rc)
		gf_error_prefix(err, "as a graph");
	return rc;
}

void gf_lane_forget(struct gf_lane *l, const struct gf_lane_program *p)
{
	size_t i, kept = 0;

	for (i = 0; i < l->ngraphs; i++) {
		if (l->graphs[i].program == p)
			l->gpu->ops->graph_free(l->gpu, l->graphs[i].graph);
		else
			l->graphs[kept++] = l->graphs[i];
	}
	l->ngraphs = kept;
}

void gf_lane_drop(struct gf_lane *l)
{
	size_t i;

	for (i = 0; i < l->ngraphs; i++) {
		l->gpu->ops->graph_free(l->gpu, l->graphs[i].graph);
		l->graphs[i].graph = NULL;
	}
}
