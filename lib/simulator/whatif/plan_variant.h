/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_WHATIF_PLAN_VARIANT_H
#define GF_WHATIF_PLAN_VARIANT_H

#include "simulator/whatif/whatif.h"

/*
 * A plan on another fabric. Its messages, stages and the model's times are copies that may be
 * changed; everything else is borrowed.
 */
struct gf_variant {
	struct gf_plan plan;
	struct gf_model_profile model; /* as the plan has it */
	struct gf_fabric fabric;
	struct gf_level *levels;   /* copies, where the bandwidth changes */
	struct gf_derived derived; /* the fabric's */
	struct gf_traffic traffic; /* zero until somebody fills it */
};

/* -EINVAL: factors that do not fit the ranks. Release in either case. */
int gf_variant_init(struct gf_variant *v, const struct gf_plan *p, const struct gf_what_if *w,
		    struct gf_error *err);
void gf_variant_release(struct gf_variant *v);

/* The plan's compute takes `factor` times as long as the model says: the slowest rank's factor,
 * since all wait for that rank. */
void gf_variant_scale(struct gf_variant *v, double factor);
/* gf_variant_scale, and the prediction; the traffic is filled. */
int gf_variant_run(struct gf_variant *v, double factor, struct gf_sim_result *out,
		   struct gf_error *err);

#endif
