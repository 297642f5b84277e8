/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Megatron-LM's DistributedDataParallel, as arguments of a script. A bucket is
 * full once it has ddp-bucket-size elements or more. Without
 * overlap-grad-reduce there is one bucket, after backward
 * (core/distributed/distributed_data_parallel.py).
 */
#include "planner/emit.h"

#include "planner/policies.h"

static void emit(size_t cap, struct gf_text *out)
{
	gf_text_addf(out, "--overlap-grad-reduce --ddp-bucket-size %zu\n", cap);
}

const struct gf_emitter gf_emitter_megatron = {
	.name = "megatron",
	.description = "Megatron-LM, arguments",
	.version = "Megatron-LM 00119989",
	.takes = GF_EMIT_CAP,
	.program = "Megatron-LM",
	.as_it_is = &gf_policy_ddp,
	.counts_elements = true,
	.late = true,
	.emit_cap = emit,
};
