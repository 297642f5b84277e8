/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/collectives/algorithms: one file for each all-reduce algorithm. */
#ifndef GF_ALGORITHMS_ALGORITHMS_H
#define GF_ALGORITHMS_ALGORITHMS_H

#include "collectives/algorithm.h"
#include "doc/algorithm_traits.h"

/*
 * The entry of each algorithm that doc/algorithm_traits.h lists, for registry.c and for algorithms
 * that are made of others. All other code calls gf_algorithm_find.
 */
#define GF_DECLARE_ALGORITHM(name, traits) extern const struct gf_algorithm gf_algorithm_##name;

GF_ALGORITHMS(GF_DECLARE_ALGORITHM)
GF_SPARSE_ALGORITHMS(GF_DECLARE_ALGORITHM)

#endif
