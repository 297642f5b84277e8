/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of NCCL's example tuner plugin (plugins/tuner/example/plugin.c). The first row that
 * matches counts. Where none does, and where a row has -1 channels, the plugin sets one channel,
 * not NCCL's default: so this table has a row for every size, with a number of channels, or is
 * refused. Of other collectives and communicators nothing is known, and a comment warns.
 */
#include "settings/emit.h"

#include <stdint.h>

/* The first lines; `use`: how the table is put to use. */
static void add_head(const struct gf_picks *picks, const char *use, struct gf_text *out)
{
	gf_text_addf(out, "# gradflow: all-reduce of %s\n# %s\n", picks->dialect->name, use);
	gf_picks_table(picks, out);
}

/* The rows of NVIDIA's example plugin, which RCCL's own tuner also reads: collective, bytes from
 * and to, algorithm, protocol, channels (-1: the default), hosts and ranks. Sizes that are told
 * nothing have none. */
static void add_rows(const struct gf_picks *picks, struct gf_text *out)
{
	for (size_t i = 0; i < picks->count; i++) {
		const struct gf_tuning *t = &picks->list[i].tuning;
		const size_t last =
			i + 1 < picks->count ? picks->list[i + 1].from_bytes - 1 : SIZE_MAX;

		if (t->algorithm)
			gf_text_addf(out, "allreduce,%zu,%zu,%s,%s,%d,%d,%d\n",
				     picks->list[i].from_bytes, last, t->algorithm->name,
				     t->protocol->name, t->channels ? t->channels : -1,
				     picks->network->hosts ? picks->network->hosts : -1,
				     picks->network->ranks);
	}
}

static int emit(const struct gf_picks *picks, struct gf_text *out, struct gf_error *err)
{
	(void)err;
	add_head(picks, "NCCL_TUNER_PLUGIN=libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE=FILE",
		 out);
	gf_text_addf(out,
		     "# The plugin sets 1 channel where no row matches: all other collectives and\n"
		     "# communicators. In its plugin.c, *nChannels = 1 has to be 0 to leave them "
		     "alone.\n"
		     "# On Blackwell it also changes constants of NCCL's own choice, for all of "
		     "these.\n");
	add_rows(picks, out);
	return 0;
}

/* MANUAL
 * the algorithm, protocol and number of channels of NCCL's all-reduce by size, for the number of
 * ranks and hosts that was measured: the table of NVIDIA's example tuner plugin */
const struct gf_emitter gf_emitter_nccl_tuner = {
	.name = "nccl-tuner",
	.description = "NCCL by its example tuner plugin, a CSV",
	.place = 40,
	.version = "NCCL 2.30.7",
	.takes = GF_EMIT_SIZES,
	.program = "NCCL",
	.wish = {.library = "NCCL", .always = true, .named = true},
	.emit_picks = emit,
};

/* The table of RCCL's built-in tuner (src/plugin/tuner/csv_tuner.cc), in which sizes without a row
 * stay as they are. */
static int emit_rccl(const struct gf_picks *picks, struct gf_text *out, struct gf_error *err)
{
	(void)err;
	add_head(picks, "NCCL_TUNER_CONFIG_FILE=FILE", out);
	add_rows(picks, out);
	return 0;
}

/* MANUAL
 * the same of RCCL's built-in tuner */
const struct gf_emitter gf_emitter_rccl_tuner = {
	.name = "rccl-tuner",
	.description = "RCCL by its built-in tuner, a CSV",
	.place = 50,
	.version = "rocm-systems 22af4d53",
	.takes = GF_EMIT_SIZES,
	.program = "RCCL",
	.wish = {.library = "RCCL"},
	.emit_picks = emit_rccl,
};

/*
 * The table of NCCLX's built-in tuner (torchcomms, comms/ncclx/meta/tuner): collective, bytes by
 * the number of ranks as an interval, algorithm, protocol, channels, hosts, ranks of a host. The
 * tuner divides and rounds down, so an interval begins at the next whole number. Sizes without a
 * row stay as they are. A row names its ranks by hosts and ranks of a host alone: where the hosts
 * are not known, each way to have the ranks has one. NCCLX is NCCL with additions, and has its
 * variants.
 */
/* On so many hosts. */
static void add_row(const struct gf_picks *picks, size_t i, int hosts, struct gf_text *out)
{
	const size_t ranks = (size_t)picks->network->ranks;
	const struct gf_pick *p = &picks->list[i];

	gf_text_addf(out, "allreduce,[%zu,", p->from_bytes / ranks + (p->from_bytes % ranks > 0));
	if (i + 1 < picks->count)
		gf_text_addf(out, "%zu", p[1].from_bytes / ranks + (p[1].from_bytes % ranks > 0));
	gf_text_addf(out, "),%s,%s,%d,%d,%zu\n", p->tuning.algorithm->name,
		     p->tuning.protocol->name, p->tuning.channels ? p->tuning.channels : -1, hosts,
		     ranks / (size_t)hosts);
}

static int emit_ncclx(const struct gf_picks *picks, struct gf_text *out, struct gf_error *err)
{
	const struct gf_network *net = picks->network;

	(void)err;
	add_head(picks, "NCCLX_TUNER_CONFIG_FILE=FILE", out);
	for (size_t i = 0; i < picks->count; i++)
		for (int h = 1; h <= net->ranks; h++)
			if (picks->list[i].tuning.algorithm &&
			    (net->hosts ? h == net->hosts : net->ranks % h == 0))
				add_row(picks, i, h, out);
	return 0;
}

/* MANUAL
 * the same of NCCLX's built-in tuner; where the hosts are not known, a row for each way to place
 * the ranks */
const struct gf_emitter gf_emitter_ncclx_tuner = {
	.name = "ncclx-tuner",
	.description = "NCCLX by its built-in tuner, a CSV",
	.place = 60,
	.version = "torchcomms 59426ba4",
	.takes = GF_EMIT_SIZES,
	.program = "NCCLX",
	.wish = {.library = "NCCL"},
	.emit_picks = emit_ncclx,
};
