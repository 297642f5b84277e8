/* SPDX-License-Identifier: BSD-3-Clause */
/* From where on each row of a comparison is faster than dense f32 gradients. */
#include <math.h>
#include <stdlib.h>

#include "collectives/codecs/codec.h"
#include "planner/compare.h"
#include "planner/summary.h"
#include "simulator/whatif/whatif.h"

/* Bandwidths that are tried, bytes per second: from 1 Mb/s on, each this much more. A crossing lies
 * between two of them. */
#define LEAST_RATE 125e3
#define STEP       1.25
#define RATES      90
/* Ranks that are tried: powers of two. */
#define RANKS 10
_Static_assert(1 << RANKS == GF_COMPARE_RANKS_MOST, "the ranks that are tried");

/* A row at each bandwidth and on each number of ranks: its iteration, once it is asked for; 0: not
 * yet, negative: it does not run there. */
struct elsewhere {
	const struct gf_compared *row;
	double at_rate_s[RATES], on_ranks_s[RANKS];
};

static double there_s(const struct elsewhere *e, int ranks, double rate)
{
	const struct gf_what_if what = {.ranks = ranks, .bandwidth_bytes_per_s = rate};
	struct gf_outcome o;
	double takes_s;

	if (gf_what_if(e->row->whole, &what, &o, NULL) < 0)
		return -1;
	takes_s = o.iteration_s;
	gf_outcome_release(&o);
	return takes_s;
}

static double rate_at(size_t i)
{
	return LEAST_RATE * pow(STEP, (double)i);
}

static double at_rate_s(struct elsewhere *e, size_t i)
{
	if (e->at_rate_s[i] == 0)
		e->at_rate_s[i] = there_s(e, 0, rate_at(i));
	return e->at_rate_s[i];
}

static double on_ranks_s(struct elsewhere *e, size_t i)
{
	if (e->on_ranks_s[i] == 0)
		e->on_ranks_s[i] = there_s(e, 2 << i, 0);
	return e->on_ranks_s[i];
}

/* How many times as fast as the other; 0: one of both does not run there. */
static double gain(double with_s, double without_s)
{
	return with_s > 0 && without_s > 0 ? without_s / with_s : 0;
}

static double gain_at(struct elsewhere *e, struct elsewhere *dense, size_t i)
{
	return gain(at_rate_s(e, i), at_rate_s(dense, i));
}

static double gain_on(struct elsewhere *e, struct elsewhere *dense, size_t i)
{
	return gain(on_ranks_s(e, i), on_ranks_s(dense, i));
}

/* Between the two bandwidths at which it still pays and no longer does, the gain goes by the
 * logarithm. */
static double below(struct elsewhere *e, struct elsewhere *dense)
{
	size_t low = 0, high = RATES - 1;
	double above, under;

	if (gain_at(e, dense, low) < GF_GAIN_LEAST)
		return 0;
	if (gain_at(e, dense, high) >= GF_GAIN_LEAST)
		return INFINITY;
	while (high - low > 1) {
		const size_t middle = (low + high) / 2;

		*(gain_at(e, dense, middle) >= GF_GAIN_LEAST ? &low : &high) = middle;
	}
	above = gain_at(e, dense, low) - GF_GAIN_LEAST;
	under = GF_GAIN_LEAST - gain_at(e, dense, high);
	return rate_at(low) * pow(STEP, above / (above + under));
}

/* The first run of numbers of ranks on which it pays. */
static void find_ranks(struct elsewhere *e, struct elsewhere *dense, int *from, int *to)
{
	size_t i = 0;

	while (i < RANKS && gain_on(e, dense, i) < GF_GAIN_LEAST)
		i++;
	if (i == RANKS)
		return;
	*from = 2 << i;
	while (i < RANKS && gain_on(e, dense, i) >= GF_GAIN_LEAST)
		*to = 2 << i++;
}

/* The best row that sends all gradients as they are; NULL: there is none. */
static const struct gf_compared *dense_of(const struct gf_comparison *c)
{
	size_t i;

	for (i = 0; i < c->nrows; i++)
		if (gf_codec_is_plain(c->rows[i].plan.codecs) &&
		    gf_selection_has(&c->rows[i].whole->selection, GF_SELECT_LOSSLESS))
			return &c->rows[i];
	return NULL;
}

void gf_comparison_find_pays(struct gf_comparison *c)
{
	struct elsewhere dense = {.row = dense_of(c)};
	size_t i;

	c->pays = dense.row != NULL;
	for (i = 0; c->pays && i < c->nrows; i++) {
		struct gf_compared *row = &c->rows[i];
		struct elsewhere here = {.row = row};

		if (row == dense.row)
			continue;
		row->pays_below_bytes_per_s = below(&here, &dense);
		find_ranks(&here, &dense, &row->pays_from_ranks, &row->pays_to_ranks);
		if (c->over.progress)
			c->over.progress(c->over.progress_ctx, (double)(i + 1) / (double)c->nrows,
					 "where rows pay");
	}
}
