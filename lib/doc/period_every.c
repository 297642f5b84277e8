/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/period_parts.h"

static const struct gf_field fields[] = {{NULL}};

static const struct gf_record record = {
	GF_RECORD(struct gf_period, fields),
};

static const struct gf_period defaults = {0};

const struct gf_period_plan gf_period_plan_every = {
	.name = "every",
	.description = "all ranks exchange gradients in every step",
	.source = "synchronous SGD",
	.traits = GF_PERIOD_EVERY | GF_PERIOD_SERVERS,
	.record = &record,
	.defaults = &defaults,
};
