/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/period_parts.h"

/* The mean of the parameters: doc/period.h with r = 1, m = 0, a = 0. */

static const struct gf_field fields[] = {
	GF_PERIOD_FIRST,
	GF_PERIOD_LAST,
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_period, fields),
};

static const struct gf_period defaults = {
	.steps = 16,
	.fragments = 1,
	.outer_rate = 1,
	.lanes = 1,
};

const struct gf_period_plan gf_period_plan_local_sgd = {
	.name = "local-sgd",
	.description = "groups average their parameters every H steps",
	.source = "Local SGD (Stich 2019)",
	.record = &record,
	.defaults = &defaults,
};
