/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * torchft's LocalSGD and DiLoCo (torchft/local_sgd.py), which exchange between
 * replica groups. A fragment is a module of the model there, and its exchange
 * begins fragment_sync_delay steps before it is due. fragment_update_alpha is
 * the share of its own parameters that a rank keeps. Quantised exchanges go in
 * fp8.
 */
#include "planner/emit.h"

#include "codec/codec.h"
#include "planner/emit_buckets.h"

/* Every fragment's parameters, so that their modules can be found. */
static void add_fragments(const struct gf_plan *p, struct gf_text *out)
{
	const struct gf_period *o = &p->period;
	size_t fragment, first, count, t;

	for (fragment = 0; fragment < o->fragments; fragment++) {
		gf_period_messages(o, fragment, &first, &count);
		gf_text_addf(out, "# fragment %zu:", fragment);
		for (t = o->messages[first].first;
		     t <= o->messages[first + count - 1].last; t++)
			gf_text_addf(out, " %s", p->model->tensors[t].name);
		gf_text_addf(out, "\n");
	}
}

static int emit(const struct gf_plan *p, const struct gf_emit_times *times,
		struct gf_text *out, struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	const char *codec = o->messages[0].codec;
	const char *quantised = gf_emit_compression_of(codec)->torchft;

	(void)times;
	if (o->begin_steps)
		return gf_emit_lacks(&gf_emitter_torchft, "period ",
				     gf_period_name(o), err);
	if (!quantised)
		return gf_emit_lacks(&gf_emitter_torchft, "outer codec ", codec,
				     err);
	gf_emit_head(p, "torchft", out);
	if (o->outer_momentum > 0 || o->fragments > 1) {
		add_fragments(p, out);
		gf_text_addf(out,
			     "outer_optimizer = torch.optim.SGD(parameters, "
			     "lr=%.9g, momentum=%.9g, nesterov=True)\n"
			     "diloco = DiLoCo(manager, fragments, optimizer, "
			     "outer_optimizer, sync_every=%zu,\n"
			     "    fragment_sync_delay=%zu, "
			     "fragment_update_alpha=%.9g, "
			     "should_quantize=%s)\n",
			     o->outer_rate, o->outer_momentum, o->steps,
			     o->delay, o->mix, quantised);
		return 0;
	}
	if (!gf_codec_is_plain(codec))
		return gf_emit_lacks(&gf_emitter_torchft, "codec of LocalSGD, ",
				     codec, err);
	gf_text_addf(out,
		     "local_sgd = LocalSGD(manager, model, optimizer, "
		     "sync_every=%zu)\n",
		     o->steps);
	return 0;
}

const struct gf_emitter gf_emitter_torchft = {
	.name = "torchft",
	.description = "torchft's LocalSGD and DiLoCo, in Python",
	.version = "torchft 73dafea",
	.takes = GF_EMIT_PERIOD,
	.program = "torchft",
	.emit = emit,
};
