/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/menu_parts.h"

#include <math.h>
#include <stddef.h>

#include "base/heap.h"

/*
 * The floor: lines a + s * bytes with a, s >= 0 that lie below a way's cost
 * everywhere. The least of the ways' lines is concave and not negative, so no
 * number of messages costs less together than it gives for all their bytes at
 * once; and so is the larger of two such minima.
 */

/* The slope of the line from startup_s at no bytes to the option's cost. */
static double slope_to(const struct gf_line *l, double bytes, double startup_s)
{
	return (gf_line_s(l, bytes) - startup_s) / bytes;
}

/* The steepest floor with that startup below options o[0] to o[n - 1]. */
static double steepest(const struct gf_option *o, size_t n, double startup_s)
{
	double slope = o[n - 1].line.per_byte_s;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct gf_line *l = &o[i].line;
		double from = l->from_bytes, below = l->below_bytes;

		if (from > 0)
			slope = fmin(slope, slope_to(l, from, startup_s));
		if (isfinite(below))
			slope = fmin(slope, slope_to(l, below, startup_s));
	}
	return fmax(slope, 0);
}

/* The startup of the line with that slope through the option's cost. */
static double startup_from(const struct gf_line *l, double bytes, double slope)
{
	return gf_line_s(l, bytes) - slope * bytes;
}

/* The largest startup of a floor with the slope of the last option. */
static double highest(const struct gf_option *o, size_t n)
{
	double slope = o[n - 1].line.per_byte_s, startup = o[0].line.startup_s;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct gf_line *l = &o[i].line;
		double from = l->from_bytes, below = l->below_bytes;

		startup = fmin(startup, startup_from(l, from, slope));
		if (isfinite(below))
			startup = fmin(startup, startup_from(l, below, slope));
	}
	return fmax(startup, 0);
}

void gf_menu_find_floors(struct gf_menu *m)
{
	size_t first, last;

	for (first = 0; first < m->noptions; first++)
		if (m->options[first].line.from_bytes > 0)
			break;
	if (first == m->noptions)
		return;
	m->floors = gf_xcalloc(m->noptions, sizeof(*m->floors));
	for (first = 0; first < m->noptions; first = last) {
		const struct gf_option *o = &m->options[first];
		struct gf_menu_floor *f = &m->floors[m->nfloors++];

		for (last = first + 1;
		     isfinite(m->options[last - 1].line.below_bytes);)
			last++;
		f->low.startup_s = o->line.startup_s;
		f->low.per_byte_s =
			steepest(o, last - first, o->line.startup_s);
		f->high.startup_s = highest(o, last - first);
		f->high.per_byte_s =
			steepest(o, last - first, f->high.startup_s);
	}
}

double gf_menu_floor_s(const struct gf_menu *m, double bytes)
{
	double low = INFINITY, high = INFINITY;
	size_t i;

	if (!m->floors)
		return gf_menu_cost_s(m, bytes);
	for (i = 0; i < m->nfloors; i++) {
		const struct gf_menu_floor *f = &m->floors[i];

		low = fmin(low, gf_line_s(&f->low, bytes));
		high = fmin(high, gf_line_s(&f->high, bytes));
	}
	return fmax(low, high);
}
