/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/algorithms/algorithms.h"

#define ENTRY(name, traits) &gf_algorithm_##name,

const struct gf_algorithm *const gf_algorithms[] = {GF_ALGORITHMS(ENTRY) NULL};

const struct gf_algorithm *const gf_sparse_algorithms[] = {GF_SPARSE_ALGORITHMS(ENTRY) NULL};
