/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_STAGES_H
#define GF_MEASURE_STAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/profile.h"
#include "doc/topology.h"

/*
 * The decompositions that are measured (Cho et al. 2019, BlueConnect: an
 * implementation per fabric). The base has a stage per level. Beside it, one
 * stage at a time goes by each other algorithm that can carry it out. A cost is
 * a sum over stages (Eq. 7), so the best of each stage are the best together,
 * and are measured, too: once for short messages, once for long ones. Other
 * mixtures are not tried: of four algorithms in three stages there are 64.
 */

/* How `algorithm` is decomposed on such levels, innermost first, between GPUs
 * by NCCL; 0 stages if it takes no levels, or on one level. The caller frees
 * with gf_stages_free. */
size_t gf_measure_stages(const char *algorithm, const struct gf_level *levels,
			 size_t nlevels, bool gpus, struct gf_stage **out);

/* Calls each for the base's stages with one stage by another algorithm; stops
 * at the first failure, and returns it. The stages are the caller's to copy. */
typedef int gf_measure_stages_fn(void *ctx, const struct gf_stage *stages,
				 size_t nstages, struct gf_error *err);
int gf_measure_stages_vary(const struct gf_stage *base, size_t nstages,
			   bool gpus, gf_measure_stages_fn *each, void *ctx,
			   struct gf_error *err);

/* The best algorithm of each stage for a message of that many bytes, of the
 * entries from `base` on that differ from it in one stage. 0 if its
 * algorithm has an entry of these stages already. Else the caller frees. */
size_t gf_measure_stages_together(const struct gf_network *net, size_t base,
				  double bytes, struct gf_stage **out);

#endif
