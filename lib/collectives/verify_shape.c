/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/verify.h"

#include <stdbool.h>

#include "base/array.h"
#include "base/heap.h"

struct end { /* one side of a message */
	int from, to;
	uint32_t match, step;
	size_t count;
};

struct ends {
	struct end *items;
	size_t count, capacity;
};

static int check_range(const struct gf_schedule *s, size_t step, struct gf_range range,
		       struct gf_error *err)
{
	size_t size = range.buffer == GF_BUFFER_DATA ? s->count_elems : s->scratch_elems;

	if (!range.count)
		return gf_error_set(err, -EINVAL, "rank %d step %zu has an empty range", s->rank,
				    step);
	if (range.first > size || range.count > size - range.first)
		return gf_error_set(err, -EINVAL,
				    "rank %d step %zu touches %s[%zu..%zu) of %zu elements",
				    s->rank, step, gf_buffer_name(range.buffer), range.first,
				    range.first + range.count, size);
	return 0;
}

static int check_local(const struct gf_schedule *s, size_t i, struct gf_error *err)
{
	struct gf_range a = s->steps[i].range, b = s->steps[i].from;
	int rc = check_range(s, i, b, err);

	if (rc)
		return rc;
	if (a.count != b.count)
		return gf_error_set(err, -EINVAL, "rank %d step %zu takes %zu elements from %zu",
				    s->rank, i, a.count, b.count);
	if (a.buffer == b.buffer && a.first < b.first + b.count && b.first < a.first + a.count)
		return gf_error_set(err, -EINVAL,
				    "rank %d step %zu takes elements from where it writes", s->rank,
				    i);
	return 0;
}

static int check_step(const struct gf_schedule *s, size_t i, struct gf_error *err)
{
	const struct gf_step *step = &s->steps[i];
	bool from = step->op == GF_STEP_COPY || step->op == GF_STEP_REDUCE;
	bool local = from || step->op == GF_STEP_ROUND;
	int rc = check_range(s, i, step->range, err);

	if (!rc && from)
		rc = check_local(s, i, err);
	if (rc)
		return rc;
	if (!local && (step->peer < 0 || step->peer >= s->ranks || step->peer == s->rank))
		return gf_error_set(err, -EINVAL,
				    "rank %d step %zu: want a peer among %d ranks, got %d", s->rank,
				    i, s->ranks, step->peer);
	for (uint32_t k = 0; k < step->ndeps; k++)
		if (s->deps[step->first_dep + k] >= i)
			return gf_error_set(
				err, -EINVAL,
				"rank %d step %zu depends on step %u, which is not before it",
				s->rank, i, s->deps[step->first_dep + k]);
	return 0;
}

static int check_rank(const struct gf_schedule *ranks, int nranks, int rank, struct gf_error *err)
{
	const struct gf_schedule *s = &ranks[rank];
	int rc;

	if (s->rank != rank || s->ranks != nranks)
		return gf_error_set(err, -EINVAL,
				    "want the schedule of rank %d of %d, got rank %d of %d", rank,
				    nranks, s->rank, s->ranks);
	if (s->count_elems != ranks[0].count_elems || s->contributors != ranks[0].contributors)
		return gf_error_set(err, -EINVAL,
				    "rank %d sums %zu elements of %d ranks, rank 0 %zu of %d", rank,
				    s->count_elems, s->contributors, ranks[0].count_elems,
				    ranks[0].contributors);
	for (size_t i = 0; i < s->nsteps; i++) {
		rc = check_step(s, i, err);
		if (rc)
			return rc;
	}
	return 0;
}

GF_ORDER(by_message, struct end,
	 GF_BY(x->from, y->from) ?: GF_BY(x->to, y->to)
	 ?: GF_BY(x->match, y->match))

static void collect(const struct gf_schedule *ranks, int nranks, struct ends *sends,
		    struct ends *receives)
{
	for (int rank = 0; rank < nranks; rank++) {
		for (size_t i = 0; i < ranks[rank].nsteps; i++) {
			const struct gf_step *step = &ranks[rank].steps[i];
			bool send = step->op == GF_STEP_SEND;
			struct ends *ends = send ? sends : receives;

			if (step->peer < 0)
				continue;
			*gf_array_push(&ends->items, &ends->count, &ends->capacity) = (struct end){
				.from = send ? rank : step->peer,
				.to = send ? step->peer : rank,
				.match = step->match,
				.step = (uint32_t)i,
				.count = step->range.count,
			};
		}
	}
	if (sends->count)
		qsort(sends->items, sends->count, sizeof(struct end), by_message);
	if (receives->count)
		qsort(receives->items, receives->count, sizeof(struct end), by_message);
}

/* How many messages from item i on have its sender and receiver. */
static size_t length(const struct ends *e, size_t i, int from, int to)
{
	size_t n = 0;

	while (i + n < e->count && e->items[i + n].from == from && e->items[i + n].to == to)
		n++;
	return n;
}

/* One sender and receiver: the same number, numbered 0, 1, ..., and as long. */
static int pair_up(const struct end *sends, const struct end *receives, size_t n,
		   uint32_t **partners, struct gf_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct end *a = &sends[i], *b = &receives[i];

		if (a->match != i || b->match != i)
			return gf_error_set(err, -EINVAL,
					    "message %zu from rank %d to %d is numbered %u and %u",
					    i, a->from, a->to, a->match, b->match);
		if (a->count != b->count)
			return gf_error_set(err, -EINVAL,
					    "rank %d step %u sends %zu elements to rank %d, whose "
					    "step %u receives %zu",
					    a->from, a->step, a->count, a->to, b->step, b->count);
		partners[a->from][a->step] = b->step;
		partners[a->to][b->step] = a->step;
	}
	return 0;
}

static int match(const struct gf_schedule *ranks, int nranks, uint32_t **partners,
		 struct gf_error *err)
{
	struct ends sends = {0}, receives = {0};
	size_t i = 0, k = 0;
	int rc = 0;

	collect(ranks, nranks, &sends, &receives);
	while (!rc && (i < sends.count || k < receives.count)) {
		const struct end *a = i < sends.count ? &sends.items[i] : NULL;
		const struct end *b = k < receives.count ? &receives.items[k] : NULL;
		const struct end *next = !b || (a && by_message(a, b) < 0) ? a : b;
		size_t out = length(&sends, i, next->from, next->to);
		size_t in = length(&receives, k, next->from, next->to);

		if (out != in)
			rc = gf_error_set(
				err, -EINVAL,
				"rank %d sends %zu messages to rank %d, which receives %zu",
				next->from, out, next->to, in);
		else
			rc = pair_up(a, b, out, partners, err);
		i += out;
		k += in;
	}
	free(sends.items);
	free(receives.items);
	return rc;
}

int gf_verify_shape(const struct gf_schedule *ranks, int nranks, uint32_t ***partners,
		    struct gf_error *err)
{
	uint32_t **table;
	int rank, rc;

	for (rank = 0; rank < nranks; rank++) {
		rc = check_rank(ranks, nranks, rank, err);
		if (rc)
			return rc;
	}
	table = gf_xcalloc((size_t)nranks, sizeof(*table));
	for (rank = 0; rank < nranks; rank++)
		table[rank] = gf_xcalloc(ranks[rank].nsteps, sizeof(**table));
	rc = match(ranks, nranks, table, err);
	if (!rc)
		*partners = table;
	else
		gf_partners_free(table, nranks);
	return rc;
}

void gf_partners_free(uint32_t **partners, int nranks)
{
	for (int rank = 0; partners && rank < nranks; rank++)
		free(partners[rank]);
	free(partners);
}
