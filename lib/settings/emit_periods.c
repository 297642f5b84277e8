/* SPDX-License-Identifier: BSD-3-Clause */
/* Targets that are told a period. */
#include <stdbool.h>
#include <string.h>

#include "collectives/codecs/codec.h"
#include "json/json.h"
#include "planner/policies/policy.h"
#include "settings/emit.h"
#include "lists/gf_emitters.h"

/* A step within a group is the program's own, with all gradients in f32. */
static int check_step(const struct gf_plan *p, const struct gf_emitter *e, struct gf_error *err)
{
	if (p->period.begin_steps)
		return gf_error_set(err, -ENOTSUP,
				    "--emit %s: want no steps at the beginning with an exchange in "
				    "each, got %zu",
				    e->name, p->period.begin_steps);
	return gf_emit_check_sent(p, e, false, err);
}

/*
 * torchft's LocalSGD and DiLoCo (torchft/local_sgd.py), as Python. A replica group is a group of
 * the plan. torchft takes a fragment's pseudo-gradient `fragment_sync_delay` steps before the
 * fragment's boundary, where gradflow takes it at the boundary: the fragment is as long in flight.
 * Its codec is fp8, its alpha the share of a replica's own parameters, and its outer step that of
 * torch.optim.SGD, which is documents/periods/period.h's.
 */

static int check_torchft(const struct gf_plan *p, bool *quantize, struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	const char *codec = o->messages[0].codec;

	if (check_step(p, &gf_emitter_torchft, err))
		return -ENOTSUP;
	for (size_t i = 1; i < o->nmessages; i++)
		if (strcmp(o->messages[i].codec, codec) != 0)
			return gf_error_set(err, -ENOTSUP,
					    "--emit torchft: want one codec of all outer messages, "
					    "got %s and %s",
					    codec, o->messages[i].codec);
	*quantize = strcmp(codec, gf_codecs[GF_CODEC_FP8].name) == 0;
	if (!*quantize && !gf_codec_is_plain(codec))
		return gf_error_set(err, -ENOTSUP,
				    "--emit torchft: want outer codec f32 or fp8, got %s", codec);
	return 0;
}

static void add_message(const struct gf_plan *p, const struct gf_message *m, bool more,
			struct gf_text *out)
{
	for (size_t i = m->first; i <= m->last; i++, more = true) {
		gf_text_addf(out, "%s", more ? ", " : "");
		gf_json_quote(out, p->model->tensors[i].name);
	}
}

/* The parameters of each fragment, which the job makes modules of. */
static void add_fragments(const struct gf_plan *p, struct gf_text *out)
{
	size_t f, first, n, i;

	gf_text_addf(out, "# the parameters of each of model_fragments\n"
			  "fragments = [\n");
	for (f = 0; f < p->period.fragments; f++) {
		gf_period_messages(&p->period, f, &first, &n);
		gf_text_addf(out, "    [");
		for (i = 0; i < n; i++)
			add_message(p, &p->period.messages[first + i], i > 0, out);
		gf_text_addf(out, "],\n");
	}
	gf_text_addf(out, "]\n");
}

static int emit_torchft(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
			struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	bool quantize, averages = o->outer_rate == 1 && !(o->outer_momentum > 0) && !(o->mix > 0) &&
				  o->fragments == 1 && !o->delay;
	int rc = check_torchft(p, &quantize, err);

	(void)t;
	if (rc < 0)
		return rc;
	gf_emit_head(p, "torchft's local_sgd", out);
	gf_text_addf(out, "# a replica group: %d rank%s\n", o->group_ranks,
		     o->group_ranks == 1 ? "" : "s");
	if (averages && !quantize) {
		gf_text_addf(out, "local_sgd = dict(sync_every=%zu)\n", o->steps);
		return 0;
	}
	gf_text_addf(out,
		     "outer = dict(lr=%g, momentum=%g, nesterov=%s)  # torch.optim.SGD\n"
		     "diloco = dict(\n"
		     "    sync_every=%zu,\n"
		     "    should_quantize=%s,\n"
		     "    fragment_sync_delay=%zu,\n"
		     "    fragment_update_alpha=%g,\n"
		     ")\n",
		     o->outer_rate, o->outer_momentum, o->outer_momentum > 0 ? "True" : "False",
		     o->steps, quantize ? "True" : "False", o->delay, o->mix);
	add_fragments(p, out);
	return 0;
}

/* MANUAL
 * torchft's LocalSGD and DiLoCo, in Python, with the parameters of each fragment.
 * The outer exchange goes in f32 or fp8. */
const struct gf_emitter gf_emitter_torchft = {
	.name = "torchft",
	.description = "torchft's LocalSGD and DiLoCo, Python",
	.place = 120,
	.version = "torchft 73dafea",
	.takes = GF_EMIT_PERIOD,
	.program = "torchft",
	.as_it_is = &gf_policy_ddp,
	.takes_codec = gf_codec_is_plain,
	.emit = emit_torchft,
};

/*
 * MaxText's DiLoCo (src/maxtext/configs/base.yml, trainers/diloco), as lines of a configuration. A
 * replica is a group of the plan. MaxText cuts fragments by layers, one of them of what is no
 * layer: their number alone can be told. They go in turn every diloco_sync_period /
 * num_diloco_fragments steps, and are mixed in num_communication_overlapping_steps later; the outer
 * step is optax's SGD with Nesterov's momentum, which is documents/periods/period.h's.
 */

static int check_maxtext(const struct gf_plan *p, struct gf_error *err)
{
	const struct gf_period *o = &p->period;

	if (check_step(p, &gf_emitter_maxtext, err))
		return -ENOTSUP;
	if (o->fragments == 1 && (o->delay || o->mix > 0))
		return gf_error_set(
			err, -ENOTSUP,
			"--emit maxtext: want 2 fragments or more with a delay or a mix, got 1");
	for (size_t i = 0; i < o->nmessages; i++)
		if (!gf_codec_is_plain(o->messages[i].codec))
			return gf_error_set(err, -ENOTSUP,
					    "--emit maxtext: want outer codec f32, got %s",
					    o->messages[i].codec);
	return 0;
}

static int emit_maxtext(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
			struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	int rc = check_maxtext(p, err);

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

/* MANUAL
 * MaxText's keys for DiLoCo and its streaming form.
 * The outer exchange goes in f32.
 * MaxText cuts a model into fragments by itself: it wants
 * .Cm scan_layers ,
 * and a number of decoder layers that
 * .Cm num_diloco_fragments
 * \(mi 1 divides. */
const struct gf_emitter gf_emitter_maxtext = {
	.name = "maxtext",
	.description = "MaxText's DiLoCo, YAML",
	.place = 130,
	.version = "MaxText e591f30c",
	.takes = GF_EMIT_PERIOD,
	.program = "MaxText",
	.as_it_is = &gf_policy_ddp,
	.takes_codec = gf_codec_is_plain,
	.emit = emit_maxtext,
};
