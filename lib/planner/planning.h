/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_PLANNING_H
#define GF_PLANNER_PLANNING_H

#include "cost/preset.h"
#include "planner/make.h"
#include "planner/refine.h"

/*
 * What one call of gf-plan reads and finds out: a request, and what it borrows
 * from. Zero-initialise, set request and axes, add documents; then begin, and
 * what else is asked for, in the order below.
 */
struct gf_planning {
	struct gf_documents documents;
	struct gf_request request;
	struct gf_axes axes; /* its factors are the caller's */
	const char *codecs[GF_CODECS + 1];
	struct gf_refined refined;
	struct gf_model_profile *estimated, *accumulated;
	struct gf_processing assumed; /* codecs, on the estimate's GPU */
	struct gf_text notes, open;   /* open: what was taken by default */
};

/* The request borrows what the documents know. */
void gf_planning_begin(struct gf_planning *s);
/* A model without measured times gets estimated ones, or those that its passes
 * stand for; batch 0: the default.
 * -EINVAL: as gf_rates_take, gf_request_estimate. */
int gf_planning_estimate(struct gf_planning *s, const struct gf_rates *rates,
			 size_t batch, struct gf_error *err);
/* What a trace of the given plan shows takes the place of its profile. */
int gf_planning_refine(struct gf_planning *s, const char *trace,
		       struct gf_error *err);
/* Steps of n micro-batches. -EINVAL: there is no model. */
int gf_planning_accumulate(struct gf_planning *s, size_t n,
			   struct gf_error *err);
void gf_planning_release(struct gf_planning *s);

#endif
