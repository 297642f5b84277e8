/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_PERIOD_TIME_H
#define GF_SIMULATOR_PERIOD_TIME_H

#include "simulator/predict.h"

/*
 * The time of a period (documents/periods/period.h): H steps of a group's ranks, and
 *what of the outer exchange they do not hide.
 *
 * A step of a group is the step model's, on the levels below the group. Where
 * there are levels, lines that were measured on other ranks do not count: the
 * slow link between groups is in them.
 * A fragment's messages go one after the other, or on the period's lanes, with
 * no compute beside them: X seconds. Its outer step passes over memory: 3 words
 * of an element are read or written to make d, 5 with outer momentum and 3
 * without it for v and w, and 3 with a mix and 2 without it for x. The model's
 * update_s is taken for 5 words, those of SGD with momentum: W seconds.
 * Without a delay, X + W are exposed. With a delay of tau steps the fragment is
 * in flight beside steps, each of which takes E longer, as backward is slower
 * beside messages:
 *	exposed = E min(tau, X / (S + E)) + max(0, X - tau (S + E)) + W
 * where S is a step of a group. The contention of outer with inner messages is
 * left out, and so is the slowdown of the outer ones beside backward.
 *
 * Worked example: two groups of one rank, a message of 16 bytes by a ring over
 * 1 s and 16 B/s: X = 2 (1 + 8/16) = 3. Forward 1, backward 2, update 0.5:
 * S = 3.5. With H = 10, local-sgd: W = 8/5 0.5 = 0.8, exposed 3.8, a period of
 * 38.8, a step of 3.88. Streaming with tau = 1, a mix, outer momentum, and an
 * overlap_slowdown of 1.5: W = 11/5 0.5 = 1.1, E = 1, exposed
 * 3 / 4.5 + 1.1 = 1.7667, a step of 3.6767.
 */

/* What the outer exchange of one fragment takes. */
struct gf_outer_time {
	double exchange_s, work_s;
	double slowdown; /* of backward beside it */
};

struct gf_period_time {
	double inner_s; /* a step of a group */
	/* of all fragments; of the second, what no step hides */
	double exchange_s, exposed_s;
	double period_s; /* H steps with the outer exchange */
};

/* What the messages of a group's ranks go over. lines: room for a network; the result borrows it,
 * and from f. */
struct gf_fabric gf_sim_group_fabric(const struct gf_fabric *f, int group_ranks,
				     struct gf_network *lines);

/* A plan with a period becomes gf_period_outer's, with no compute beside its messages; another
 * stays as it is. */
void gf_sim_keep_outer(struct gf_plan *p);
/* Of every fragment; out: room for as many. outer: gf_period_outer's, or like it on other ranks; t:
 * its messages, priced. */
void gf_sim_outer_times(const struct gf_plan *outer, const struct gf_period *period,
			const struct gf_traffic *t, struct gf_outer_time *out);
/* The same, priced on f. */
int gf_sim_outer(const struct gf_plan *outer, const struct gf_period *period,
		 const struct gf_fabric *f, struct gf_outer_time *out, struct gf_error *err);
/* How many times as long a step of a group is if outer messages are in flight all along. */
double gf_sim_beside_factor(const struct gf_model_profile *model, const struct gf_sim_result *inner,
			    double slowdown);
/* inner: a step of a group, whose model it is. */
void gf_sim_period(const struct gf_period *period, const struct gf_model_profile *model,
		   const struct gf_sim_result *inner, const struct gf_outer_time *fragments,
		   struct gf_period_time *out);
/* gf_period_inner with the costs of the group, predicted; the caller releases it. */
int gf_sim_group_plan(const struct gf_plan *p, struct gf_plan *inner, struct gf_error *err);
/* gf_predict_plan of a plan with a period, and its parts. */
int gf_predict_period(const struct gf_plan *p, const struct gf_fabric *f, struct gf_sim_result *out,
		      struct gf_period_time *time, struct gf_error *err);

/* Bytes that the outer exchange of all fragments sends out of the group of rank 0, as its schedules
 * say: of all its ranks, and of the one that sends most. Of an algorithm without steps, or with
 * more than are counted in reasonable time, what no algorithm is below: 2 (n - 1) / n of the bytes,
 * for n groups. */
struct gf_border {
	double group_bytes, rank_bytes;
	double plain_group_bytes; /* of f32 */
};
void gf_sim_border(const struct gf_plan *p, struct gf_border *out);

/* Memory of a rank besides: w, a buffer for d, and v where there is outer momentum; 4 bytes of each
 * for every element. */
double gf_sim_period_bytes(const struct gf_plan *p);

#endif
