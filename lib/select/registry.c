/* SPDX-License-Identifier: BSD-3-Clause */
#include "select/selections.h"

/* A pure half (doc/select_registry.c) that is not named here can be planned and
 * simulated, and is refused where it would run. */
const struct gf_selection_entry gf_selections[] = {
	{"dense", &gf_select_dense, &gf_select_dense},
	{"csc", &gf_select_csc, &gf_select_csc_gpu},
	{"topk", &gf_select_topk, &gf_select_topk_gpu},
	{"gtopk", &gf_select_topk, &gf_select_topk_gpu},
	{"dgc", &gf_select_dgc, NULL},
	{"onebit", &gf_select_onebit, NULL},
	{"randomk", &gf_select_randomk, NULL},
	{"powersgd", &gf_select_powersgd, NULL},
	{NULL, NULL, NULL},
};
