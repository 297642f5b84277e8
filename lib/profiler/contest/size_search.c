/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/size_sweep.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"

/* Those between the two, the middle first, level by level. */
void gf_search_order(size_t n, size_t *order)
{
	size_t filled = 0, step, i;
	bool *taken = gf_xcalloc(n + 1, sizeof(*taken));

	for (step = n > 1 ? n - 1 : 1;; step = (step + 1) / 2) {
		for (i = 0; i < n; i += step)
			if (!taken[i]) {
				order[filled++] = i;
				taken[i] = true;
			}
		if (n && !taken[n - 1]) {
			order[filled++] = n - 1;
			taken[n - 1] = true;
		}
		if (filled >= n || step == 1)
			break;
	}
	free(taken);
}

/* NAN: it was not measured on both sides. */
static double expected_s(const struct gf_search_way *w, const size_t *sizes, size_t nsizes,
			 size_t at)
{
	size_t below = at, above = at;
	double share;

	while (below > 0 && isnan(w->time_s[below]))
		below--;
	while (above < nsizes - 1 && isnan(w->time_s[above]))
		above++;
	if (isnan(w->time_s[below]) || isnan(w->time_s[above]))
		return NAN;
	if (below == above)
		return w->time_s[at];
	share = (double)(sizes[at] - sizes[below]) / (double)(sizes[above] - sizes[below]);
	return w->time_s[below] + share * (w->time_s[above] - w->time_s[below]);
}

size_t gf_search_try(const struct gf_search_way *ways, size_t nways, const size_t *sizes,
		     size_t nsizes, size_t at, bool *tried)
{
	double least_s = INFINITY;
	size_t i, n = 0;

	for (i = 0; i < nways; i++)
		if (ways[i].searched)
			least_s = fmin(least_s, expected_s(&ways[i], sizes, nsizes, at));
	for (i = 0; i < nways; i++) {
		/* what is not known is tried */
		tried[i] = !ways[i].searched ||
			   !(expected_s(&ways[i], sizes, nsizes, at) >= GF_SEARCH_FAR * least_s);
		n += tried[i];
	}
	return n;
}
