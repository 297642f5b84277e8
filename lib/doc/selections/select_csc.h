/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECTIONS_SELECT_CSC_H
#define GF_SELECTIONS_SELECT_CSC_H

#include "base/steps.h"
#include "doc/selections/selection.h"

/*
 * csc: coarse-grained sparse communication (GradientFlow, Sun et al. 2019, section IV). All
 * gradients together are cut into chunks; the chunks of the largest norms go out, packed into
 * messages by the plan's threshold.
 */
struct gf_csc_params {
	size_t chunk_elems;
	double keep;         /* the share of chunks that goes out, (0, 1] */
	size_t warmup_steps; /* over which the share falls from 1 to keep */
	struct gf_steps_part warmup_part;
	double decay; /* of what waits; NAN: the optimiser's momentum */
	char *extra;  /* x- keys */
};

/* Numbers by which a rank says, beside the norms, where a gradient of its own is that is not
 * finite. */
#define GF_CSC_BAD_PARTS 3

extern const struct gf_select_plan gf_select_plan_csc;

/* How many chunks of n go out in step t (from 0): a ramp from all of them to keep*n, rounded up, in
 * warmup_steps steps. */
size_t gf_csc_kept(const struct gf_csc_params *p, size_t n, size_t t);
/* NULL: another selection; borrowed. */
static inline const struct gf_csc_params *gf_csc_params(const struct gf_selection *s)
{
	return s->plan == &gf_select_plan_csc ? s->params : NULL;
}

#endif
