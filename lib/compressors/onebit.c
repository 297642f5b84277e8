/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onebit; doc/selections/select_onebit.h has its sources, equations and sets. Sums of signs are no
 * signs: the sets of all ranks are gathered, and every rank adds them in rank order. A gradient
 * that is not finite makes its chunk's scale so, which all ranks see.
 */
#include <math.h>
#include <string.h>

#include "collectives/algorithm.h"
#include "compressors/selections.h"
#include "doc/selections/select_onebit.h"
#include "gf_kernels.h"

/* Elements of a message as chunks see them. */
struct chunks {
	float *data;
	size_t count_elems, chunk_elems, nchunks;
};

static struct chunks chunks_of(const struct gf_selector *s, size_t slot, size_t message)
{
	const struct gf_work *w = &s->plan_work[slot][message];
	const struct gf_onebit_params *p = gf_onebit_params(&s->env.plan->selection);

	return (struct chunks){w->data, w->count_elems, p->chunk_elems,
			       gf_onebit_chunks(p, w->count_elems)};
}

static size_t chunk_length(const struct chunks *c, size_t i)
{
	const size_t left = c->count_elems - i * c->chunk_elems;

	return left < c->chunk_elems ? left : c->chunk_elems;
}

/* --- sets ----------------------------------------------------------------- */

static float scale_at(const unsigned char *set, size_t chunk)
{
	float scale;

	memcpy(&scale, set + chunk * sizeof(scale), sizeof(scale));
	return scale;
}

static unsigned char *bits_of(const struct chunks *c, unsigned char *set)
{
	return set + c->nchunks * sizeof(float);
}

/* Encodes the message; its data become what the set does not say. */
static void encode(const struct chunks *c, unsigned char *set)
{
	unsigned char *bits = bits_of(c, set);
	size_t i, k, n;

	memset(bits, 0, (c->count_elems + 31) / 32 * 4);
	for (i = 0; i < c->nchunks; i++) {
		const size_t first = i * c->chunk_elems;
		float *g = c->data + first, scale;

		n = chunk_length(c, i);
		scale = (float)(gf_kernels()->sum_abs_f32(g, n) / (double)n);
		memcpy(set + i * sizeof(scale), &scale, sizeof(scale));
		for (k = 0; k < n; k++) {
			const bool negative = g[k] < 0;

			bits[(first + k) / 8] |= (unsigned char)(negative << (first + k) % 8);
			g[k] -= negative ? -scale : scale;
		}
	}
}

static void decode_add(const struct chunks *c, unsigned char *set)
{
	const unsigned char *bits = bits_of(c, set);
	size_t i, k, n;

	for (i = 0; i < c->nchunks; i++) {
		const size_t first = i * c->chunk_elems;
		const float signs[2] = {scale_at(set, i), -scale_at(set, i)};

		n = chunk_length(c, i);
		for (k = first; k < first + n; k++)
			c->data[k] += signs[bits[k / 8] >> k % 8 & 1];
	}
}

/* --- on the thread that moves messages ------------------------------------ */

static unsigned char *set_of(const struct gf_work *w, size_t rank)
{
	return (unsigned char *)w->data + rank * w->element.size_bytes;
}

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct chunks c = chunks_of(s, slot, message);
	float *data = s->env.pools[slot].data;

	(void)q;
	(void)err;
	gf_feedback_add(s, data, (size_t)(c.data - data), c.count_elems);
	encode(&c, set_of(&s->slots[slot].list[message], (size_t)s->env.rank));
	return 0;
}

static struct gf_select_bad find_bad(const struct gf_selector *s, size_t slot, size_t message)
{
	const struct gf_work *w = &s->slots[slot].list[message];
	const struct chunks c = chunks_of(s, slot, message);
	const struct gf_pool *pool = &s->env.pools[slot];
	size_t rank, i;

	for (rank = 0; rank < w->count_elems; rank++)
		for (i = 0; i < c.nchunks; i++)
			if (!isfinite(scale_at(set_of(w, rank), i)))
				return gf_select_bad_at(pool, (size_t)(c.data - pool->data) +
								      i * c.chunk_elems);
	return (struct gf_select_bad){.found = false};
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_selector *s = ctx;
	struct gf_select_slot *t = &s->slots[slot];
	float *data = s->env.pools[slot].data;
	const size_t n = s->env.plan->nmessages;
	size_t i, rank;

	(void)q;
	(void)err;
	t->bad.found = false;
	for (i = 0; i < n && !t->bad.found; i++)
		t->bad = find_bad(s, slot, i);
	for (i = 0; i < n && !t->bad.found; i++) {
		const struct chunks c = chunks_of(s, slot, i);

		gf_feedback_commit(s, data, (size_t)(c.data - data), c.count_elems);
		for (rank = 0; rank < t->list[i].count_elems; rank++)
			decode_add(&c, set_of(&t->list[i], rank));
	}
	return 0;
}

/* --- on the compute thread ------------------------------------------------ */

static int open_slot(struct gf_selector *s, size_t slot, struct gf_error *err)
{
	const struct gf_onebit_params *p = gf_onebit_params(&s->env.plan->selection);
	const size_t n = s->env.plan->nmessages;
	const size_t ranks = (size_t)s->env.plan->ranks;
	struct gf_work *list = gf_select_own_work(s, slot, n);
	unsigned char *sets;
	size_t bytes = 0, i;
	int rc;

	for (i = 0; i < n; i++) {
		const size_t set_bytes = gf_onebit_set_bytes(p, list[i].count_elems);

		list[i].sparse = gf_sparse_find("topk");
		list[i].half = GF_COLL_ALL_GATHER;
		list[i].element = gf_element_set(set_bytes, NULL, NULL);
		list[i].count_elems = ranks;
		bytes += ranks * set_bytes;
	}
	rc = gf_select_memory(s, slot, 0, bytes, err);
	sets = s->slots[slot].memory[0];
	for (i = 0; i < n && !rc; i++) {
		list[i].data = sets;
		sets += ranks * list[i].element.size_bytes;
	}
	return rc;
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .end = end},
	.residual = "onebit.residual",
	.check = gf_select_check_whole,
	.open_slot = open_slot,
};

const struct gf_selection_entry gf_selection_onebit = {
	.plan = &gf_select_plan_onebit,
	.ops = &ops,
};
