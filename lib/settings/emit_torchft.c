/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * torchft's LocalSGD and DiLoCo (torchft/local_sgd.py), as Python. A replica group is a group of
 * the plan. torchft takes a fragment's pseudo-gradient `fragment_sync_delay` steps before the
 * fragment's boundary, where gradflow takes it at the boundary: the fragment is as long in flight.
 * Its codec is fp8, its alpha the share of a replica's own parameters, and its outer step that of
 * torch.optim.SGD, which is doc/periods/period.h's.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "collectives/codecs/codec.h"
#include "json/json.h"
#include "planner/policies/policies.h"
#include "settings/emit.h"

static int check(const struct gf_plan *p, bool *quantize, struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	const char *codec = o->messages[0].codec;
	size_t i;

	if (o->begin_steps)
		return gf_error_set(err, -ENOTSUP,
				    "--emit torchft: want no steps at the beginning with an "
				    "exchange in each, got %zu",
				    o->begin_steps);
	for (i = 1; i < o->nmessages; i++)
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
	size_t i;

	for (i = m->first; i <= m->last; i++, more = true) {
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

static int emit(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
		struct gf_error *err)
{
	const struct gf_period *o = &p->period;
	bool quantize, averages = o->outer_rate == 1 && !(o->outer_momentum > 0) && !(o->mix > 0) &&
				  o->fragments == 1 && !o->delay;
	int rc = check(p, &quantize, err);

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

const struct gf_emitter gf_emitter_torchft = {
	.name = "torchft",
	.description = "torchft's LocalSGD and DiLoCo, Python",
	.version = "torchft 73dafea",
	.takes = GF_EMIT_PERIOD,
	.program = "torchft",
	.as_it_is = &gf_policy_ddp,
	.emit = emit,
};
