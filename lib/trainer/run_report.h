/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAINER_RUN_REPORT_H
#define GF_TRAINER_RUN_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "doc/plan.h"
#include "trainer/event_ring.h"
#include "trainer/train.h"

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

#endif
