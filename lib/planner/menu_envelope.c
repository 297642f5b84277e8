/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/menu_parts.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/heap.h"

#define NEAR  1.02 /* times the cheapest */
#define SIZES 50   /* of messages, powers of two */

static bool cheaper(const struct gf_line *a, const struct gf_line *b,
		    double bytes)
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

		if (!gf_line_holds(l, bytes) ||
		    (best && !cheaper(l, best, bytes)))
			continue;
		best = l;
		found = i;
	}
	return found;
}

/* The size at which option `now`, the cheapest from `bytes` on, meets the first
 * option with a smaller slope that holds there. */
static double next_crossing(const struct gf_menu *m, size_t now, double bytes,
			    size_t *next)
{
	const struct gf_line *l = &m->options[now].line;
	double at = INFINITY;
	size_t i;

	for (i = 0; i < m->noptions; i++) {
		const struct gf_line *c = &m->options[i].line;
		double x;

		if (c->per_byte_s >= l->per_byte_s || !gf_line_holds(c, bytes))
			continue;
		x = (c->startup_s - l->startup_s) /
		    (l->per_byte_s - c->per_byte_s);
		x = fmax(x, bytes); /* rounding */
		if (x < at ||
		    (x == at &&
		     c->per_byte_s < m->options[*next].line.per_byte_s)) {
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
	size_t i;

	for (i = 0; i < m->noptions; i++) {
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

/* Between borders the same lines hold, and the least of them is concave. */
void gf_menu_find_envelope(struct gf_menu *m)
{
	double at = 0, border;
	size_t now, next = 0;

	for (; isfinite(at); at = border) {
		border = next_border(m, at);
		now = cheapest_at(m, at);
		while (at < border) {
			append(m, now, at);
			at = next_crossing(m, now, at, &next);
			now = next;
		}
	}
}

size_t gf_menu_pick(const struct gf_menu *m, double bytes)
{
	size_t k = 0, after = m->nenvelope;

	while (after - k > 1) {
		size_t middle = k + (after - k) / 2;

		if (m->from_bytes[middle] > bytes)
			after = middle;
		else
			k = middle;
	}
	return m->envelope[k];
}

double gf_menu_cost_s(const struct gf_menu *m, double bytes)
{
	return gf_line_s(&m->options[gf_menu_pick(m, bytes)].line, bytes);
}

/* Whether the way of options first to after - 1 comes near the cheapest costs
 * of messages of 2^i bytes. */
static bool comes_near(const struct gf_menu *m, size_t first, size_t after,
		       const double *least_s)
{
	int i;

	for (; first < after; first++) {
		const struct gf_line *l = &m->options[first].line;

		for (i = 0; i < SIZES; i++)
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
	int i;

	for (i = 0; i < SIZES; i++) {
		least_s[i] = INFINITY;
		for (k = 0; k < m->noptions; k++) {
			const struct gf_line *l = &m->options[k].line;

			if (gf_line_holds(l, ldexp(1, i)))
				least_s[i] = fmin(least_s[i],
						  gf_line_s(l, ldexp(1, i)));
		}
	}
	for (first = 0; first < m->noptions; first = after) {
		bool stays;

		for (after = first + 1;
		     isfinite(m->options[after - 1].line.below_bytes);)
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

uint32_t gf_menu_all(const struct gf_menu *m)
{
	size_t ways = 0, i;

	for (i = 0; i < m->noptions; i++)
		ways += m->options[i].line.from_bytes <= 0;
	return ways < GF_MENU_BITS ? (UINT32_C(1) << ways) - 1 : UINT32_MAX;
}

size_t *gf_menu_part(const struct gf_menu *m, uint32_t ways,
		     struct gf_menu *part)
{
	size_t *whole = gf_xcalloc(m->noptions, sizeof(*whole));
	size_t way = 0, i;

	*part = (struct gf_menu){
		.options = gf_xcalloc(m->noptions, sizeof(*part->options)),
	};
	for (i = 0; i < m->noptions; i++) {
		way += i > 0 && m->options[i].line.from_bytes <= 0;
		if (ways != UINT32_MAX &&
		    (way >= GF_MENU_BITS || !(ways >> way & 1)))
			continue;
		whole[part->noptions] = i;
		part->options[part->noptions++] = m->options[i];
	}
	gf_menu_find_envelope(part);
	gf_menu_find_floors(part);
	gf_menu_find_choices(part);
	return whole;
}
