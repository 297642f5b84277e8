/* SPDX-License-Identifier: BSD-3-Clause */
#include "compressors/csc.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "transport/pages.h"
#include "gf_kernels.h"
#include "lists/gf_select_plans.h"

/*
 * GradientFlow's coarse-grained sparse communication: the chunks with the largest L1 norms go out
 * packed, the others' gradients wait in a history (compressors/csc.h). Packing and measuring happen
 * on the thread that moves messages, while backward runs. The last message of a step carries the
 * norms; it is the same sum on every rank whatever algorithm the plan's messages have.
 *
 * Several steps may be under way: the thread that moves messages takes them one after the other, so
 * a history is always that of the step before; but what is chosen in a step is taken over when that
 * step is applied, K - 1 steps late.
 */

/* --- chunks on their way -------------------------------------------------- */

/* Fills packed message i: gradient plus history. */
static void pack(struct gf_csc_step *s, size_t message)
{
	const struct gf_csc *c = s->csc;
	float *to = s->work[message].data;
	size_t i, n, first;

	for (i = s->first_chosen[message]; i < s->first_chosen[message + 1]; i++, to += n) {
		n = gf_csc_chunk_count(c, s->chosen[i]);
		first = gf_csc_chunk_first(c, s->chosen[i]);
		memcpy(to, s->data + first, n * sizeof(*to));
		if (!c->empty[s->chosen[i]])
			gf_kernels()->add_f32(to, c->history + first, n);
	}
}

/* Elements first to first + count - 1 of a dense step take up their history. */
static void take_up(struct gf_csc_step *s, size_t first, size_t count)
{
	const struct gf_csc *c = s->csc;
	size_t end = first + count, chunk, n;

	for (; first < end; first += n) {
		chunk = first / c->chunk_elems;
		n = gf_csc_chunk_first(c, chunk) + gf_csc_chunk_count(c, chunk) - first;
		if (n > end - first)
			n = end - first;
		if (!c->empty[chunk])
			gf_kernels()->add_f32(s->data + first, c->history + first, n);
	}
}

/* The norms of packed message i, which now holds sums. */
static void measure(struct gf_csc_step *s, size_t message)
{
	const struct gf_csc *c = s->csc;
	const float *from = s->work[message].data;
	size_t i, n;

	for (i = s->first_chosen[message]; i < s->first_chosen[message + 1]; i++, from += n) {
		n = gf_csc_chunk_count(c, s->chosen[i]);
		s->norms[s->chosen[i]] = gf_kernels()->sum_abs_f32(from, n);
	}
}

/* One chunk that waits and whose tensors are among the first nready takes its history up and is
 * measured; false: there is none. */
static bool accumulate(struct gf_csc_step *s, size_t nready)
{
	const struct gf_csc *c = s->csc;
	size_t chunk, n;
	float *g;

	if (s->taken == s->nwaiting)
		return false;
	chunk = s->waiting[s->taken];
	if (gf_csc_chunk_last_tensor(c, chunk) >= nready)
		return false;
	n = gf_csc_chunk_count(c, chunk);
	g = s->data + gf_csc_chunk_first(c, chunk);
	s->norms[chunk] = c->empty[chunk]
				  ? gf_kernels()->sum_abs_f32(g, n)
				  : gf_kernels()->add_sum_abs_f32(
					    g, c->history + gf_csc_chunk_first(c, chunk), n);
	s->taken++;
	return true;
}

/* --- norms, with a word on gradients that are not finite -------------------
 */

/* A rank's bad gradient as numbers that f32 holds exactly: 1 + the high, the middle and the low
 * part of its element; zeros: none. */
#define BAD_PARTS GF_CSC_BAD_PARTS
#define BAD_BITS  21

/* The lower of `least` and the chunk's first element that is not finite. */
static size_t bad_in(const struct gf_csc_step *s, size_t chunk, const float *values, size_t least)
{
	size_t n = gf_csc_chunk_count(s->csc, chunk), at;

	if (isfinite(s->norms[chunk]))
		return least;
	at = gf_finite_prefix(values, n);
	if (at == n || gf_csc_chunk_first(s->csc, chunk) + at >= least)
		return least;
	return gf_csc_chunk_first(s->csc, chunk) + at;
}

/* The first element whose gradient is not finite, of the sums and of what waits on this rank;
 * count_elems: none. */
static size_t find_bad(const struct gf_csc_step *s)
{
	const struct gf_csc *c = s->csc;
	size_t least = c->layout->count_elems, i, chunk;

	for (i = 0; i < s->nchosen; i++) {
		chunk = s->chosen[i];
		least = bad_in(s, chunk,
			       s->dense ? s->data + gf_csc_chunk_first(c, chunk)
					: s->packed + i * c->chunk_elems,
			       least);
	}
	for (i = 0; i < s->nwaiting; i++) {
		chunk = s->waiting[i];
		least = bad_in(s, chunk, s->data + gf_csc_chunk_first(c, chunk), least);
	}
	return least;
}

/* Everything is measured: fills `shared`, which is then summed over ranks. */
static void share(struct gf_csc_step *s, int rank)
{
	const struct gf_csc *c = s->csc;
	float *marks = s->shared + c->nchunks;
	double part = c->means ? 1 : 1.0 / c->ranks;
	size_t i, bad;

	if (s->dense)
		for (i = 0; i < c->nchunks; i++)
			s->norms[i] = gf_kernels()->sum_abs_f32(s->data + gf_csc_chunk_first(c, i),
								gf_csc_chunk_count(c, i));
	/* Every rank has the sum of an important chunk: they share it. As many means make up the
	 * sum. */
	for (i = 0; i < c->nchunks; i++)
		s->shared[i] = (float)s->norms[i];
	for (i = 0; i < s->nchosen; i++)
		s->shared[s->chosen[i]] = (float)(s->norms[s->chosen[i]] * part);
	memset(marks, 0, BAD_PARTS * (size_t)c->ranks * sizeof(*marks));
	bad = find_bad(s);
	if (bad == c->layout->count_elems)
		return;
	marks += BAD_PARTS * rank;
	marks[0] = 1 + (float)(bad >> 2 * BAD_BITS);
	marks[1] = (float)(bad >> BAD_BITS & (((size_t)1 << BAD_BITS) - 1));
	marks[2] = (float)(bad & (((size_t)1 << BAD_BITS) - 1));
}

/* The element of the pool that is not finite on some rank; count_elems: none. The same on all
 * ranks. */
static size_t bad_at(const struct gf_csc_step *s)
{
	const float *marks = s->shared + s->csc->nchunks;
	size_t first = s->csc->layout->count_elems, at;

	for (int r = 0; r < s->csc->ranks; r++, marks += BAD_PARTS) {
		if (marks[0] < 1)
			continue;
		at = (size_t)(marks[0] - 1) << 2 * BAD_BITS | (size_t)marks[1] << BAD_BITS |
		     (size_t)marks[2];
		if (at < first)
			first = at;
	}
	return first;
}

/* --- the end of a step ---------------------------------------------------- */

static void choose(struct gf_csc_step *s)
{
	const struct gf_csc *c = s->csc;
	size_t kept = gf_csc_kept(c->params, c->nchunks, s->number + 1), i;
	struct gf_topk top = {
		.values = s->shared,
		.count = c->nchunks,
		.k = kept,
		.index = s->pick,
		.scratch = s->scratch,
	};

	gf_kernels()->topk_f32(&top);
	memset(s->next, 0, c->nchunks * sizeof(*s->next));
	for (i = 0; i < kept; i++)
		s->next[s->pick[i]] = 1;
}

/* The histories become this step's: 0 where a chunk went out, what it had times decay where it
 * waited. */
static void commit(struct gf_csc_step *s)
{
	struct gf_csc *c = s->csc;
	size_t i, n, first;

	for (i = 0; i < s->nchosen; i++) {
		if (!c->empty[s->chosen[i]])
			memset(c->history + gf_csc_chunk_first(c, s->chosen[i]), 0,
			       gf_csc_chunk_count(c, s->chosen[i]) * sizeof(float));
		c->empty[s->chosen[i]] = true;
	}
	for (i = 0; i < s->nwaiting; i++) {
		n = gf_csc_chunk_count(c, s->waiting[i]);
		first = gf_csc_chunk_first(c, s->waiting[i]);
		gf_kernels()->scale_f32(c->decay, s->data + first, c->history + first, n);
		c->empty[s->waiting[i]] = false;
	}
}

/* --- on the thread that moves messages -------------------------------------
 */

static int prepare(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		   struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	const struct gf_work *w = &t->list[message];

	if (gf_csc_is_norms(t, message)) {
		while (accumulate(t, t->csc->layout->ntensors))
			;
		share(t, s->env.rank);
		return 0;
	}
	if (t->dense)
		take_up(t, (size_t)((float *)w->data - t->data), w->count_elems);
	else
		pack(t, message);
	return gf_select_scale(s, slot, w, q, err);
}

static int finish(void *ctx, size_t slot, size_t message, struct gf_gpu_stream *q,
		  struct gf_error *err)
{
	const struct gf_selector *s = ctx;
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	int rc;

	if (gf_csc_is_norms(t, message))
		return 0;
	rc = gf_select_unscale(s, slot, &t->list[message], q, err);
	if (!t->dense)
		measure(t, message);
	return rc;
}

static int end(void *ctx, size_t slot, struct gf_gpu_stream *q, struct gf_error *err)
{
	struct gf_csc_step *t = gf_csc_step_of(ctx, slot);

	(void)q;
	(void)err;
	/* after the sum: is a gradient bad? If not, `next` is chosen. */
	t->bad = bad_at(t) < t->csc->layout->count_elems;
	if (t->bad)
		return 0;
	choose(t);
	commit(t);
	return 0;
}

static bool meanwhile(void *ctx, size_t slot, size_t nready)
{
	return accumulate(gf_csc_step_of(ctx, slot), nready);
}

/* --- on the compute thread -------------------------------------------------
 */

static int open_csc(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc *c = gf_xcalloc(1, sizeof(*c));
	int rc;

	s->priv = c;
	rc = gf_csc_init(c, &s->env, err);
	for (size_t i = 0; i < s->env.depth && !rc; i++) {
		void *packed = NULL;

		if (gf_pages_alloc(c->layout->count_elems * sizeof(float), &packed, NULL))
			return gf_error_set(err, -ENOMEM, "no memory for packed chunks");
		c->steps[i].packed = packed;
		c->steps[i].own_packed = true;
	}
	return rc;
}

static void close_csc(struct gf_selector *s)
{
	if (!s->priv)
		return;
	gf_csc_release(s->priv);
	free(s->priv);
}

static struct gf_select_bad inspect(struct gf_selector *s, size_t slot)
{
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);

	return t->bad ? gf_select_bad_at(&s->env.pools[slot], bad_at(t))
		      : (struct gf_select_bad){.found = false};
}

static int keep(struct gf_selector *s, size_t slot, size_t age, bool bad, float *values,
		struct gf_error *err)
{
	const struct gf_csc_step *t = gf_csc_step_of(s, slot);
	struct gf_optim_piece *p = t->csc->pieces;
	size_t n = gf_csc_pieces(t);

	(void)err;
	gf_csc_note(t, age, bad);
	memset(values, 0, t->csc->layout->count_elems * sizeof(*values));
	for (; n > 0; n--, p++)
		memcpy(values + p->first, p->grad, p->count_elems * sizeof(*values));
	return 0;
}

static int restore(struct gf_selector *s, size_t slot, size_t age, const float *values,
		   struct gf_error *err)
{
	struct gf_csc_step *t = gf_csc_step_of(s, slot);
	struct gf_optim_piece *p = t->csc->pieces;
	size_t n;

	(void)err;
	gf_csc_recall(t, age);
	n = gf_csc_pieces(t);
	for (; n > 0; n--, p++)
		memcpy((float *)(uintptr_t)p->grad, values + p->first,
		       p->count_elems * sizeof(*values));
	return 0;
}

/* Another history has come: which chunks have none is not known any more. */
static int send(struct gf_selector *s, struct gf_error *err)
{
	struct gf_csc *c = s->priv;

	(void)err;
	memset(c->empty, 0, c->nchunks * sizeof(*c->empty));
	return 0;
}

static const struct gf_select_ops ops = {
	.hooks = {.prepare = prepare, .finish = finish, .end = end, .meanwhile = meanwhile},
	.open = open_csc,
	.close = close_csc,
	.begin = gf_csc_begin,
	.inspect = inspect,
	.sums = gf_csc_sums,
	.adopt = gf_csc_adopt,
	.state = gf_csc_state,
	.keep = keep,
	.restore = restore,
	.send = send,
};

const struct gf_selection_entry gf_selection_csc = {
	.plan = &gf_select_plan_csc,
	.ops = &ops,
	.on_gpu = &gf_select_csc_gpu,
};
