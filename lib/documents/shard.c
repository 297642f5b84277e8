/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/shard.h"

#include "documents/plan.h"
#include "json/record.h"

#define AT(member) offsetof(struct gf_shard, member)
static const struct gf_field shard_fields[] = {
	{GF_MEMBER(method, GF_FIELD_CHOICE, GF_OMITTED), .names = gf_shard_plans_names},
	{GF_MEMBER(group_ranks, GF_FIELD_INT, GF_OMITTED), .low = 1, .high = GF_RANKS_MAX},
	{GF_MEMBER(ahead, GF_FIELD_SIZE, GF_OMITTED), .high = GF_MAX_COUNT},
	{NULL},
};

const struct gf_record gf_shard_record = {
	GF_RECORD(struct gf_shard, shard_fields),
	.one_line = true,
};

bool gf_shard_stays(const struct gf_shard *s, const struct gf_message *messages, size_t n,
		    size_t parts, size_t stage)
{
	const bool forward = gf_shard_is_forward(n, stage);
	const size_t unit = gf_shard_unit(n, stage);
	const size_t next = 2 * (forward ? unit : n - 1 - unit) + 1;

	if (stage + next >= 2 * n * parts)
		return false;
	if (!gf_shard_has(s, GF_SHARD_PARAMETERS))
		return true;
	if (forward)
		return next == 1 || messages[unit].keep || next <= s->ahead;
	return next <= s->ahead + 1;
}

bool gf_shard_regathers(const struct gf_shard *s, const struct gf_message *messages, size_t i)
{
	return !gf_shard_stays(s, messages, i + 1, 1, 0);
}

/* Is the unit of a stage there from an earlier one? */
static bool has_stayed(const struct gf_shard *s, const struct gf_message *messages, size_t n,
		       size_t parts, size_t stage)
{
	const size_t unit = gf_shard_unit(n, stage);
	const size_t back = 2 * (gf_shard_is_forward(n, stage) ? n - 1 - unit : unit) + 1;

	return stage >= back && gf_shard_stays(s, messages, n, parts, stage - back);
}

size_t gf_shard_order(const struct gf_shard *s, const struct gf_message *messages, size_t n,
		      size_t parts, struct gf_shard_work *works)
{
	const bool units = gf_shard_has(s, GF_SHARD_PARAMETERS);
	const size_t stages = 2 * n * parts;
	size_t stage, next = 0, count = 0;

	for (stage = 0; stage <= stages; stage++) {
		/* what opens now: with the step, `ahead` more than its first stage needs */
		for (; next < stages && (!units || next <= stage + s->ahead); next++)
			if (!has_stayed(s, messages, n, parts, next))
				works[count++] = (struct gf_shard_work){gf_shard_unit(n, next),
									true, next, stage};
		if (stage > stages - n)
			works[count++] = (struct gf_shard_work){gf_shard_unit(n, stage - 1), false,
								stage - 1, stage};
	}
	return count;
}

/* MANUAL
 * every rank keeps all parameters, gradients and optimiser state. */
const struct gf_shard_plan gf_shard_plan_none = {
	.name = "none",
	.description = "every rank keeps all of it",
	.place = 10,
	.source = "data parallelism",
};

/* MANUAL
 * a rank keeps the optimiser's state of its parts. */
const struct gf_shard_plan gf_shard_plan_zero1 = {
	.name = "zero1",
	.description = "a rank keeps its part of the optimiser's state",
	.place = 20,
	.source = "ZeRO stage 1 (Rajbhandari et al. 2020)",
	.traits = GF_SHARD_STATE,
};

/* MANUAL
 * and gradients of its parts alone, once they have been added up. */
const struct gf_shard_plan gf_shard_plan_zero2 = {
	.name = "zero2",
	.description = "and its part of the gradients",
	.place = 30,
	.source = "ZeRO stage 2 (Rajbhandari et al. 2020)",
	.traits = GF_SHARD_STATE | GF_SHARD_GRADIENTS,
};

/* MANUAL
 * and parameters of its parts alone, while no layer computes with them. */
const struct gf_shard_plan gf_shard_plan_zero3 = {
	.name = "zero3",
	.description = "and its part of the parameters",
	.place = 40,
	.source = "ZeRO stage 3 (Rajbhandari et al. 2020); FSDP (Zhao et al. 2023)",
	.traits = GF_SHARD_STATE | GF_SHARD_GRADIENTS | GF_SHARD_PARAMETERS,
};

/* MANUAL
 * the fastest of these that fits into
 * .Fl -memory . */
const struct gf_shard_plan gf_shard_plan_auto = {
	.name = "auto",
	.description = "the fastest of these that fits into memory",
	.place = 50,
	.source = "gradflow",
	.traits = GF_SHARD_OPEN,
};

int gf_shard_check_batches(const struct gf_shard *s, size_t micro_batches, struct gf_error *err)
{
	if (micro_batches <= 1 || !gf_shard_has(s, GF_SHARD_PARAMETERS))
		return 0;
	return gf_error_set(err, -ENOTSUP,
			    "--accumulate: want 1 with --shard %s, which gathers anew for each "
			    "micro-batch, got %zu",
			    gf_shard_plans[s->method]->name, micro_batches);
}
