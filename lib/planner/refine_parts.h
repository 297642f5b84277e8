/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_REFINE_PARTS_H
#define GF_PLANNER_REFINE_PARTS_H

#include "planner/refine.h"
#include "simulator/predict.h"

/* A plan, what a run of it showed, and the plan's prices; all but the traffic is borrowed. */
struct gf_refining {
	const struct gf_plan *plan;
	const struct gf_measured *measured;
	const struct gf_fabric *fabric;
	struct gf_traffic traffic;
	const struct gf_model_profile *model; /* refined already */
};

/* Entries for the algorithms and codecs that the plan used, and the others as they were; notes say
 * what changed. A plan with a selection leaves them all, and *network NULL if there are none. `p`
 * gets what the plan knows, and the cost of its selection anew. */
int gf_refine_costs(const struct gf_refining *r, struct gf_network **network,
		    struct gf_processing *p, struct gf_text *notes, struct gf_error *err);

#endif
