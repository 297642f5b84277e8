/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/curve.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"

/* A repeat this long does not depend on how the ranks met. */
static const double long_enough_s = 0.01;
static const size_t telling_bytes = (size_t)256 << 10;

struct gf_measure_budget gf_measure_round(const struct gf_measure_budget *whole)
{
	return (struct gf_measure_budget){
		.budget_s = whole->budget_s / GF_MEASURE_ROUNDS,
		.low = (whole->low + GF_MEASURE_ROUNDS - 1) / GF_MEASURE_ROUNDS,
		.high = (whole->high + GF_MEASURE_ROUNDS - 1) / GF_MEASURE_ROUNDS,
	};
}

size_t *gf_measure_sizes(size_t min_bytes, size_t max_bytes, size_t *count)
{
	size_t *sizes = NULL, n = 0, size;

	for (size = min_bytes / 4 * 4; size < max_bytes; size *= 2) {
		sizes = gf_xreallocarray(sizes, n + 2, sizeof(*sizes));
		sizes[n++] = size;
		if (size == 0 || size > max_bytes / 2)
			break;
	}
	sizes = gf_xreallocarray(sizes, n + 1, sizeof(*sizes));
	sizes[n++] = (max_bytes + 3) / 4 * 4;
	*count = n;
	return sizes;
}

/* `count` of them, each the same factor above the one before. */
static size_t *spread(size_t min_bytes, size_t max_bytes, size_t count)
{
	size_t *sizes = gf_xcalloc(count, sizeof(*sizes)), i;
	double ratio = (double)max_bytes / (double)min_bytes;

	for (i = 0; i < count; i++) {
		double share = (double)i / (double)(count - 1);

		sizes[i] = (size_t)((double)min_bytes * pow(ratio, share)) / 4;
		sizes[i] *= 4;
		if (i > 0 && sizes[i] <= sizes[i - 1])
			sizes[i] = sizes[i - 1] + 4;
	}
	return sizes;
}

static double pace_s(const struct gf_measure_pace *pace, size_t bytes)
{
	return pace->startup_s + pace->per_byte_s * (double)bytes;
}

int gf_measure_chain(const struct gf_measure_pace *pace, size_t bytes)
{
	double fit = long_enough_s / pace_s(pace, bytes);
	int most = 1;

	if (bytes <= (size_t)64 << 10)
		most = 16;
	else if (bytes <= (size_t)1 << 20)
		most = 8;
	else if (bytes <= (size_t)16 << 20)
		most = 3;
	return fit >= most ? most : fit < 1 ? 1 : (int)fit;
}

/* The time of a sitting with the fewest repeats. */
static double sitting_s(const struct gf_measure_sweep *s, const struct gf_measure_pace *pace,
			size_t bytes)
{
	double repeat = pace_s(pace, bytes) * gf_measure_chain(pace, bytes);

	return pace->sitting_s + repeat * (gf_measure_uncounted(repeat) + s->sitting.low);
}

static double all_sittings_s(const struct gf_measure_sweep *s, const struct gf_measure_pace *pace)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < s->count; i++)
		sum += s->rounds * sitting_s(s, pace, s->sizes[i]);
	return sum;
}

/* Up to that size; sparse: no more of them than are needed. */
static void take_sizes(struct gf_measure_sweep *s, size_t min_bytes, size_t max_bytes, bool sparse)
{
	free(s->sizes);
	s->sizes = gf_measure_sizes(min_bytes, max_bytes, &s->count);
	if (s->count > GF_MEASURE_FEWEST_SIZES && !sparse)
		return;
	free(s->sizes);
	s->count = GF_MEASURE_FEWEST_SIZES;
	s->sizes = spread(min_bytes / 4 * 4, max_bytes, s->count);
}

static void take_rounds(struct gf_measure_sweep *s, const struct gf_measure_limits *l, int rounds)
{
	s->rounds = rounds;
	s->sitting = (struct gf_measure_budget){
		.low = (l->point.low + rounds - 1) / rounds,
		.high = (l->point.high + rounds - 1) / rounds,
	};
}

/* Tries fewer rounds, but not one alone. */
static bool fits(struct gf_measure_sweep *s, const struct gf_measure_limits *l,
		 const struct gf_measure_pace *pace)
{
	int rounds;

	for (rounds = GF_MEASURE_ROUNDS; rounds > 1; rounds--) {
		take_rounds(s, l, rounds);
		s->takes_s = all_sittings_s(s, pace);
		if (s->takes_s <= l->budget_s)
			return true;
	}
	return false;
}

/* Room for the fewest sizes, a factor of 1.5 apart or more, and for a slope that is more than
 * noise. */
static size_t fewest_bytes(const struct gf_measure_limits *l)
{
	size_t least = l->min_bytes * 17;

	if (least < telling_bytes)
		least = telling_bytes;
	return least < l->max_bytes ? least : l->max_bytes;
}

void gf_measure_sweep_choose(const struct gf_measure_limits *l, const struct gf_measure_pace *pace,
			     struct gf_measure_sweep *s)
{
	size_t least = fewest_bytes(l), high = l->max_bytes;
	double left, sittings;
	bool fit;

	*s = (struct gf_measure_sweep){0};
	take_sizes(s, l->min_bytes, high, false);
	fit = fits(s, l, pace);
	if (!fit && l->whole) {
		take_sizes(s, l->min_bytes, high, true);
		fit = fits(s, l, pace);
	}
	while (!fit && !l->whole && high > least) {
		high = high / 2 > least ? high / 2 : least;
		take_sizes(s, l->min_bytes, high, false);
		fit = fits(s, l, pace);
	}
	if (!fit) {
		take_sizes(s, l->min_bytes, high, true);
		take_rounds(s, l, 1);
		s->takes_s = all_sittings_s(s, pace);
	}
	/* what is left over buys repeats */
	sittings = (double)s->count * s->rounds;
	left = l->budget_s - s->takes_s;
	if (left > 0)
		s->sitting.budget_s = fmin(l->point.budget_s / s->rounds, left / sittings);
	s->takes_s += s->sitting.budget_s * sittings;
}
