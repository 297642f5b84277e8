/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/documents/periods: the pure half of periods: keys, equations, and what groups of ranks
 * exchange every H steps. */
#ifndef GF_PERIODS_PERIOD_H
#define GF_PERIODS_PERIOD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "json/keys.h"

struct gf_message;
struct gf_plan;

/*
 * How often groups of ranks exchange: the pure half of periods, and what a plan says about it
 * (gf-methods(7)). The ranks of a group exchange gradients in every step, by the plan's own
 * messages. Groups exchange how far their parameters have come every H steps, by the period's
 * messages. Each period is a table of keys, defaults and an entry in periods.c.
 *
 * All of them are cases of one rule. Every rank keeps the parameters w of the last outer exchange,
 * which are the same on all ranks, and a velocity v that begins at 0. An outer exchange of a
 * fragment, a part of the tensors, is
 *	d = mean over ranks of (w - x)		x: the rank's parameters
 *	v = m v + d
 *	w = w - r (d + m v)			Nesterov's momentum
 * and `delay` steps after d was taken, x becomes
 *	x = a x + (1 - a) w
 * with the outer rate r, the outer momentum m and the mix a. A fragment's exchange begins every H /
 * fragments steps, the fragments in turn.
 * With r = 1, m = 0, a = 0 it is the mean of the parameters: local SGD.
 *
 * Worked example: one parameter, two ranks, w = 1, r = 0.7, m = 0.9, v = 0. After H steps the ranks
 * have x = 0.8 and 0.6. Then d = 0.3, v = 0.3, w = 1 - 0.7 (0.3 + 0.27) = 0.601, and x = 0.601 on
 * both ranks.
 */
enum {
	/* all ranks exchange in every step: there are no groups */
	GF_PERIOD_EVERY = 1 << 0,
	/* ranks that only serve can take part */
	GF_PERIOD_SERVERS = 1 << 1,
};

struct gf_period_plan {
	GF_ENTRY; /* the record's struct is gf_period */
};

/* A zeroed one exchanges in every step. */
struct gf_period {
	const struct gf_period_plan *plan; /* NULL: every */
	int group_ranks;    /* ranks r to r + group_ranks - 1 exchange in every step, for r a
			     * multiple of it */
	size_t steps;       /* H */
	size_t begin_steps; /* the first so many have an exchange in each */
	size_t fragments;   /* of the messages, as gf_range_part cuts them */
	size_t delay;       /* steps */
	double mix, outer_rate, outer_momentum;
	int lanes;
	struct gf_message *messages; /* of all ranks; cover the tensors */
	size_t nmessages;
	/* Predicted: H steps with the outer exchange, one exchange of all fragments by itself, and
	 * what of it no step hides. 0: unknown. */
	double period_s, exchange_s, exposed_s;
	char *extra;
};

/* In the order of gf_period_plans_names; NULL-terminated. */
extern const struct gf_period_plan *const gf_period_plans[];
extern const char *const gf_period_plans_names[];
/* The entry, never NULL. */
const struct gf_period_plan *gf_period_plan(const struct gf_period *p);
const char *gf_period_name(const struct gf_period *p);
bool gf_period_has(const struct gf_period *p, unsigned traits);
/* Its name, keys, and messages with their codecs; the caller frees. For example "diloco group_ranks
 * 2 steps 100 ... 0-3 f32 4-9 q8". */
char *gf_period_text(const struct gf_period *p);

/* Does step `step` (from 1) begin an outer exchange, after its update? Then *fragment is the
 * one. */
bool gf_period_begins(const struct gf_period *p, size_t step, size_t *fragment);
/* Does step `step` end an outer exchange, after its update? With a delay, an exchange begins in one
 * step and ends in a later one. */
bool gf_period_ends(const struct gf_period *p, size_t step, size_t *fragment);
/* Do the fragments divide H, with more steps between two than the delay? 0 or -EINVAL. */
int gf_period_check_steps(const struct gf_period *p, struct gf_error *err);
/* The period's messages that carry a fragment. */
void gf_period_messages(const struct gf_period *p, size_t fragment, size_t *first, size_t *count);

/* The exchange of a group in every step, and that between groups, each as a plan without a period;
 * the caller releases them. Neither has a prediction. The plan has a period that is not `every`. */
void gf_period_inner(const struct gf_plan *p, struct gf_plan *inner);
void gf_period_outer(const struct gf_plan *p, struct gf_plan *outer);
/* A plan with a period becomes that between groups; another stays as it is. */
void gf_period_keep_outer(struct gf_plan *p);
/* Ranks that exchange in every step: a group's, or all that compute. */
int gf_plan_group_ranks(const struct gf_plan *p);

#endif
