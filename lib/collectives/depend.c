/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gf_schedule_finish: dependencies out of ranges.
 *
 * All range ends are known by now, so each buffer is cut once at every end (sorted, without
 * duplicates). Between two cuts lies a piece that every step touches wholly or not at all, and a
 * piece needs to remember only its last writer and the readers since: a reader waits for the
 * writer, a writer for both. Finding a step's pieces is a binary search; generators use the same
 * ranges again and again, so a step touches few of them.
 */
#include "collectives/schedule.h"

#include <assert.h>

#include "base/array.h"
#include "base/heap.h"

#define NONE UINT32_MAX

struct piece {
	uint32_t writer;  /* step or NONE */
	uint32_t readers; /* chain into readers[] or NONE */
};

struct cuts { /* of one buffer */
	size_t *at;
	size_t count, capacity;
	struct piece *pieces; /* piece k is [at[k], at[k + 1]) */
};

struct reader {
	uint32_t step, next;
};

struct derivation {
	struct gf_schedule *s;
	struct cuts cuts[2]; /* by enum gf_buffer */
	struct reader *readers;
	size_t nreaders, readers_capacity;
	uint32_t *found; /* dependencies of the current step */
	size_t nfound;
	uint32_t *mark; /* mark[i] == step + 1: i is in found */
	size_t deps_capacity;
};

static void add_cuts(struct derivation *d, struct gf_range range)
{
	struct cuts *c = &d->cuts[range.buffer];

	*gf_array_push(&c->at, &c->count, &c->capacity) = range.first;
	*gf_array_push(&c->at, &c->count, &c->capacity) = range.first + range.count;
}

GF_ORDER(by_place, size_t, GF_BY(*x, *y))

static void sort_cuts(struct cuts *c)
{
	size_t i, n = 0;

	if (!c->count)
		return;
	qsort(c->at, c->count, sizeof(*c->at), by_place);
	for (i = 0; i < c->count; i++)
		if (!n || c->at[i] != c->at[n - 1])
			c->at[n++] = c->at[i];
	c->count = n;
	c->pieces = gf_xcalloc(n, sizeof(*c->pieces));
	for (i = 0; i < n; i++)
		c->pieces[i] = (struct piece){NONE, NONE};
}

static size_t find_cut(const struct cuts *c, size_t place)
{
	size_t low = 0, high = c->count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (c->at[middle] <= place)
			low = middle;
		else
			high = middle;
	}
	assert(c->at[low] == place);
	return low;
}

static void depend_on(struct derivation *d, uint32_t step, uint32_t other)
{
	if (other == NONE || other == step || d->mark[other] == step + 1)
		return;
	d->mark[other] = step + 1;
	d->found[d->nfound++] = other;
}

static void touch(struct derivation *d, uint32_t step, struct gf_range range, int writes)
{
	struct cuts *c = &d->cuts[range.buffer];
	size_t end = range.first + range.count, k;

	for (k = find_cut(c, range.first); c->at[k] < end; k++) {
		struct piece *piece = &c->pieces[k];

		depend_on(d, step, piece->writer);
		if (writes) {
			for (uint32_t i = piece->readers; i != NONE; i = d->readers[i].next)
				depend_on(d, step, d->readers[i].step);
			*piece = (struct piece){step, NONE};
		} else {
			struct reader *r =
				gf_array_push(&d->readers, &d->nreaders, &d->readers_capacity);

			*r = (struct reader){step, piece->readers};
			piece->readers = (uint32_t)(d->nreaders - 1);
		}
	}
}

GF_ORDER(by_index, uint32_t, GF_BY(*x, *y))

/* Stores the dependencies that were found, except those that another of them already waits for:
 * this drops the writer of a value that this step overwrites after its readers. */
static void store(struct derivation *d, uint32_t index)
{
	struct gf_schedule *s = d->s;
	struct gf_step *step = &s->steps[index];

	for (size_t i = 0; i < d->nfound; i++) {
		const struct gf_step *other = &s->steps[d->found[i]];

		for (uint32_t k = 0; k < other->ndeps; k++)
			d->mark[s->deps[other->first_dep + k]] = 0;
	}
	qsort(d->found, d->nfound, sizeof(*d->found), by_index);
	step->first_dep = (uint32_t)s->ndeps;
	for (size_t i = 0; i < d->nfound; i++)
		if (d->mark[d->found[i]] == index + 1)
			*gf_array_push(&s->deps, &s->ndeps, &d->deps_capacity) = d->found[i];
	step->ndeps = (uint32_t)(s->ndeps - step->first_dep);
	d->nfound = 0;
}

void gf_schedule_finish(struct gf_schedule *s)
{
	struct derivation d = {.s = s};

	/* p counters per rank are p * p of a whole job */
	free(s->nsent);
	free(s->nreceived);
	s->nsent = s->nreceived = NULL;
	d.found = gf_xcalloc(s->nsteps, sizeof(*d.found));
	d.mark = gf_xcalloc(s->nsteps, sizeof(*d.mark));
	for (uint32_t i = 0; i < s->nsteps; i++) {
		add_cuts(&d, s->steps[i].range);
		if (s->steps[i].from.count)
			add_cuts(&d, s->steps[i].from);
	}
	sort_cuts(&d.cuts[GF_BUFFER_DATA]);
	sort_cuts(&d.cuts[GF_BUFFER_SCRATCH]);

	free(s->deps);
	s->deps = NULL;
	s->ndeps = 0;
	for (uint32_t i = 0; i < s->nsteps; i++) {
		const struct gf_step *step = &s->steps[i];

		if (step->from.count)
			touch(&d, i, step->from, 0);
		touch(&d, i, step->range, step->op != GF_STEP_SEND || s->lossy);
		if (step->after)
			depend_on(&d, i, step->after - 1);
		store(&d, i);
	}
	free(d.cuts[0].at);
	free(d.cuts[0].pieces);
	free(d.cuts[1].at);
	free(d.cuts[1].pieces);
	free(d.readers);
	free(d.found);
	free(d.mark);
}
