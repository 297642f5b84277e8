/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_RUN_REPORT_H
#define GF_TRAINER_RUN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "documents/plan.h"
#include "trainer/event_ring.h"
#include "trainer/train.h"
#include "base/error.h"
#include "transport/comm.h"
#include "runtime/traces/rank_traces.h"
#include "trainer/speed.h"

/*
 * The plan's predictions beside this rank's measurements: medians over the recorded steps after the
 * warm-up, in seconds from the start of forward.
 */
struct gf_report_message {
	struct gf_predicted_message predicted, measured;
};

struct gf_report {
	bool has_prediction;
	size_t nsteps; /* measured */
	bool is_mean;  /* iteration_s: with a period; else a median */
	double predicted_iteration_s, iteration_s;
	double predicted_low_s, predicted_high_s;       /* both 0: unknown */
	double forward_s, backward_s, wait_s, update_s; /* measured parts */
	double handling_s;                              /* of wait_s: selection and codecs */
	double load_s;                      /* before the iteration: waiting for the loader */
	struct gf_report_message *messages; /* the plan's nmessages */
	size_t nmessages;
};

/* prediction: the plan's own, or another for the same messages; NULL: none.
 * A timeline without steps gives nsteps 0. */
void gf_report_make(const struct gf_plan *plan, const struct gf_prediction *prediction,
		    const struct gf_timeline *timeline, struct gf_report *r);
void gf_report_release(struct gf_report *r);

/* For people: a table of the messages, a line or two below it, and the test accuracy in the last;
 * the caller frees. */
char *gf_report_text(const struct gf_plan *plan, const struct gf_prediction *prediction,
		     const struct gf_train_result *result);

/* Lines about what a run is to do, for people; a line that begins with a tab is a detail. A replay
 * trains nothing. The caller frees. */
char *gf_report_start(const struct gf_train_config *config, bool replay);

/* One line about an epoch, for people; the caller frees. */
char *gf_report_epoch(const struct gf_train_row *train, const struct gf_train_row *test,
		      size_t epochs);

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
 * The recorded steps of all ranks as one Chrome trace (documents/trace.h): process r is rank r, its
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
