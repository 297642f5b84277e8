/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DeepSpeed's configuration, for ZeRO's stages 1 and 2, which reduce a bucket
 * before the next gradient would make it larger than reduce_bucket_size
 * elements (runtime/zero/config.py). overlap_comm is false by default, and a
 * step then waits for each reduction. allgather_bucket_size is left alone: the
 * parameters are gathered after backward, beside nothing.
 */
#include "planner/emit.h"

#include "planner/policies.h"

static void emit(size_t cap, struct gf_text *out)
{
	gf_text_addf(out,
		     "{\n"
		     "  \"zero_optimization\": {\n"
		     "    \"reduce_bucket_size\": %zu,\n"
		     "    \"overlap_comm\": true\n"
		     "  }\n"
		     "}\n",
		     cap);
}

const struct gf_emitter gf_emitter_deepspeed = {
	.name = "deepspeed",
	.description = "DeepSpeed's ZeRO 1 and 2, a part of its JSON",
	.version = "DeepSpeed 1b88ac36",
	.takes = GF_EMIT_CAP,
	.program = "DeepSpeed",
	.as_it_is = &gf_policy_at_most,
	.default_cap = 500000000,
	.counts_elements = true,
	.late = true,
	.emit_cap = emit,
};
