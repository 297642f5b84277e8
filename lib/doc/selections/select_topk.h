/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECTIONS_SELECT_TOPK_H
#define GF_SELECTIONS_SELECT_TOPK_H

#include "doc/selections/selection.h"
#include "doc/selections/select_density.h"

/*
 * topk and gtopk (gTop-k, Shi et al. 2019): of every message the k largest gradients of each rank
 * go out, as 32-bit indices and values. topk gathers the sets of all ranks; gtopk merges them along
 * a tree and keeps k.
 */
enum gf_putback { GF_PUTBACK_PAPER, GF_PUTBACK_CONSERVE, GF_PUTBACK_NAIVE };
struct gf_topk_params {
	double density;           /* k/n of a message of n elements, (0, 1] */
	double *warmup_densities; /* of the first epochs */
	size_t nwarmup;
	enum gf_putback putback;
	char *extra; /* x- keys */
};

extern const struct gf_select_plan gf_select_plan_topk, gf_select_plan_gtopk;

/* NULL: another selection; borrowed. */
const struct gf_topk_params *gf_topk_params(const struct gf_selection *s);
/* Is it gtopk, whose sets are merged? */
bool gf_topk_merges(const struct gf_selection *s);

#endif
