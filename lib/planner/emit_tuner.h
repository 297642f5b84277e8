/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_EMIT_TUNER_H
#define GF_PLANNER_EMIT_TUNER_H

#include "planner/emit.h"

/* What tables for NCCL and its kin share. */

/* The first lines; `use`: how the table is put to use. */
void gf_emit_tuner_head(const struct gf_picks *picks, const char *use,
			struct gf_text *out);
/* The rows of NVIDIA's example plugin, which RCCL's own tuner also reads:
 * collective, bytes from and to, algorithm, protocol, channels (-1: the
 * default), hosts and ranks. Sizes that are told nothing have none. */
void gf_emit_tuner_rows(const struct gf_picks *picks, struct gf_text *out);

#endif
