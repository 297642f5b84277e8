/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/menu_parts.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/heap.h"
#include "sim/flight.h"

#define CHOICES_MOST   12
#define LANES_COMPARED 16 /* messages at once, the most */

/* The least and the greatest factor by which n messages slow one of that
 * option. */
static void gamma_range(const struct gf_option *o, int n, double *least,
			double *most)
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
static bool beside_no_worse(const struct gf_option *a,
			    const struct gf_option *b)
{
	const struct gf_beside_backward *x = a->mutual, *y = b->mutual;
	int n;

	if (x == y)
		return true;
	if (!x || !y || !x->ncompute_slowdown || !y->ncompute_slowdown ||
	    fmax(x->message_slowdown, 1) > fmax(y->message_slowdown, 1) ||
	    x->startup_extra_s > y->startup_extra_s)
		return false;
	for (n = 1; n <= LANES_COMPARED; n++)
		if (gf_sim_slowdown(x, 1, n) > gf_sim_slowdown(y, 1, n))
			return false;
	return true;
}

static bool shares_no_worse(const struct gf_option *a,
			    const struct gf_option *b)
{
	double least, most, ignored;
	int n;

	if (!beside_no_worse(a, b))
		return false;
	if (a->contention == b->contention && a->wire_ratio == b->wire_ratio)
		return true;
	for (n = 2; n <= LANES_COMPARED; n++) {
		gamma_range(a, n, &ignored, &most);
		gamma_range(b, n, &least, &ignored);
		if (most > least)
			return false;
	}
	return true;
}

/* b is nowhere better, alone or beside others; of equals the first stays. */
static bool replaces(const struct gf_menu *m, size_t a, size_t b)
{
	const struct gf_option *one = &m->options[a], *other = &m->options[b];
	const struct gf_line *x = &one->line, *y = &other->line;

	if (x->startup_s > y->startup_s || x->per_byte_s > y->per_byte_s ||
	    x->from_bytes > y->from_bytes || x->below_bytes < y->below_bytes ||
	    !shares_no_worse(one, other))
		return false;
	return a < b || x->from_bytes < y->from_bytes ||
	       x->below_bytes > y->below_bytes || x->startup_s < y->startup_s ||
	       x->per_byte_s < y->per_byte_s || !shares_no_worse(other, one);
}

void gf_menu_find_choices(struct gf_menu *m)
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
	if (m->nchoices <= CHOICES_MOST)
		return;
	for (m->nchoices = i = 0; i < m->nenvelope; i++) {
		for (k = 0; k < m->nchoices; k++)
			if (m->choices[k] == m->envelope[i])
				break;
		if (k == m->nchoices)
			m->choices[m->nchoices++] = m->envelope[i];
	}
}
