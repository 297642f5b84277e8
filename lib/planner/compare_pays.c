/* SPDX-License-Identifier: BSD-3-Clause */
/* From where on each row of a comparison is faster than dense f32 gradients. */
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "planner/compare.h"
#include "planner/summary.h"
#include "simulator/whatif/plan_variant.h"

/* Bandwidths that are tried, bytes per second: from 1 Mb/s on, each this much more. A crossing lies
 * between two of them. */
#define LEAST_RATE 125e3
#define STEP       1.02
#define RATES      1000
/* Ranks that are tried: powers of two. */
#define RANKS 10
_Static_assert(1 << RANKS == GF_COMPARE_RANKS_MOST, "the ranks that are tried");

/* The comparison at each bandwidth, and then on each number of ranks, once it is asked for: how
 * many times as fast as the best dense row each row is there; 0: one of both does not run. */
struct elsewhere {
	const struct gf_request *request;
	const struct gf_comparison *here;
	double *gains[RATES + RANKS];
};

/* It sends all gradients as they are. */
static bool is_dense(const struct gf_compared *row)
{
	return gf_codec_is_plain(row->plan.codecs) &&
	       gf_selection_has(&row->whole->selection, GF_SELECT_LOSSLESS);
}

static double rate_at(size_t i)
{
	return LEAST_RATE * pow(STEP, (double)i);
}

static bool same_value(const struct gf_compared *a, const struct gf_compared *b)
{
	return a->axis == b->axis && strcmp(a->name, b->name) == 0 &&
	       (!a->across || strcmp(a->across, b->across) == 0);
}

/* The rows' gains, of the comparison there. */
static void fill_gains(const struct gf_comparison *here, const struct gf_comparison *there,
		       double *gains)
{
	double dense_s = 0;

	for (size_t k = there->nrows; k-- > 0;)
		if (is_dense(&there->rows[k]))
			dense_s = there->rows[k].times.iteration_s; /* the best is the first */
	for (size_t i = 0; i < here->nrows; i++)
		for (size_t k = 0; k < there->nrows; k++)
			if (same_value(&here->rows[i], &there->rows[k]) &&
			    !(there->rows[k].unsure & GF_UNSURE_DERIVED))
				gains[i] = dense_s / there->rows[k].times.iteration_s;
}

/* Plans anew at the i-th place. What fits nowhere there gains nothing. */
static double *gains_at(struct elsewhere *e, size_t i)
{
	const struct gf_what_if what = {
		.bandwidth_bytes_per_s = i < RATES ? rate_at(i) : 0,
		.ranks = i < RATES ? 0 : 2 << (i - RATES),
	};
	struct gf_plan bare = *e->here->rows[0].whole; /* its fabric */
	struct gf_request r = *e->request;
	struct gf_compare_over over = e->here->over;
	GF_RELEASED(gf_comparison_release) struct gf_comparison there = {0};
	GF_RELEASED(gf_text_release) struct gf_text notes = {0};
	GF_RELEASED(gf_variant_release) struct gf_variant v = {0};
	struct gf_error err;

	if (e->gains[i])
		return e->gains[i];
	e->gains[i] = gf_xcalloc(e->here->nrows, sizeof(double));
	bare.nmessages = 0;
	bare.predicted = NULL;
	over.pays = false;
	over.twice = true; /* rows of here may coincide there */
	over.progress = NULL;
	if (gf_variant_init(&v, &bare, &what, &err) == 0) {
		r.fabric = v.fabric;
		r.fabric.processing = e->request->fabric.processing;
		r.fabric.replays = e->request->fabric.replays;
		r.fabric.ranks = what.ranks ? what.ranks : bare.ranks;
		r.ranks_asked = true;
		if (gf_request_compare(&r, &over, NULL, &there, &notes, &err) == 0)
			fill_gains(e->here, &there, e->gains[i]);
	}
	return e->gains[i];
}

/* Between the two bandwidths at which the row still pays and no longer does, the gain goes by the
 * logarithm. */
static double below(struct elsewhere *e, size_t row)
{
	size_t low = 0, high = RATES - 1;
	double above, under;

	if (gains_at(e, low)[row] < GF_GAIN_LEAST)
		return 0;
	if (gains_at(e, high)[row] >= GF_GAIN_LEAST)
		return INFINITY;
	while (high - low > 1) {
		const size_t middle = (low + high) / 2;

		*(gains_at(e, middle)[row] >= GF_GAIN_LEAST ? &low : &high) = middle;
	}
	above = gains_at(e, low)[row] - GF_GAIN_LEAST;
	under = GF_GAIN_LEAST - gains_at(e, high)[row];
	return rate_at(low) * pow(STEP, above / (above + under));
}

/* The first run of numbers of ranks on which the row pays. */
static void find_ranks(struct elsewhere *e, size_t row, int *from, int *to)
{
	size_t i = 0;

	while (i < RANKS && gains_at(e, RATES + i)[row] < GF_GAIN_LEAST)
		i++;
	if (i == RANKS)
		return;
	*from = 2 << i;
	while (i < RANKS && gains_at(e, RATES + i)[row] >= GF_GAIN_LEAST)
		*to = 2 << i++;
}

void gf_comparison_find_pays(const struct gf_request *r, struct gf_comparison *c)
{
	struct elsewhere e = {.request = r, .here = c};

	for (size_t i = 0; i < c->nrows; i++)
		c->pays |= is_dense(&c->rows[i]);
	for (size_t i = 0; c->pays && i < c->nrows; i++) {
		struct gf_compared *row = &c->rows[i];

		if (is_dense(row))
			continue;
		row->pays_below_bytes_per_s = below(&e, i);
		find_ranks(&e, i, &row->pays_from_ranks, &row->pays_to_ranks);
		if (c->over.progress)
			c->over.progress(c->over.progress_ctx, (double)(i + 1) / (double)c->nrows,
					 "where rows pay");
	}
	for (size_t i = 0; i < RATES + RANKS; i++)
		free(e.gains[i]);
}
