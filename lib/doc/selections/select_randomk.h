/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECTIONS_SELECT_RANDOMK_H
#define GF_SELECTIONS_SELECT_RANDOMK_H

#include <stdint.h>

#include "doc/selections/selection.h"

/*
 * randomk: k random elements of every message, the same on all ranks, with error feedback (Stich,
 * Cordonnier, Jaggi: Sparsified SGD with Memory, NeurIPS 2018; Wangni, Wang, Liu, Zhang: Gradient
 * Sparsification for Communication-Efficient Distributed Optimization, NeurIPS 2018; the common
 * seed is that of Vogels et al. 2019).
 *
 * Step t on each of P ranks, for message number j of n elements (e begins at 0):
 *	x = e + gradient
 *	I = gf_randomk_pick(seed, t, j, n, k), k = max(1, floor(density * n))
 *	the all-reduce of the plan's message sums (x_i, i in I) over ranks
 *	e = 0 where i is in I, else x
 *	w_i = w_i - rate * sum_i / P where i is in I; elsewhere the mean is 0
 *
 * On the wire: k numbers in the order of I, and no indices. They go as k gradients of a dense
 * message would: by its algorithm, stages and codec. For n = 6 and k = 2 with I = {1, 4}, ranks
 * with x = (1, -4, 2, 0, 3, 1) and
 * (0, 2, 5, 1, 1, 1) send (-4, 3) and (2, 1), get (-2, 4), and keep
 * e = (1, 0, 2, 0, 0, 1) and (0, 0, 5, 1, 0, 1).
 */
struct gf_randomk_params {
	double density;           /* k/n, (0, 1] */
	double *warmup_densities; /* of the first epochs */
	size_t nwarmup;
	size_t seed;
	char *extra; /* x- keys */
};

extern const struct gf_select_plan gf_select_plan_randomk;

/* NULL: another selection; borrowed. */
static inline const struct gf_randomk_params *gf_randomk_params(const struct gf_selection *s)
{
	return s->plan == &gf_select_plan_randomk ? s->params : NULL;
}

/*
 * The k elements of 0..n-1 that message number `message` sends in step `step`, ascending; 1 <= k <=
 * n < 2^32. The elements are cut into k runs of equal length, as far as n/k is whole: run r begins
 * at floor(r * n / k). One element of each run is drawn, uniformly: every element goes out in one
 * step of n/k on average, and none waits much longer than others.
 */
void gf_randomk_pick(uint64_t seed, uint64_t step, uint64_t message, size_t n, size_t k,
		     uint32_t *index);

#endif
