/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MaxText's DiLoCo (src/maxtext/configs/base.yml, trainers/diloco), as lines of a configuration. A
 * replica is a group of the plan. MaxText cuts fragments by layers, one of them of what is no
 * layer: their number alone can be told. They go in turn every diloco_sync_period /
 * num_diloco_fragments steps, and are mixed in num_communication_overlapping_steps later; the outer
 * step is optax's SGD with Nesterov's momentum, which is doc/periods/period.h's.
 */
#include <errno.h>

#include "collectives/codecs/codec.h"
#include "planner/policies/policies.h"
#include "settings/emit.h"

static int check(const struct gf_plan *p, struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	size_t i;

	if (o->begin_steps)
		return gf_error_set(err, -ENOTSUP,
				    "--emit maxtext: want no steps at the beginning with an "
				    "exchange in each, got %zu",
				    o->begin_steps);
	if (o->fragments == 1 && (o->delay || o->mix > 0))
		return gf_error_set(
			err, -ENOTSUP,
			"--emit maxtext: want 2 --fragments or more with a delay or a mix, got 1");
	for (i = 0; i < o->nmessages; i++)
		if (!gf_codec_is_plain(o->messages[i].codec))
			return gf_error_set(err, -ENOTSUP,
					    "--emit maxtext: want outer codec f32, got %s",
					    o->messages[i].codec);
	return 0;
}

static int emit(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
		struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	int rc = check(p, err);

	(void)t;
	if (rc < 0)
		return rc;
	gf_emit_head(p, "MaxText's DiLoCo", out);
	gf_text_addf(out,
		     "enable_diloco: true\n"
		     "dcn_diloco_parallelism: %d\n"
		     "diloco_sync_period: %zu\n"
		     "diloco_outer_lr: %g\n"
		     "diloco_outer_momentum: %g\n",
		     p->ranks / o->group_ranks, o->steps, o->outer_rate, o->outer_momentum);
	if (o->fragments > 1)
		gf_text_addf(out,
			     "# wants scan_layers, and decoder layers that num_diloco_fragments - "
			     "1 = %zu divides\n"
			     "enable_streaming_diloco: true\n"
			     "num_diloco_fragments: %zu\n"
			     "use_sequential_layers: true\n"
			     "num_communication_overlapping_steps: %zu\n"
			     "communication_overlapping_alpha: %g\n",
			     o->fragments - 1, o->fragments, o->delay, o->mix);
	return 0;
}

const struct gf_emitter gf_emitter_maxtext = {
	.name = "maxtext",
	.description = "MaxText's DiLoCo, YAML",
	.version = "MaxText e591f30c",
	.takes = GF_EMIT_PERIOD,
	.program = "MaxText",
	.as_it_is = &gf_policy_ddp,
	.emit = emit,
};
