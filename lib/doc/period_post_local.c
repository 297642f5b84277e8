/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/period_parts.h"

/*
 * Local SGD after a beginning in which groups average their parameters in every
 * step. The mean over groups then goes the way of synchronous SGD: SGD's step
 * is linear in gradient and velocity.
 */

static const struct gf_field fields[] = {
	GF_PERIOD_FIRST,
	{"begin_steps", GF_FIELD_SIZE, .offset = GF_PERIOD_AT(begin_steps),
	 .high = GF_MAX_SIZE, .option = "begin-steps", .unit = "N",
	 .help = "the first N steps have an exchange in each"},
	GF_PERIOD_LAST,
	{NULL},
};

static const struct gf_record record = {
	GF_RECORD(struct gf_period, fields),
};

static const struct gf_period defaults = {
	.steps = 16,
	.begin_steps = 1000,
	.fragments = 1,
	.outer_rate = 1,
	.lanes = 1,
};

const struct gf_period_plan gf_period_plan_post_local = {
	.name = "post-local",
	.description = "local-sgd after a beginning that averages every step",
	.source = "Post-local SGD (Lin et al. 2020)",
	.record = &record,
	.defaults = &defaults,
};
