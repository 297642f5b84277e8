/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of NCCL's example tuner plugin (plugins/tuner/example/plugin.c).
 * The first row that matches counts. Where none does, and where a row has -1
 * channels, the plugin sets one channel, not NCCL's default: so this table has
 * a row for every size, with a number of channels, or is refused. Of other
 * collectives and communicators nothing is known, and a comment warns.
 */
#include "planner/emit_tuner.h"

#include <stdint.h>

void gf_emit_tuner_head(const struct gf_picks *picks, const char *use,
			struct gf_text *out)
{
	gf_text_addf(out, "# gradflow: all-reduce of %s\n# %s\n",
		     picks->dialect->name, use);
	gf_picks_table(picks, out);
}

void gf_emit_tuner_rows(const struct gf_picks *picks, struct gf_text *out)
{
	size_t i;

	for (i = 0; i < picks->count; i++) {
		const struct gf_tuning *t = &picks->list[i].tuning;
		const size_t last = i + 1 < picks->count
					    ? picks->list[i + 1].from_bytes - 1
					    : SIZE_MAX;

		if (t->algorithm)
			gf_text_addf(out, "allreduce,%zu,%zu,%s,%s,%d,%d,%d\n",
				     picks->list[i].from_bytes, last,
				     t->algorithm->name, t->protocol->name,
				     t->channels ? t->channels : -1,
				     picks->network->hosts
					     ? picks->network->hosts
					     : -1,
				     picks->network->ranks);
	}
}

static int emit(const struct gf_picks *picks, struct gf_text *out,
		struct gf_error *err)
{
	(void)err;
	gf_emit_tuner_head(picks,
			   "NCCL_TUNER_PLUGIN=libnccl-tuner-example.so "
			   "NCCL_TUNER_CONFIG_FILE=FILE",
			   out);
	gf_text_addf(out,
		     "# The plugin sets 1 channel where no row matches: all "
		     "other collectives and\n"
		     "# communicators. In its plugin.c, *nChannels = 1 has to "
		     "be 0 to leave them alone.\n"
		     "# On Blackwell it also changes constants of NCCL's own "
		     "choice, for all of these.\n");
	gf_emit_tuner_rows(picks, out);
	return 0;
}

const struct gf_emitter gf_emitter_nccl_tuner = {
	.name = "nccl-tuner",
	.description = "NCCL by its example tuner plugin, a CSV",
	.version = "NCCL 2.30.7",
	.takes = GF_EMIT_SIZES,
	.program = "NCCL",
	.wish = {.library = "NCCL", .always = true, .named = true},
	.emit_picks = emit,
};
