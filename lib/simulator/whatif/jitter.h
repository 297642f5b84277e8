/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_WHATIF_JITTER_H
#define GF_WHATIF_JITTER_H

#include "base/error.h"
#include "simulator/whatif/plan_variant.h"
#include "simulator/whatif/whatif.h"

/*
 * Iterations of ranks whose compute, or whose messages, vary from step to step.
 */

/*
 * The runs' least_s to mean_s, and the slowest rank's factor in the median run (of a pipeline: 0);
 * one run without jitter. The variant's traffic is filled; its model is left at some factor, and
 * its messages with the delays of the median run (of a pipeline: of the last step).
 */
int gf_jitter_run(struct gf_variant *v, const struct gf_what_if *w, struct gf_outcome *out,
		  double *factor, struct gf_error *err);

/* Two steps of the variant's pipeline, by the first factors. */
void gf_jitter_draw(struct gf_variant *v, const struct gf_what_if *w, struct gf_gantt *timeline);

/*
 * Fills the variant's traffic: its messages priced on its fabric, with what w's slow links cost.
 * Because of them each message's price gains the time that its schedules take longer, when they are
 * replayed by themselves on the topology (simulator/replay/replay_plan.h). -ENOTSUP: too many
 * steps, or an algorithm without any.
 */
int gf_variant_price(struct gf_variant *v, const struct gf_what_if *w, struct gf_error *err);

/* The quantile u, 0 < u < 1, of the largest of n standard normal deviates:
 * a draw of the largest for a uniform u, whatever n is. */
double gf_normal_largest(double u, double n);

#endif
