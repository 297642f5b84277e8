/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XLA's flags for GPUs, as JAX reads them. XLA combines all-reduces up to a
 * threshold of bytes, 30 MiB and 7 bytes by default
 * (xla/service/collective_utils.h). They run beside backward only with the
 * latency hiding scheduler, which the default here is taken to have.
 */
#include "planner/emit.h"

#include "planner/policies.h"

static void emit(size_t cap, struct gf_text *out)
{
	gf_text_addf(out,
		     "export XLA_FLAGS=\"${XLA_FLAGS:-} "
		     "--xla_gpu_enable_latency_hiding_scheduler=true "
		     "--xla_gpu_all_reduce_combine_threshold_bytes=%zu\"\n",
		     cap);
}

const struct gf_emitter gf_emitter_xla = {
	.name = "xla",
	.description = "XLA on GPUs, shell",
	.version = "XLA's collective_utils.h of 2026",
	.takes = GF_EMIT_CAP,
	.program = "XLA",
	.as_it_is = &gf_policy_at_most,
	.default_cap = 30 * 1024 * 1024 + 7,
	.emit_cap = emit,
};
