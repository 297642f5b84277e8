/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/autotune/chooser.h"

#include <assert.h>

#include "base/array.h"

static const double margin = 0.97;

/* The fastest of a rival's n runs may take this many times the best one's median.
 * tests/unit/test_rivals.c plays games against them: where a fifth of the runs takes three times as
 * long, a rival that is faster by a fifth wins 190 games of 200. */
static double allowance(size_t n)
{
	static const double allowed[] = {4, 3, 2, 1.7, 1.5, 1.4, 1.3, 1.2, 1.1, 1.1, 1.1, 1.1};

	return n > GF_ARRAY_LENGTH(allowed) ? 1.05 : allowed[n > 0 ? n - 1 : 0];
}

void gf_rival_add(struct gf_rival *r, double time_s)
{
	size_t k;

	assert(r->n < GF_RIVAL_TIMES);
	for (k = r->n++; k > 0 && r->times[k - 1] > time_s; k--)
		r->times[k] = r->times[k - 1];
	r->times[k] = time_s;
}

double gf_rival_time_s(const struct gf_rival *r)
{
	assert(r->n > 0);
	return r->times[r->n / 4];
}

size_t gf_rivals_weed(struct gf_rival *rivals, size_t n)
{
	size_t best = gf_rivals_best(rivals, n), left = 0, i;
	double median_s;

	if (best == n)
		return 0;
	median_s = rivals[best].times[rivals[best].n / 2];
	for (i = 0; i < n; i++) {
		struct gf_rival *r = &rivals[i];

		if (r->out)
			continue;
		r->out = i != best && r->times[0] > allowance(r->n) * median_s;
		left += !r->out;
	}
	return left;
}

size_t gf_rivals_near(struct gf_rival *rivals, size_t n, double times)
{
	size_t best = gf_rivals_best(rivals, n), left = 0, i;

	for (i = 0; best < n && i < n; i++) {
		struct gf_rival *r = &rivals[i];

		if (r->out)
			continue;
		r->out = i != best && gf_rival_time_s(r) > times * gf_rival_time_s(&rivals[best]);
		left += !r->out;
	}
	return left;
}

size_t gf_rivals_best(const struct gf_rival *rivals, size_t n)
{
	size_t best = n, i;

	for (i = 0; i < n; i++)
		if (!rivals[i].out &&
		    (best == n ||
		     gf_rival_time_s(&rivals[i]) < margin * gf_rival_time_s(&rivals[best])))
			best = i;
	return best;
}
