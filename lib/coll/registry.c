/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms.h"

const struct gf_algorithm *const gf_algorithms[] = {
	&gf_algorithm_ring,
	&gf_algorithm_rhd,
	&gf_algorithm_butterfly,
	&gf_algorithm_tree,
	&gf_algorithm_linear,
	&gf_algorithm_hierarchical,
	&gf_algorithm_blueconnect,
	&gf_algorithm_direct,
	&gf_algorithm_ps,
	&gf_algorithm_library,
	NULL,
};

const struct gf_algorithm *const gf_sparse_algorithms[] = {
	&gf_algorithm_topk,
	&gf_algorithm_gtopk,
	NULL,
};
