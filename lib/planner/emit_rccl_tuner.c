/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of RCCL's built-in tuner (src/plugin/tuner/csv_tuner.cc), in which
 * sizes without a row stay as they are. */
#include "planner/emit_tuner.h"

static int emit(const struct gf_picks *picks, struct gf_text *out,
		struct gf_error *err)
{
	(void)err;
	gf_emit_tuner_head(picks, "NCCL_TUNER_CONFIG_FILE=FILE", out);
	gf_emit_tuner_rows(picks, out);
	return 0;
}

const struct gf_emitter gf_emitter_rccl_tuner = {
	.name = "rccl-tuner",
	.description = "RCCL by its built-in tuner, a CSV",
	.version = "rocm-systems 22af4d53",
	.takes = GF_EMIT_SIZES,
	.program = "RCCL",
	.wish = {.library = "RCCL"},
	.emit_picks = emit,
};
