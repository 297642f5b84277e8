/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/verify.h"

#include <stdbool.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/layout.h"

/*
 * Freedom from races, proved from the dependencies alone: nothing here knows how they were derived.
 *
 * A buffer is cut wherever a range begins or ends, and each piece gets the list of steps that touch
 * it. Dependencies point backwards, so of two steps that conflict the earlier must be an ancestor
 * of the later. By transitivity it is enough to look at the last writer before each step, and for a
 * writer also at the readers since. Ancestors are found by a search backwards that never goes below
 * the step in question.
 */

struct touch {
	size_t place; /* where the piece begins */
	uint32_t step;
	bool writes;
};

struct races {
	const struct gf_schedule *s;
	enum gf_buffer buffer;
	size_t *cuts;
	size_t ncuts, cuts_capacity;
	struct touch *touches;
	size_t ntouches, touches_capacity;
	uint32_t *seen; /* per step: the last search that saw it */
	uint32_t *stack;
	uint32_t search;
};

GF_ORDER(by_place, size_t, GF_BY(*x, *y))

GF_ORDER(by_place_and_step, struct touch, GF_BY(x->place, y->place) ?: GF_BY(x->step, y->step))

static void cut(struct races *r, struct gf_range range)
{
	if (!range.count || range.buffer != r->buffer)
		return;
	*gf_array_push(&r->cuts, &r->ncuts, &r->cuts_capacity) = range.first;
	*gf_array_push(&r->cuts, &r->ncuts, &r->cuts_capacity) = range.first + range.count;
}

static void touch(struct races *r, uint32_t step, struct gf_range range, bool writes)
{
	const size_t *at;

	if (!range.count || range.buffer != r->buffer)
		return;
	at = bsearch(&range.first, r->cuts, r->ncuts, sizeof(*r->cuts), by_place);
	for (; *at < range.first + range.count; at++)
		*gf_array_push(&r->touches, &r->ntouches, &r->touches_capacity) =
			(struct touch){*at, step, writes};
}

/* Lists the steps that touch each piece, by piece and then in program order. */
static void collect(struct races *r)
{
	size_t i, n = 0;

	r->ncuts = r->ntouches = 0;
	for (i = 0; i < r->s->nsteps; i++) {
		cut(r, r->s->steps[i].range);
		cut(r, r->s->steps[i].from);
	}
	if (!r->ncuts)
		return;
	qsort(r->cuts, r->ncuts, sizeof(*r->cuts), by_place);
	for (i = 0; i < r->ncuts; i++)
		if (!n || r->cuts[i] != r->cuts[n - 1])
			r->cuts[n++] = r->cuts[i];
	r->ncuts = n;
	for (i = 0; i < r->s->nsteps; i++) {
		const struct gf_step *step = &r->s->steps[i];

		touch(r, (uint32_t)i, step->from, false);
		touch(r, (uint32_t)i, step->range, step->op != GF_STEP_SEND || r->s->lossy);
	}
	qsort(r->touches, r->ntouches, sizeof(*r->touches), by_place_and_step);
}

static bool is_ancestor(struct races *r, uint32_t target, uint32_t step)
{
	const struct gf_schedule *s = r->s;
	size_t depth = 0;

	r->search++;
	r->stack[depth++] = step;
	while (depth) {
		const struct gf_step *at = &s->steps[r->stack[--depth]];

		for (uint32_t k = 0; k < at->ndeps; k++) {
			uint32_t d = s->deps[at->first_dep + k];

			if (d == target)
				return true;
			if (d > target && r->seen[d] != r->search) {
				r->seen[d] = r->search;
				r->stack[depth++] = d;
			}
		}
	}
	return false;
}

static int want_order(struct races *r, const struct touch *a, const struct touch *b,
		      struct gf_error *err)
{
	if (a->step == b->step || is_ancestor(r, a->step, b->step))
		return 0;
	return gf_error_set(err, -EINVAL, "rank %d steps %u and %u both touch %s[%zu] in no order",
			    r->s->rank, a->step, b->step, gf_buffer_name(r->buffer), a->place);
}

static int check_buffer(struct races *r, struct gf_error *err)
{
	const struct touch *writer = NULL, *reader, *t, *end;
	int rc = 0;

	collect(r);
	end = r->touches + r->ntouches;
	for (t = reader = r->touches; !rc && t < end; t++) {
		if (reader->place != t->place) {
			writer = NULL;
			reader = t;
		}
		if (writer)
			rc = want_order(r, writer, t, err);
		if (!t->writes)
			continue;
		for (; !rc && reader < t; reader++)
			rc = want_order(r, reader, t, err);
		writer = t;
		reader = t;
	}
	return rc;
}

/* Checks all pairs of steps of one rank that touch the same element, one of them as a writer.
 * Dependencies must order the pair, directly or through other steps. */
static int check_races(const struct gf_schedule *s, struct gf_error *err)
{
	struct races r = {.s = s};
	int rc;

	r.seen = gf_xcalloc(s->nsteps, sizeof(*r.seen));
	r.stack = gf_xcalloc(s->nsteps + 1, sizeof(*r.stack));
	r.buffer = GF_BUFFER_DATA;
	rc = check_buffer(&r, err);
	r.buffer = GF_BUFFER_SCRATCH;
	rc = rc ?: check_buffer(&r, err);
	free(r.cuts);
	free(r.touches);
	free(r.seen);
	free(r.stack);
	return rc;
}

static bool same_owned(const struct gf_schedule *a, const struct gf_schedule *b)
{
	for (size_t i = 0; i < a->nowned && i < b->nowned; i++)
		if (!gf_range_same(a->owned[i], b->owned[i]))
			return false;
	return a->nowned == b->nowned;
}

/* The ranges that the ranks own must make up the message, each element once, or once in each of
 * some copies. */
static int check_owned(const struct gf_schedule *ranks, int nranks, struct gf_error *err)
{
	GF_FREED struct gf_layout_piece *pieces = NULL;
	size_t n = 0, capacity = 0, i, owned = 0;
	int rank, rc, sharers = nranks;

	for (rank = 0; rank < nranks; rank++)
		for (i = 0; i < ranks[rank].nowned; i++)
			owned += ranks[rank].owned[i].count;
	if (owned > ranks[0].count_elems && owned % ranks[0].count_elems == 0 &&
	    (size_t)nranks % (owned / ranks[0].count_elems) == 0)
		sharers = nranks / (int)(owned / ranks[0].count_elems);
	for (rank = sharers; rank < nranks; rank++)
		if (!same_owned(&ranks[rank], &ranks[rank - sharers]))
			return gf_error_set(err, -EINVAL,
					    "rank %d: want the parts of rank %d, got others", rank,
					    rank - sharers);
	for (rank = 0; rank < sharers; rank++)
		for (i = 0; i < ranks[rank].nowned; i++)
			*gf_array_push(&pieces, &n, &capacity) = (struct gf_layout_piece){
				rank, ranks[rank].owned[i].first, ranks[rank].owned[i].count};
	rc = gf_layout_check(&(struct gf_layout){pieces, n}, sharers, ranks[0].count_elems, err);
	return rc;
}

int gf_verify(const struct gf_schedule *ranks, int nranks, enum gf_coll_half half,
	      struct gf_error *err)
{
	uint32_t **partners;
	int rank, rc = 0;

	if (half != GF_COLL_WHOLE)
		rc = check_owned(ranks, nranks, err);
	rc = rc ?: gf_verify_shape(ranks, nranks, &partners, err);
	if (rc)
		return rc;
	for (rank = 0; !rc && rank < nranks; rank++)
		rc = check_races(&ranks[rank], err);
	rc = rc ?: gf_verify_run(ranks, nranks, half, partners, err);
	gf_partners_free(partners, nranks);
	return rc;
}
