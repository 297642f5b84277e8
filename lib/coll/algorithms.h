/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLL_ALGORITHMS_H
#define GF_COLL_ALGORITHMS_H

#include "coll/algorithm.h"

/*
 * The table entries, one per algorithm, for registry.c and for algorithms that
 * are made of others. All other code calls gf_algorithm_find.
 */
extern const struct gf_algorithm gf_algorithm_ring;
extern const struct gf_algorithm gf_algorithm_rhd;
extern const struct gf_algorithm gf_algorithm_butterfly;
extern const struct gf_algorithm gf_algorithm_tree;
extern const struct gf_algorithm gf_algorithm_linear;
extern const struct gf_algorithm gf_algorithm_hierarchical;
extern const struct gf_algorithm gf_algorithm_blueconnect;
extern const struct gf_algorithm gf_algorithm_direct;
extern const struct gf_algorithm gf_algorithm_ps;
extern const struct gf_algorithm gf_algorithm_library;
extern const struct gf_algorithm gf_algorithm_topk;
extern const struct gf_algorithm gf_algorithm_gtopk;

#endif
