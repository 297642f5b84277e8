/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of NCCLX's built-in tuner (torchcomms, comms/ncclx/meta/tuner):
 * collective, bytes by the number of ranks as an interval, algorithm, protocol,
 * channels, hosts, ranks of a host. The tuner divides and rounds down, so an
 * interval begins at the next whole number. Sizes without a row stay as they
 * are. A row names its ranks by hosts and ranks of a host alone: where the
 * hosts are not known, each way to have the ranks has one. NCCLX is NCCL with
 * additions, and has its variants.
 */
#include "planner/emit_tuner.h"

/* On so many hosts. */
static void add_row(const struct gf_picks *picks, size_t i, int hosts,
		    struct gf_text *out)
{
	const size_t ranks = (size_t)picks->network->ranks;
	const struct gf_pick *p = &picks->list[i];

	gf_text_addf(out, "allreduce,[%zu,",
		     p->from_bytes / ranks + (p->from_bytes % ranks > 0));
	if (i + 1 < picks->count)
		gf_text_addf(out, "%zu",
			     p[1].from_bytes / ranks +
				     (p[1].from_bytes % ranks > 0));
	gf_text_addf(out, "),%s,%s,%d,%d,%zu\n", p->tuning.algorithm->name,
		     p->tuning.protocol->name,
		     p->tuning.channels ? p->tuning.channels : -1, hosts,
		     ranks / (size_t)hosts);
}

static int emit(const struct gf_picks *picks, struct gf_text *out,
		struct gf_error *err)
{
	const struct gf_network *net = picks->network;
	size_t i;
	int h;

	(void)err;
	gf_emit_tuner_head(picks, "NCCLX_TUNER_CONFIG_FILE=FILE", out);
	for (i = 0; i < picks->count; i++)
		for (h = 1; h <= net->ranks; h++)
			if (picks->list[i].tuning.algorithm &&
			    (net->hosts ? h == net->hosts
					: net->ranks % h == 0))
				add_row(picks, i, h, out);
	return 0;
}

const struct gf_emitter gf_emitter_ncclx_tuner = {
	.name = "ncclx-tuner",
	.description = "NCCLX by its built-in tuner, a CSV",
	.version = "torchcomms 59426ba4",
	.takes = GF_EMIT_SIZES,
	.program = "NCCLX",
	.wish = {.library = "NCCL"},
	.emit_picks = emit,
};
