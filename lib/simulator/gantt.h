/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_GANTT_H
#define GF_SIMULATOR_GANTT_H

#include <stdbool.h>
#include <stddef.h>

#include "simulator/period_time.h"
#include "simulator/pipeline.h"

/*
 * What runs when, for pictures: compute in row 0, messages in a row for each lane that is used.
 * Synchronous gradients make one step, with shards the works of that step; else it begins with
 * forward and, of split messages, the all-gathers of the step before. Stale ones make two steps of
 * the long run, each of which begins with the update, and between them they show what the messages
 * of earlier steps do. A period has steps of a group in row 0 and outer exchanges in row 1.
 */
enum gf_bar_kind {
	GF_BAR_FORWARD,
	GF_BAR_BACKWARD,
	GF_BAR_WAITING,
	GF_BAR_UPDATE,
	GF_BAR_MESSAGE,
	GF_BAR_SIMULTANEOUS,
	GF_BAR_REDUCE_SCATTER,
	GF_BAR_ALL_GATHER,
	GF_BAR_STEPS,
	GF_BAR_EXCHANGE,
};
extern const char *const gf_bar_names[]; /* NULL-terminated */

struct gf_bar {
	enum gf_bar_kind kind;
	size_t row;
	int step;              /* from 1; of stale messages, of earlier steps, below that */
	size_t message;        /* of the traffic; of exchanges, the fragment */
	size_t first, last;    /* its tensors; of GF_BAR_STEPS, these */
	bool own;              /* a sum of the selection's own, of no tensor */
	double bytes;          /* that it sends; of exchanges, all that it is of */
	double start_s, end_s; /* cut off at the timeline's beginning and end */
};

/* Zero: nothing yet. */
struct gf_gantt {
	struct gf_bar *bars; /* message by message, row by row */
	size_t nbars, capacity;
	size_t nlanes;
	double backward_end_s; /* of the first step */
	double step_end_s[2];
	int steps;
	/* Of a period, what is drawn (from 1; above its steps: of the next period), and when its
	 * last fragment is applied; else 0. */
	size_t first_step, last_step;
	double applied_s;
};

/* A period of more steps is drawn in part, and if that has more, a bar is of several. */
enum { GF_GANTT_STEPS = 40 };

/* The lowest lane that is free when each message starts, whose starts do not decrease. Returns how
 * many lanes that takes. */
size_t gf_lanes_assign(const struct gf_predicted_message *m, size_t count, size_t *lane);

/* A synchronous step; r->messages are the traffic's, gathers those of the step before. With shards
 * r->shards has all of it. */
void gf_gantt_step(struct gf_gantt *t, const struct gf_sim_input *in, const struct gf_sim_result *r,
		   const struct gf_sim_gather *gathers, size_t ngathers);
/* Two steps of a pipeline that has gone through some, as rank 0 sees them. factor: asked for each
 * step's factors per rank (gf_pipeline_step). */
void gf_gantt_pipeline(struct gf_gantt *t, struct gf_pipeline *p,
		       const double *(*factor)(void *ctx), void *ctx);
/* A period in the long run, as a group sees it whose step is `inner`: from its first step on, or
 * what is around its longest outer exchange. */
void gf_gantt_period(struct gf_gantt *t, const struct gf_period *period,
		     const struct gf_model_profile *model, const struct gf_sim_result *inner,
		     const struct gf_outer_time *fragments);
void gf_gantt_free(struct gf_gantt *t);

#endif
