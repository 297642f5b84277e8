/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_RUN_LOG_H
#define GF_TRAINER_RUN_LOG_H

#include <stdio.h>

#include "base/error.h"
#include "trainer/train.h"
#include "transport/comm.h"
#include "doc/plan.h"
#include "runtime/traces/rank_traces.h"
#include "trainer/event_ring.h"
#include "trainer/speed.h"

/*
 * The log: JSON Lines, one object per row of gf_train_row, complete after every row, so that it can
 * be followed while the run goes on. Fields that do not change during a run are in every row, too,
 * so that rows of several runs can be put together. A file has one writer: it is locked while the
 * log is open.
 */
struct gf_train_log {
	FILE *stream;     /* NULL: closed */
	size_t every;     /* of the rows of steps; 0: none */
	size_t row_bytes; /* the last one of a step; 0: none yet */
	bool told;        /* what it will grow to */
	char *path;
	const struct gf_train_config *config; /* borrowed */
	const char *method;
	char *algorithms, *codecs;             /* of its messages */
	char *outer_algorithms, *outer_codecs; /* of a period's; or NULL */
};

/* config must be complete. A resumed run appends to the file that is there. Of the rows of steps,
 * those of every `every`-th step are kept. -EBUSY: another process writes to the file. */
int gf_train_log_open(struct gf_train_log *log, const char *path, size_t every,
		      const struct gf_train_config *config, struct gf_error *err);
int gf_train_log_row(struct gf_train_log *log, const struct gf_train_row *row,
		     struct gf_error *err);
/* What the file will grow to in so many steps, in words, if that is much; else NULL. Known after
 * the first row of a step, and told once. The caller frees.
 */
char *gf_train_log_growth(struct gf_train_log *log, size_t steps);
int gf_train_log_close(struct gf_train_log *log, struct gf_error *err);

/*
 * The recorded steps of all ranks as one Chrome trace (doc/trace.h): process r is rank r, its
 * thread 0 the computing, threads 1.. the lanes; process `ranks` is the plan's prediction. A pass
 * without exchange, as it is in the median, is a slice of category alone. Each predicted step
 * begins where rank 0's step began. If the prediction is longer than the measured step, the next
 * predicted step begins after it instead. Times are rank 0's clock, from offset->origin_s.
 *
 * Collective, without an engine. *text is the file on rank 0 (the caller frees), NULL elsewhere.
 * Long runs show their last steps: as many as keep the file small enough for a viewer.
 */
int gf_train_trace(struct gf_comm *comm, const struct gf_plan *plan,
		   const struct gf_prediction *prediction, const struct gf_timeline *timeline,
		   const struct gf_speed *speed, const struct gf_clock_offset *offset, char **text,
		   struct gf_error *err);

#endif
