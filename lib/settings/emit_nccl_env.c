/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of NCCL: shell to read in. */
#include "settings/emit.h"

#include <string.h>

#include "base/registry.h"

/* The algorithm of all messages (of a rule: of long ones), NULL if they differ. NCCL chooses by
 * process, not by message. */
static const char *one_algorithm(const struct gf_plan *p)
{
	if (p->rule)
		return p->rule->algorithms[p->rule->nalgorithms - 1].algorithm;
	for (size_t i = 1; i < p->nmessages; i++)
		if (strcmp(p->messages[i].algorithm, p->messages[0].algorithm) != 0)
			return NULL;
	return p->messages[0].algorithm;
}

static int emit_nccl(const struct gf_plan *p, const struct gf_emit_times *t, struct gf_text *out,
		     struct gf_error *err)
{
	static const char *const known[] = {"ring", "tree", NULL}; /* NCCL stops at others */
	const char *algorithm = one_algorithm(p);

	(void)t;
	if (!algorithm)
		return gf_error_set(err, 1,
				    "--emit nccl-env: the plan's messages have several algorithms, "
				    "and NCCL takes one for all (--algorithms): change nothing");
	if (gf_names_index(known, algorithm) < 0)
		return gf_error_set(err, 1,
				    "--emit nccl-env: the plan's messages go by %s, which NCCL "
				    "cannot be told: change nothing",
				    algorithm);
	gf_emit_head(p, "environment for NCCL", out);
	gf_text_addf(out, "export NCCL_ALGO=allreduce:%s\n", algorithm);
	if (p->lanes > 1)
		gf_text_addf(out,
			     "# %d messages at once: one communicator each, launched in one order "
			     "on every\n"
			     "# rank, none filling the GPU.\n"
			     "export NCCL_LAUNCH_ORDER_IMPLICIT=1\n"
			     "export NCCL_MAX_CTAS=%d\n",
			     p->lanes, 64 / p->lanes > 1 ? 64 / p->lanes : 1);
	return 0;
}

/* MANUAL
 * environment variables of NCCL, for a shell.
 * The plan's messages must have one algorithm, a ring or a tree, and take no longer by it than by
 * the algorithm
 * .Cm library
 * of the profile. */
const struct gf_emitter gf_emitter_nccl_env = {
	.name = "nccl-env",
	.description = "environment variables of NCCL, shell",
	.place = 30,
	.version = "NCCL 2.28.9",
	.takes = GF_EMIT_ALGORITHM,
	.program = "NCCL",
	.emit = emit_nccl,
};
