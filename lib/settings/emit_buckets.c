/* SPDX-License-Identifier: BSD-3-Clause */
/* What targets that are told buckets share. */
#include "settings/emit_buckets.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "collectives/algorithm.h"

/* What the programs call our codecs; NULL: they have none of the kind. */
static const struct gf_emit_compression compressions[] = {
	{"f32", "", ""},
	{"f16", "fp16_compress_hook", "fp16"},
	{"bf16", "bf16_compress_hook", NULL},
};

const struct gf_emit_compression *gf_emit_compression_of(const char *codec)
{
	static const struct gf_emit_compression none;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(compressions); i++)
		if (strcmp(compressions[i].codec, codec) == 0)
			return &compressions[i];
	return &none;
}

void gf_emit_caveats(const struct gf_plan *p, struct gf_text *out)
{
	size_t i, simultaneous = 0, late = 0, chosen = 0;

	for (i = 0; i < p->nmessages; i++) {
		const struct gf_message *m = &p->messages[i];
		const struct gf_algorithm *a = gf_algorithm_find(m->algorithm);

		simultaneous += m->mode == GF_MODE_SIMULTANEOUS;
		late += m->release == GF_RELEASE_BACKWARD_END;
		chosen += a && a->build;
	}
	if (simultaneous)
		gf_text_addf(out,
			     "# %zu messages are planned simultaneous: here the library decides "
			     "what overlaps.\n",
			     simultaneous);
	if (late)
		gf_text_addf(
			out,
			"# %zu messages are planned for after backward: here they go when ready.\n",
			late);
	if (chosen)
		gf_text_addf(out,
			     "# %zu messages are planned by algorithms of gradflow: here the "
			     "library chooses.\n",
			     chosen);
}

int gf_emit_lacks(const struct gf_emitter *e, const char *kind, const char *name,
		  struct gf_error *err)
{
	return gf_error_set(err, -ENOTSUP, "--emit %s: %s has no %s%s (gradflow.ddp runs the plan)",
			    e->name, e->program, kind, name);
}

static int check_codecs(const struct gf_plan *p, const struct gf_emitter *e, struct gf_error *err)
{
	size_t i;

	for (i = 0; i < p->nmessages; i++) {
		if (!e->takes_codec(p->messages[i].codec))
			return gf_emit_lacks(e, "codec ", p->messages[i].codec, err);
		if (strcmp(p->messages[i].codec, p->messages[0].codec) != 0)
			return gf_error_set(
				err, -ENOTSUP,
				"--emit %s: want one codec for all messages, got %s and %s",
				e->name, p->messages[0].codec, p->messages[i].codec);
	}
	return 0;
}

int gf_emit_check(const struct gf_plan *p, const struct gf_emitter *e, bool by_rank,
		  struct gf_error *err)
{
	size_t i;

	if (p->rule)
		return 0;
	if (p->staleness > 1)
		return gf_emit_lacks(e, "stale gradients", "", err);
	if (!(by_rank || gf_selection_has(&p->selection, GF_SELECT_LOSSLESS)))
		return gf_emit_lacks(e, "selection ", gf_selection_name(&p->selection), err);
	for (i = 0; i < p->nmessages; i++)
		if (p->messages[i].half == GF_HALF_SPLIT)
			return gf_error_set(err, -ENOTSUP,
					    "--emit %s: want whole messages, got split ones (plan "
					    "without --halves)",
					    e->name);
	return check_codecs(p, e, err);
}

bool gf_emit_plan_pays(const struct gf_emit_times *t)
{
	return !(t->default_s > 0) || t->plan_s <= t->default_s;
}

bool gf_emit_cap_pays(const struct gf_emit_times *t)
{
	return t->cap_bytes > 0 && t->default_s > 0 && t->cap_most_s <= t->default_s;
}
