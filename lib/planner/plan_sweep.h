/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_PLAN_SWEEP_H
#define GF_PLANNER_PLAN_SWEEP_H

#include "documents/stream.h"
#include "simulator/rows.h"

/*
 * Plans in many circumstances: every plan on every number of ranks at every bandwidth, and beside
 * it, if that is asked for, the plan that would be made anew there.
 */
struct gf_sweep {
	struct gf_plan **plans; /* borrowed; the array is owned */
	char **names;           /* owned; of no use where there is one plan */
	size_t nplans;
	struct gf_what_if what;
	const int *ranks; /* borrowed; none: what's, or the plan's */
	size_t nranks;
	const double *bandwidths; /* borrowed; none: what's */
	size_t nbandwidths;
	const int *period_steps; /* borrowed; none: the plan's */
	size_t nperiod_steps;
	bool replan;
	/* (optional) called after each row */
	void (*progress)(void *ctx, double fraction, const char *detail);
	void *progress_ctx;
};

struct gf_swept {
	struct gf_row *rows;
	size_t nrows, left_out;
	struct gf_plan **made; /* the rows' plans that were made anew */
	size_t nmade;
};

/* Takes the plans of the documents, which must outlive it. A plan goes by the name of its file, or
 * by its system or policy. -EINVAL: there is none, or a rule among them. */
int gf_sweep_plans(struct gf_sweep *s, const struct gf_documents *d, struct gf_error *err);
/* Rows that do not fit have their reason (left_out) in the place of times. If none fits, the last
 * reason is the error. */
int gf_sweep_run(const struct gf_sweep *s, struct gf_swept *out, struct gf_error *err);
/* A topology or a measured network among the documents replaces the plans'; its ranks, too, if the
 * sweep has none. Lines for the user go to notes. */
void gf_sweep_documents(const struct gf_sweep *s, const struct gf_documents *d,
			struct gf_what_if *w, struct gf_text *notes);
void gf_sweep_release(struct gf_sweep *s);
void gf_swept_release(struct gf_swept *s);

#endif
