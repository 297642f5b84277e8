/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_SUMMARY_H
#define GF_PLANNER_SUMMARY_H

#include "base/text.h"
#include "documents/plan.h"
#include "planner/make.h"

/* A plan for people. */

/* One line: what a step takes, what of it is exposed, how far that is above the bound, between
 * which times the doubt leaves it, and how the plan gets there; of a rule its threshold and
 * algorithms. open: what was taken by default, or NULL. */
void gf_plan_summary(const struct gf_plan *p, const char *open, struct gf_text *out);

/* What is not as many times as fast is not worth a change. */
#define GF_GAIN_LEAST 1.01

/*
 * The answer, one line: how many times as fast a step is as what the job has now, by what; below 1
 * % that there is nothing to change, unless the plan has a limit of memory that DDP's default does
 * not keep. now_s: a step of what the job has now (gf_request_now_s); given: that is a plan that
 * was given, not DDP's default. p: with its prediction.
 */
void gf_gain_text(double now_s, bool given, const struct gf_plan *p, const char *by,
		  struct gf_text *out);
/* That line of a plan; nothing of a rule, or where nothing says what the job has now. */
void gf_plan_gain(const struct gf_request *r, const struct gf_plan *now, const struct gf_plan *p,
		  struct gf_text *out);

/* A line on the plan's period, and the period from the first step on, in at most as many marks as
 * the window has columns for, in a row for each fragment: [ its exchange begins, - is beside the
 * step, ] ends. */
void gf_plan_period_chart(const struct gf_plan *p, size_t window, struct gf_text *out);

/* A table of the messages and their predicted times, or of a rule's sizes. */
void gf_plan_table(const struct gf_plan *p, size_t window, struct gf_text *out);

/* p: a whole plan with its prediction, which gf_request_plan made of this request. window: the
 * columns of the chart and its labels; 0: 73. -EINVAL: a rule, or no prediction. */
int gf_plan_explain(const struct gf_request *r, const struct gf_plan *p, size_t window,
		    struct gf_text *out, struct gf_error *err);

#endif
