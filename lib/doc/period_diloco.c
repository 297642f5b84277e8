/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/period_parts.h"

/* Douillard et al. 2023, algorithm 1: an outer step with Nesterov's momentum on
 * the mean change of parameters, 0.7 and 0.9 as published. */

static const struct gf_field fields[] = {
	GF_PERIOD_FIRST, GF_PERIOD_RATE, GF_PERIOD_MOMENTUM,
	GF_PERIOD_LAST,  {NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_period, fields),
};

static const struct gf_period defaults = {
	.steps = 100,
	.fragments = 1,
	.outer_rate = 0.7,
	.outer_momentum = 0.9,
	.lanes = 1,
};

const struct gf_period_plan gf_period_plan_diloco = {
	.name = "diloco",
	.description = "an outer step with momentum on the change of H steps",
	.source = "DiLoCo (Douillard et al. 2023)",
	.record = &record,
	.defaults = &defaults,
};
