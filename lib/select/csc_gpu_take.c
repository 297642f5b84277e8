/* SPDX-License-Identifier: BSD-3-Clause */
/* A step's gradients on a GPU: what is made of them before they go. */
#include <string.h>

#include "select/csc_gpu.h"

void gf_csc_gpu_begin(struct gf_selector *s, size_t slot, size_t step,
		      const struct gf_work **list, size_t *n)
{
	struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	struct gf_csc_told *told = &g->told[slot];
	size_t i;

	g->slot = slot;
	g->taken_tensors = g->taken_chunks = g->taken_packs = 0;
	gf_csc_begin(s, slot, step, list, n);
	/* what a message takes is all that was made up to its last tensor */
	for (i = 0; i < t->nlist; i++)
		t->list[i].first = 0;
	t->list[t->nlist - 1].data = g->shared;
	memcpy(told->chosen, t->chosen, t->nchosen * sizeof(*told->chosen));
	memset(told->sent, 0, c->nchunks);
	for (i = 0; i < t->nchosen; i++)
		told->sent[t->chosen[i]] = 1;
}

static int send_lists(struct gf_selector *s, struct gf_gpu_stream *q,
		      struct gf_error *err)
{
	const struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	const struct gf_csc_told *told = &g->told[g->slot];
	int rc = ops->copy(s->env.place.gpu, q, g->sent, told->sent,
			   gf_csc_of(s)->nchunks, GF_GPU_TO_DEVICE, err);

	return rc ? rc
		  : ops->copy(s->env.place.gpu, q, g->chosen, told->chosen,
			      gf_csc_step_of(s, g->slot)->nchosen *
				      sizeof(uint32_t),
			      GF_GPU_TO_DEVICE, err);
}

/* All of it goes. */
static void take_dense(struct gf_selector *s, size_t ntensors,
		       struct gf_gpu_stream *q)
{
	const struct gf_csc_gpu *g = gf_csc_gpu(s);
	const size_t *offsets = s->env.pools[0].offsets;
	const size_t first = offsets[g->taken_tensors];

	s->env.place.gpu->kernels->add_f32(
		q, gf_csc_step_of(s, g->slot)->data + first,
		(float *)g->history + first, offsets[ntensors] - first);
}

/* Chunks that are complete. Those that go are measured when they are sums, too:
 * one pass over neighbours costs less than many over what lies between. */
static void measure(struct gf_selector *s, size_t ntensors,
		    struct gf_gpu_stream *q)
{
	struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);
	const size_t first = g->taken_chunks;
	size_t end = first, at, n;

	while (end < c->nchunks && gf_csc_chunk_last_tensor(c, end) < ntensors)
		end++;
	g->taken_chunks = end;
	if (end == first)
		return;
	at = gf_csc_chunk_first(c, first);
	n = gf_csc_chunk_first(c, end - 1) + gf_csc_chunk_count(c, end - 1) -
	    at;
	s->env.place.gpu->kernels->chunk_norms_f32(
		q, gf_csc_step_of(s, g->slot)->data + at,
		(float *)g->history + at, n, c->chunk_elems,
		(double *)g->norms + first);
}

/* Packed messages of which every tensor is there. */
static void pack(struct gf_selector *s, size_t ntensors,
		 struct gf_gpu_stream *q)
{
	struct gf_csc_gpu *g = gf_csc_gpu(s);
	const struct gf_csc *c = gf_csc_of(s);
	const struct gf_csc_step *t = gf_csc_step_of(s, g->slot);
	const struct gf_work *w = &t->work[g->taken_packs];

	for (; g->taken_packs < t->nwork && w->last < ntensors; w++) {
		const size_t *first = &t->first_chosen[g->taken_packs++];

		s->env.place.gpu->kernels->gather_chunks_f32(
			q, w->data, t->data, gf_csc_elems(s), c->chunk_elems,
			(uint32_t *)g->chosen + first[0], first[1] - first[0]);
	}
}

int gf_csc_gpu_take(struct gf_selector *s, size_t ntensors,
		    struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_csc_gpu *g = gf_csc_gpu(s);
	int rc = g->taken_tensors ? 0 : send_lists(s, q, err);

	if (rc)
		return rc;
	if (gf_csc_step_of(s, g->slot)->dense) {
		take_dense(s, ntensors, q);
	} else {
		measure(s, ntensors, q);
		pack(s, ntensors, q);
	}
	g->taken_tensors = ntensors;
	return s->env.place.gpu->ops->check(s->env.place.gpu, err);
}
