/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/selections/select_ef21.h"

#include "doc/selections/select_density.h"

static const struct gf_field fields[] = {
	GF_DENSITY_FIELDS,
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_ef21_params, fields),
};

static const struct gf_ef21_params defaults = {.density = 0.01};

const struct gf_select_plan gf_select_plan_ef21 = {
	.name = "ef21",
	.description = "the k largest changes of each rank's velocity",
	.place = 60,
	.source = "EF21 (Richtarik et al. 2021, Fatkhullin et al. 2023)",
	.traits = GF_SELECT_SETS | GF_SELECT_MOMENTUM | GF_SELECT_BARE,
	.record = &record,
	.defaults = &defaults,
	.less_momentum = "the estimate of the velocity follows it late",
	.most_momentum = 0.8, /* docs/methods.md, "Accuracy" */
	.rate_share = 0.3,
	.wire = gf_density_wire,
	.warm = gf_density_warm,
};
