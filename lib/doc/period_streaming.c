/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/period_parts.h"

/* Douillard et al. 2025, algorithm 2: the fragments of a model in turn, each
 * beside the next `delay` steps, whose parameters it is mixed into. */

static const struct gf_field fields[] = {
	GF_PERIOD_FIRST,
	{"fragments", GF_FIELD_SIZE, .offset = GF_PERIOD_AT(fragments),
	 .low = 1, .high = GF_MAX_COUNT, .option = "fragments", .unit = "N",
	 .help = "parts of the model that are exchanged in turn"},
	{"delay", GF_FIELD_SIZE, .offset = GF_PERIOD_AT(delay),
	 .high = GF_MAX_SIZE, .option = "delay", .unit = "STEPS",
	 .help = "steps beside which a fragment is exchanged"},
	{"mix", GF_FIELD_REAL, .offset = GF_PERIOD_AT(mix), .high = 1,
	 .option = "mix", .unit = "SHARE",
	 .help = "of its own parameters that a rank keeps"},
	GF_PERIOD_RATE,
	GF_PERIOD_MOMENTUM,
	GF_PERIOD_LAST,
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_period, fields),
};

static const struct gf_period defaults = {
	.steps = 100,
	.fragments = 4,
	.delay = 5,
	.mix = 0.5,
	.outer_rate = 0.7,
	.outer_momentum = 0.9,
	.lanes = 1,
};

const struct gf_period_plan gf_period_plan_streaming = {
	.name = "streaming",
	.description = "diloco of a fragment at a time, beside the next steps",
	.source = "Streaming DiLoCo (Douillard et al. 2025)",
	.record = &record,
	.defaults = &defaults,
};
