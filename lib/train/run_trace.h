/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_RUN_TRACE_H
#define GF_TRAIN_RUN_TRACE_H

#include "base/error.h"
#include "comm/comm.h"
#include "doc/plan.h"
#include "trace/clocks.h"
#include "train/event_ring.h"
#include "train/speed.h"

/*
 * The recorded steps of all ranks as one Chrome trace (doc/trace.h): process r
 * is rank r, its thread 0 the computing, threads 1.. the lanes; process `ranks`
 * is the plan's prediction. A pass without exchange, as it is in the median, is
 * a slice of category alone. Each predicted step begins where rank 0's step
 * began. If the prediction is longer than the measured step, the next predicted
 * step begins after it instead. Times are rank 0's clock, from
 * offset->origin_s.
 *
 * Collective, without an engine. *text is the file on rank 0 (the caller
 * frees), NULL elsewhere. Long runs show their last steps: as many as keep the
 * file small enough for a viewer.
 */
int gf_train_trace(struct gf_comm *comm, const struct gf_plan *plan,
		   const struct gf_prediction *prediction,
		   const struct gf_timeline *timeline,
		   const struct gf_speed *speed,
		   const struct gf_clock_offset *offset, char **text,
		   struct gf_error *err);

#endif
