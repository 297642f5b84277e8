/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COST_SPARSE_COSTS_H
#define GF_COST_SPARSE_COSTS_H

#include "cost/primitives.h"

/*
 * Sparse all-reduces, gTop-k's Table I (Shi et al. 2019). value_bytes is the
 * size of the k values of one rank; as many bytes of indices travel with them.
 * Rounds are whole: ceil(log2 p).
 */

/* All-gather of every rank's top k, Eq. 6: log2(p) alpha + 2 (p-1) k beta, of
 * which round 0, 1, ... brings as many ranks' sets, all in one message; 0: no
 * such round. */
int gf_cost_topk_sets(int ranks, int round);
/* Tree of merges that keep k, then a broadcast, Eq. 7:
 * 2 log2(p) alpha + 4 k log2(p) beta. */
double gf_cost_gtopk_s(const struct gf_link_cost *link, int ranks,
		       double value_bytes);

#endif
