/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_PLANNING_H
#define GF_PLANNER_PLANNING_H

#include "cost/preset.h"
#include "planner/make.h"
#include "planner/refine.h"

/*
 * What one call of gf-plan reads and finds out: a request, and what it borrows from.
 * Zero-initialise, set request and axes, add documents; then begin.
 */
struct gf_planning {
	struct gf_documents documents;
	struct gf_request request;
	struct gf_replays replays; /* of all plans that the request leads to */
	struct gf_axes axes;       /* its factors are the caller's */
	const char *codecs[GF_CODECS_MOST + 1];
	struct gf_refined refined;
	struct gf_model_profile *estimated, *accumulated;
	struct gf_processing assumed, described; /* codecs, on the estimate's GPU */
	struct gf_text notes, open;              /* open: what was taken by default */
};

/* What the options say of the model's times. */
struct gf_planning_times {
	const struct gf_rates *rates;
	size_t batch;      /* 0: the default */
	const char *trace; /* of a run of the given plan; NULL: none */
	size_t accumulate; /* micro-batches of a step; 0: not asked for */
};

/* The request borrows what the documents know. A model without measured times gets estimated ones,
 * or those that its passes stand for. What a trace shows takes the place of the profile. -EINVAL:
 * as gf_rates_take; two models, or none where there must be one. */
int gf_planning_begin(struct gf_planning *s, const struct gf_planning_times *times,
		      struct gf_error *err);
void gf_planning_release(struct gf_planning *s);

#endif
