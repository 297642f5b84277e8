/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_LARGEST_H
#define GF_TESTS_LARGEST_H

#include "exchange_run.h"

/* The k largest of dense vectors, as papers have it; ties are common among the gradients. */
static inline float noise(int rank, size_t step, size_t i)
{
	return run_noise(rank, step, i, 20);
}

/* A message's dense vectors, as the paper's algorithms see them. */
typedef float vector[RUN_ELEMS];

/* Zeroes all but the k largest magnitudes among the marked; ties to the lower index. Dropped
 * elements are added to `dropped`, if given. */
static inline void keep_largest(vector v, bool *marked, size_t n, size_t k, float *dropped)
{
	bool kept[RUN_ELEMS] = {false};
	size_t i, best;

	while (k--) {
		for (i = 0, best = n; i < n; i++)
			if (marked[i] && !kept[i] && (best == n || fabsf(v[i]) > fabsf(v[best])))
				best = i;
		kept[best] = true;
	}
	for (i = 0; i < n; i++) {
		if (!marked[i] || kept[i])
			continue;
		if (dropped)
			dropped[i] += v[i];
		v[i] = 0;
		marked[i] = false;
	}
}

#endif
