/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onebit: the sign of every element and one scale per chunk, with error feedback (Seide, Fu,
 * Droppo, Li, Yu: 1-Bit Stochastic Gradient Descent and its Application to Data-Parallel
 * Distributed Training of Speech DNNs, Interspeech 2014; the scale is that of Karimireddy, Rebjock,
 * Stich, Jaggi: Error Feedback Fixes SignSGD and other Gradient Compression Schemes, ICML 2019).
 *
 * Step t on each of P ranks, for every message of n elements (e begins at 0):
 *	x = e + gradient
 *	per chunk c of chunk_elems elements, the last one short:
 *		s_c = (sum of |x_i| over the chunk) / (elements of the chunk)
 *	q_i = -s_c if x_i < 0, else s_c
 *	e = x - q
 *	w = w - rate * (sum over ranks of q) / P
 *
 * On the wire: one set per rank and message, all of them gathered. A set is ceil(n/chunk_elems)
 * scales as f32, then ceil(n/32) words of 32 bits; bit i%32 of word i/32 is 1 where x_i < 0, and
 * bits after the last element are 0. For n = 5 and chunks of 4, x = (1, -2, 3, 0, -4) goes out as
 * the scales 1.5 and 4 and the word 0x12, 12 bytes; q = (1.5, -1.5, 1.5, 1.5, -4) and
 * e = (-0.5, -0.5, 1.5, -1.5, 0).
 *
 * Sums of signs are no signs: every rank adds the sets of all in rank order. A gradient that is not
 * finite makes its chunk's scale so, which all ranks see.
 */
#include "compressors/halves.h"

#include <math.h>
#include <string.h>

#define CHUNK_ELEMS 1024
#define SCALE_BYTES 4
#define WORD_BYTES  4
#define WORD_BITS   32

struct params {
	size_t chunk_elems;
	char *extra; /* x- keys */
};

static size_t chunks_in(const struct params *p, size_t count_elems)
{
	return count_elems ? (count_elems - 1) / p->chunk_elems + 1 : 0;
}

static size_t set_bytes(const struct params *p, size_t count_elems)
{
	const size_t words = (count_elems + WORD_BITS - 1) / WORD_BITS;

	return chunks_in(p, count_elems) * SCALE_BYTES + words * WORD_BYTES;
}

#if GF_PLAN_HALF
#define AT(member) offsetof(struct params, member)
static const struct gf_field fields[] = {
	{GF_MEMBER(chunk_elems, GF_FIELD_SIZE, GF_DEFAULTED), .low = 1, .high = GF_MAX_SIZE,
	 .absent = CHUNK_ELEMS, .unit = "ELEMS", .help = "elements of a chunk"},
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct params, fields),
};
#undef AT

static size_t wire(const void *params, const struct gf_wired *message, struct gf_wire *wires)
{
	*wires = (struct gf_wire){GF_WIRE_GATHER, message->count_elems,
				  (double)set_bytes(params, (size_t)message->count_elems), 1};
	return 1;
}

static const struct params defaults = {.chunk_elems = CHUNK_ELEMS};

/* MANUAL
 * Each rank sends the sign of every element and one scale per chunk, the mean magnitude of its
 * elements.
 * Every rank adds the signs of all ranks.
 * The rest of gradient plus residual is the next step's residual.
 * @key chunk_elems
 * elements with one scale */
const struct gf_select_plan gf_select_plan_onebit = {
	.name = "onebit",
	.description = "the sign of every element, and a scale per chunk",
	.place = 70,
	.source = "1-Bit SGD (Seide et al. 2014)",
	.traits = GF_SELECT_SETS,
	.record = &record,
	.defaults = &defaults,
	.encoding = "whose signs travel with their scales",
	.less_momentum = "most of a large element goes out steps later",
	.wire = wire,
};

#else
/* Elements of a message as chunks see them. */
struct chunks {
	float *data;
	size_t count_elems, chunk_elems, nchunks;
};

static struct chunks chunks_of(const struct gf_selector *s, size_t slot, size_t message)
{
	const struct gf_work *w = &s->plan_work[slot][message];
	const struct params *p = gf_select_params(s);

	return (struct chunks){w->data, w->count_elems, p->chunk_elems,
			       chunks_in(p, w->count_elems)};
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

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	struct gf_selector *s = ctx;
	const struct chunks c = chunks_of(s, slot, message);
	float *data = s->env.pools[slot].data;

	(void)q;
	(void)err;
	gf_feedback_add(s, data, (size_t)(c.data - data), c.count_elems);
	encode(&c, gf_select_set(&s->slots[slot].list[message], (size_t)s->env.rank));
	return 0;
}

static struct gf_select_bad find_bad(const struct gf_selector *s, size_t slot, size_t message)
{
	const struct gf_work *w = &s->slots[slot].list[message];
	const struct chunks c = chunks_of(s, slot, message);
	const struct gf_pool *pool = &s->env.pools[slot];

	for (size_t rank = 0; rank < w->count_elems; rank++)
		for (size_t i = 0; i < c.nchunks; i++)
			if (!isfinite(scale_at(gf_select_set(w, rank), i)))
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

	(void)q;
	(void)err;
	t->bad.found = false;
	for (size_t i = 0; i < n && !t->bad.found; i++)
		t->bad = find_bad(s, slot, i);
	for (size_t i = 0; i < n && !t->bad.found; i++) {
		const struct chunks c = chunks_of(s, slot, i);

		gf_feedback_commit(s, data, (size_t)(c.data - data), c.count_elems);
		for (size_t rank = 0; rank < t->list[i].count_elems; rank++)
			decode_add(&c, gf_select_set(&t->list[i], rank));
	}
	return 0;
}

/* --- on the compute thread ------------------------------------------------ */

static size_t set_bytes_of(const struct gf_selector *s, size_t count_elems)
{
	return set_bytes(gf_select_params(s), count_elems);
}

static int open_slot(struct gf_selector *s, size_t slot, struct gf_error *err)
{
	return gf_select_open_sets(s, slot, set_bytes_of, err);
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .end = end},
	.residual = "onebit.residual",
	.open_slot = open_slot,
};

const struct gf_selection_entry gf_selection_onebit = {
	.plan = &gf_select_plan_onebit,
	.ops = &ops,
};

#endif
