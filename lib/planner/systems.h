/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_SYSTEMS_H
#define GF_PLANNER_SYSTEMS_H

#include "documents/plan.h"

/*
 * A published system as a point on the six axes. Whatever the user asks for by an option of its own
 * replaces the system's choice (planner/axes.h); what then contradicts itself is refused, here or
 * by gf_plan_check.
 */
struct gf_system {
	const char *name;
	const char *description; /* one line, for --list */
	const char *source;
	const char *policy;    /* NULL: auto */
	int lanes;             /* 0: the policy's */
	const char *algorithm; /* NULL: the cheapest */
	/* Factors are the sizes of the levels, and no other algorithm will do. Else without that
	 * algorithm it is the cheapest. */
	bool by_levels;
	const char *codecs[4]; /* NULL-terminated; none: f32 */
	enum gf_release release;
	/* with its defaults; NULL: dense */
	const struct gf_select_plan *selection;
	int staleness; /* 0: synchronous, as 1 */
	size_t pipeline_warmup_steps;
	struct gf_steps_part pipeline_warmup_part;
	int servers; /* ranks beside the others that only serve */
};

extern const struct gf_system gf_systems[]; /* name NULL ends it */
const struct gf_system *gf_system_find(const char *name);

#endif
