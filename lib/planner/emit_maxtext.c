/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MaxText's keys for DiLoCo (configs/base.yml, configs/types.py). It exchanges
 * in f32, cuts a model into fragments by itself, and exchanges one in each
 * step. Its alpha is the share of its own parameters that an island keeps.
 */
#include "planner/emit.h"

#include "codec/codec.h"
#include "planner/emit_buckets.h"

static int emit(const struct gf_plan *p, const struct gf_emit_times *times,
		struct gf_text *out, struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	size_t i;

	(void)times;
	if (o->begin_steps)
		return gf_emit_lacks(&gf_emitter_maxtext, "period ",
				     gf_period_name(o), err);
	for (i = 0; i < o->nmessages; i++)
		if (!gf_codec_is_plain(o->messages[i].codec))
			return gf_emit_lacks(&gf_emitter_maxtext,
					     "outer codec ",
					     o->messages[i].codec, err);
	gf_emit_head(p, "MaxText", out);
	gf_text_addf(out,
		     "enable_diloco: true\n"
		     "dcn_diloco_parallelism: %d\n"
		     "diloco_sync_period: %zu\n"
		     "diloco_outer_lr: %.9g\n"
		     "diloco_outer_momentum: %.9g\n",
		     p->ranks / o->group_ranks, o->steps, o->outer_rate,
		     o->outer_momentum);
	if (o->fragments > 1 || o->delay)
		gf_text_addf(out,
			     "enable_streaming_diloco: true\n"
			     "num_diloco_fragments: %zu\n"
			     "num_communication_overlapping_steps: %zu\n"
			     "communication_overlapping_alpha: %.9g\n",
			     o->fragments > 1 ? o->fragments : 2, o->delay,
			     o->mix);
	return 0;
}

const struct gf_emitter gf_emitter_maxtext = {
	.name = "maxtext",
	.description = "MaxText's DiLoCo, keys of its YAML",
	.version = "MaxText e591f30c",
	.takes = GF_EMIT_PERIOD,
	.program = "MaxText",
	.default_period = 36,
	.emit = emit,
};
