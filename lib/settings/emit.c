/* SPDX-License-Identifier: BSD-3-Clause */
#include "settings/emit.h"

#include "base/array.h"

void gf_emit_head(const struct gf_plan *p, const char *what, struct gf_text *out)
{
	gf_text_addf(out, "# gradflow: %s, policy %s", what, p->policy ? p->policy : "unknown");
	if (p->model)
		gf_text_addf(out, ", model %s, %d ranks, %zu messages", p->model->name, p->ranks,
			     p->nmessages);
	gf_text_addf(out, "\n");
}

void gf_emitter_mark(const void *emitter, struct gf_text *out)
{
	static const struct {
		unsigned takes;
		const char *words;
	} words[] = {
		{GF_EMIT_BUCKETS, "buckets"},          {GF_EMIT_CAP, "the size of buckets"},
		{GF_EMIT_SIZES, "algorithms by size"}, {GF_EMIT_CODECS, "codecs"},
		{GF_EMIT_ALGORITHM, "an algorithm"},   {GF_EMIT_PERIOD, "a period"},
	};
	const struct gf_emitter *e = emitter;
	const char *comma = "takes ";
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(words); i++)
		if (e->takes & words[i].takes) {
			gf_text_addf(out, "%s%s", comma, words[i].words);
			comma = ", ";
		}
	gf_text_addf(out, "; %s", e->version);
}

bool gf_emit_plan_pays(const struct gf_emit_times *t)
{
	return !(t->default_s > 0) || t->plan_s <= t->default_s;
}

bool gf_emit_cap_pays(const struct gf_emit_times *t)
{
	return t->cap_bytes > 0 && t->default_s > 0 && t->cap_most_s <= t->default_s;
}

const struct gf_emitter *const gf_emitters[] = {
	&gf_emitter_ddp,        &gf_emitter_horovod,
	&gf_emitter_nccl_env,   &gf_emitter_nccl_tuner,
	&gf_emitter_rccl_tuner, &gf_emitter_ncclx_tuner,
	&gf_emitter_ompi,       &gf_emitter_ompi_han,
	&gf_emitter_deepspeed,  &gf_emitter_megatron,
	&gf_emitter_xla,        &gf_emitter_torchft,
	&gf_emitter_maxtext,    NULL,
};
