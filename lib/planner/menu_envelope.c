/* SPDX-License-Identifier: BSD-3-Clause */
/* What a menu says of its options: the cheapest by size, lines below their costs, those worth
 * trying. */
#include "planner/menu.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "simulator/step_state.h"

#define CHOICES_MOST   12
#define LANES_COMPARED 16   /* messages at once, the most */
#define NEAR           1.02 /* times the cheapest */
#define SIZES          50   /* of messages, powers of two */

static bool cheaper(const struct gf_line *a, const struct gf_line *b, double bytes)
{
	double a_s = gf_line_s(a, bytes), b_s = gf_line_s(b, bytes);

	return a_s < b_s || (a_s == b_s && a->per_byte_s < b->per_byte_s);
}

/* The cheapest option from the given bytes on (ties: the first). */
static size_t cheapest_at(const struct gf_menu *m, double bytes)
{
	const struct gf_line *best = NULL;
	size_t found = 0, i;

	for (i = 0; i < m->noptions; i++) {
		const struct gf_line *l = &m->options[i].line;

		if (!gf_line_holds(l, bytes) || (best && !cheaper(l, best, bytes)))
			continue;
		best = l;
		found = i;
	}
	return found;
}

/* The size at which option `now`, the cheapest from `bytes` on, meets the first option with a
 * smaller slope that holds there. */
static double next_crossing(const struct gf_menu *m, size_t now, double bytes, size_t *next)
{
	const struct gf_line *l = &m->options[now].line;
	double at = INFINITY;

	for (size_t i = 0; i < m->noptions; i++) {
		const struct gf_line *c = &m->options[i].line;
		double x;

		if (c->per_byte_s >= l->per_byte_s || !gf_line_holds(c, bytes))
			continue;
		x = (c->startup_s - l->startup_s) / (l->per_byte_s - c->per_byte_s);
		x = fmax(x, bytes); /* rounding */
		if (x < at || (x == at && c->per_byte_s < m->options[*next].line.per_byte_s)) {
			at = x;
			*next = i;
		}
	}
	return at;
}

/* The first size above `bytes` from which an option does or does not hold. */
static double next_border(const struct gf_menu *m, double bytes)
{
	double border = INFINITY;

	for (size_t i = 0; i < m->noptions; i++) {
		const struct gf_line *l = &m->options[i].line;

		if (l->from_bytes > bytes)
			border = fmin(border, l->from_bytes);
		if (l->below_bytes > bytes)
			border = fmin(border, l->below_bytes);
	}
	return border;
}

static void append(struct gf_menu *m, size_t option, double from_bytes)
{
	size_t n = m->nenvelope;

	if (n > 0 && m->envelope[n - 1] == option)
		return;
	m->envelope = gf_xreallocarray(m->envelope, n + 1, sizeof(size_t));
	m->from_bytes = gf_xreallocarray(m->from_bytes, n + 1, sizeof(double));
	m->envelope[n] = option;
	m->from_bytes[n] = from_bytes;
	m->nenvelope++;
}

/* Slopes are not negative: the least of a part of the envelope is where it begins. */
static void find_least(struct gf_menu *m)
{
	double least = INFINITY;

	m->least_s = gf_xreallocarray(m->least_s, m->nenvelope + 1, sizeof(*m->least_s));
	for (size_t k = m->nenvelope; k-- > 0; m->least_s[k] = least)
		least = fmin(least, gf_line_s(&m->options[m->envelope[k]].line, m->from_bytes[k]));
}

/* Between borders the same lines hold, and the least of them is concave. */
void gf_menu_find_envelope(struct gf_menu *m)
{
	double at = 0, border;
	size_t now, next = 0;

	m->nenvelope = 0;
	for (; isfinite(at); at = border) {
		border = next_border(m, at);
		now = cheapest_at(m, at);
		while (at < border) {
			append(m, now, at);
			at = next_crossing(m, now, at, &next);
			now = next;
		}
	}
	find_least(m);
}

/*
 * The floor: lines a + s * bytes with a, s >= 0 that lie below a way's cost everywhere. The least
 * of the ways' lines is concave and not negative, so no number of messages costs less together than
 * it gives for all their bytes at once; and so is the larger of two such minima.
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

	for (size_t i = 0; i < n; i++) {
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

	for (size_t i = 0; i < n; i++) {
		const struct gf_line *l = &o[i].line;
		double from = l->from_bytes, below = l->below_bytes;

		startup = fmin(startup, startup_from(l, from, slope));
		if (isfinite(below))
			startup = fmin(startup, startup_from(l, below, slope));
	}
	return fmax(startup, 0);
}

/* What no message of these options costs less than. */
static double lowest(const struct gf_option *o, size_t n)
{
	double least = INFINITY;

	while (n--)
		least = fmin(least, gf_line_s(&o[n].line, o[n].line.from_bytes));
	return least;
}

static void find_floors(struct gf_menu *m)
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

		for (last = first + 1; isfinite(m->options[last - 1].line.below_bytes);)
			last++;
		f->low.startup_s = lowest(o, last - first);
		f->low.per_byte_s = steepest(o, last - first, f->low.startup_s);
		f->high.startup_s = highest(o, last - first);
		f->high.per_byte_s = steepest(o, last - first, f->high.startup_s);
	}
}

/* The least and the greatest factor by which n messages slow one of that option. */
static void gamma_range(const struct gf_option *o, int n, double *least, double *most)
{
	size_t entries = o->contention ? o->contention->nentries : 0, e;

	*least = *most = n;
	for (e = 0; e < entries; e++) {
		struct gf_contention one = {&o->contention->entries[e], 1};
		double gamma = gf_contention_gamma(&one, 0, n);

		*least = e == 0 ? gamma : fmin(*least, gamma);
		*most = e == 0 ? gamma : fmax(*most, gamma);
	}
}

/* Nothing can be said of an option of which less is known. */
static bool beside_no_worse(const struct gf_option *a, const struct gf_option *b)
{
	const struct gf_beside_backward *x = a->mutual, *y = b->mutual;

	if (x == y)
		return true;
	if (!x || !y || !x->ncompute_slowdown || !y->ncompute_slowdown ||
	    fmax(x->message_slowdown, 1) > fmax(y->message_slowdown, 1) ||
	    x->startup_extra_s > y->startup_extra_s)
		return false;
	for (int n = 1; n <= LANES_COMPARED; n++)
		if (gf_sim_slowdown(x, 1, n) > gf_sim_slowdown(y, 1, n))
			return false;
	return true;
}

static bool shares_no_worse(const struct gf_option *a, const struct gf_option *b)
{
	double least, most, ignored;

	if (!beside_no_worse(a, b))
		return false;
	if (a->contention == b->contention && a->wire_ratio == b->wire_ratio)
		return true;
	for (int n = 2; n <= LANES_COMPARED; n++) {
		gamma_range(a, n, &ignored, &most);
		gamma_range(b, n, &least, &ignored);
		if (most > least)
			return false;
	}
	return true;
}

struct gf_line gf_option_scatter(const struct gf_option *o)
{
	struct gf_line l = o->line;

	l.startup_s -= o->gather.startup_s;
	l.per_byte_s -= o->gather.per_byte_s;
	return l;
}

/* Is a's line nowhere worse than b's, in each half? */
static bool lines_no_worse(const struct gf_option *a, const struct gf_option *b)
{
	const struct gf_line x = gf_option_scatter(a), y = gf_option_scatter(b);

	return x.startup_s <= y.startup_s && x.per_byte_s <= y.per_byte_s &&
	       a->gather.startup_s <= b->gather.startup_s &&
	       a->gather.per_byte_s <= b->gather.per_byte_s &&
	       fmax(a->load_per_byte_s, x.per_byte_s) <= fmax(b->load_per_byte_s, y.per_byte_s);
}

/* b is nowhere better, alone or beside others; of equals the first stays. */
static bool replaces(const struct gf_menu *m, size_t a, size_t b)
{
	const struct gf_option *one = &m->options[a], *other = &m->options[b];
	const struct gf_line *x = &one->line, *y = &other->line;

	if (!lines_no_worse(one, other) || x->from_bytes > y->from_bytes ||
	    x->below_bytes < y->below_bytes || !shares_no_worse(one, other))
		return false;
	return a < b || x->from_bytes < y->from_bytes || x->below_bytes > y->below_bytes ||
	       !lines_no_worse(other, one) || !shares_no_worse(other, one);
}

static void find_choices(struct gf_menu *m)
{
	size_t i, k;

	m->choices = gf_xcalloc(m->noptions, sizeof(*m->choices));
	for (i = 0; i < m->noptions; i++) {
		for (k = 0; k < m->noptions; k++)
			if (k != i && replaces(m, k, i))
				break;
		if (k == m->noptions)
			m->choices[m->nchoices++] = i;
	}
	if (m->nchoices <= CHOICES_MOST || gf_menu_unlike(m))
		return;
	for (m->nchoices = i = 0; i < m->nenvelope; i++) {
		for (k = 0; k < m->nchoices; k++)
			if (m->choices[k] == m->envelope[i])
				break;
		if (k == m->nchoices)
			m->choices[m->nchoices++] = m->envelope[i];
	}
}

void gf_menu_finish(struct gf_menu *m)
{
	find_floors(m);
	find_choices(m);
}

/* The part of the envelope that a size lies in. */
static size_t part_at(const struct gf_menu *m, double bytes)
{
	size_t k = 0, after = m->nenvelope;

	while (after - k > 1) {
		size_t middle = k + (after - k) / 2;

		if (m->from_bytes[middle] > bytes)
			after = middle;
		else
			k = middle;
	}
	return k;
}

size_t gf_menu_pick(const struct gf_menu *m, double bytes)
{
	return m->envelope[part_at(m, bytes)];
}

double gf_menu_least_s(const struct gf_menu *m, double bytes)
{
	const size_t k = part_at(m, bytes);
	const double here = gf_line_s(&m->options[m->envelope[k]].line, bytes);

	return k + 1 < m->nenvelope ? fmin(here, m->least_s[k + 1]) : here;
}

double gf_menu_cost_s(const struct gf_menu *m, double bytes)
{
	return gf_line_s(&m->options[gf_menu_pick(m, bytes)].line, bytes);
}

double gf_menu_floor_s(const struct gf_menu *m, double bytes)
{
	double low = INFINITY, high = INFINITY;

	if (!m->floors)
		return gf_menu_cost_s(m, bytes);
	for (size_t i = 0; i < m->nfloors; i++) {
		const struct gf_menu_floor *f = &m->floors[i];

		low = fmin(low, gf_line_s(&f->low, bytes));
		high = fmin(high, gf_line_s(&f->high, bytes));
	}
	return fmax(low, high);
}

/* Whether the way of options first to after - 1 comes near the cheapest costs of messages of 2^i
 * bytes. */
static bool comes_near(const struct gf_menu *m, size_t first, size_t after, const double *least_s)
{
	for (; first < after; first++) {
		const struct gf_line *l = &m->options[first].line;

		for (int i = 0; i < SIZES; i++)
			if (gf_line_holds(l, ldexp(1, i)) &&
			    gf_line_s(l, ldexp(1, i)) <= NEAR * least_s[i])
				return true;
	}
	return false;
}

void gf_menu_drop_far(struct gf_menu *m)
{
	double least_s[SIZES];
	size_t first, after, k, n = 0;

	for (int i = 0; i < SIZES; i++) {
		least_s[i] = INFINITY;
		for (k = 0; k < m->noptions; k++) {
			const struct gf_line *l = &m->options[k].line;

			if (gf_line_holds(l, ldexp(1, i)))
				least_s[i] = fmin(least_s[i], gf_line_s(l, ldexp(1, i)));
		}
	}
	for (first = 0; first < m->noptions; first = after) {
		bool stays;

		for (after = first + 1; isfinite(m->options[after - 1].line.below_bytes);)
			after++;
		stays = comes_near(m, first, after, least_s);
		for (k = first; k < after; k++)
			if (stays)
				m->options[n++] = m->options[k];
			else
				free(m->options[k].stages);
	}
	m->noptions = n;
}

size_t *gf_menu_part(const struct gf_menu *m, uint32_t ways, struct gf_menu *part)
{
	size_t *whole = gf_xcalloc(m->noptions, sizeof(*whole));
	size_t way = 0, i;

	*part = (struct gf_menu){
		.options = gf_xcalloc(m->noptions, sizeof(*part->options)),
	};
	for (i = 0; i < m->noptions; i++) {
		way += i > 0 && m->options[i].line.from_bytes <= 0;
		if (ways != UINT32_MAX && (way >= GF_MENU_BITS || !(ways >> way & 1)))
			continue;
		whole[part->noptions] = i;
		part->options[part->noptions++] = m->options[i];
	}
	gf_menu_find_envelope(part);
	gf_menu_finish(part);
	return whole;
}

void gf_menu_half(const struct gf_menu *m, enum gf_coll_half half, struct gf_menu *part)
{
	struct gf_option *options = gf_xmemdup(m->options, m->noptions * sizeof(*options));

	*part = (struct gf_menu){.options = options, .noptions = m->noptions};
	for (size_t i = 0; i < m->noptions; i++) {
		options[i].line = half == GF_COLL_ALL_GATHER ? options[i].gather
							     : gf_option_scatter(&options[i]);
		options[i].gather = (struct gf_line){0};
	}
	gf_menu_find_envelope(part);
	gf_menu_finish(part);
}

bool gf_menu_unlike(const struct gf_menu *m)
{
	for (size_t i = 0; i < m->noptions; i++) {
		const struct gf_line *line = &m->options[i].line, *gather = &m->options[i].gather;

		if ((gather->startup_s > 0 || gather->per_byte_s > 0) &&
		    (line->startup_s != 2 * gather->startup_s ||
		     line->per_byte_s != 2 * gather->per_byte_s))
			return true;
	}
	return false;
}
