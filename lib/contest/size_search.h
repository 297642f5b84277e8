/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_SIZE_SEARCH_H
#define GF_CONTEST_SIZE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "contest/allreduce.h"

/*
 * A search over sizes and ways that does not try everything. The ends of the
 * sizes are measured with all ways, then the size in the middle, then those in
 * the middle of the halves, and so on. The times of a way at the nearest sizes
 * that it was measured at, below and above, are joined by a line; a way that is
 * searched is left out of a size where its line lies GF_SEARCH_FAR times as
 * high as the lowest, or higher.
 */
#define GF_SEARCH_FAR 1.5

/* The order of n sizes; order has room for them. */
void gf_search_order(size_t n, size_t *order);

struct gf_search_way {
	bool searched;  /* else it is always tried */
	double *time_s; /* by size; NAN: not measured */
};

/* tried[i]: is way i to be tried at size `at`? Returns how many. */
size_t gf_search_try(const struct gf_search_way *ways, size_t nways,
		     const size_t *sizes, size_t nsizes, size_t at,
		     bool *tried);

#endif
