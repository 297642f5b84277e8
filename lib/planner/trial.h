/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_TRIAL_H
#define GF_PLANNER_TRIAL_H

#include "planner/workbench.h"

/*
 * Changes to a draft, tried one at a time (trial.c), for the local search of
 * polish.c. The states between the messages of the draft are kept, so that a
 * trial starts at its window; it ends early where it has no hope: the bound on
 * the rest is not below the best, or it is nowhere ahead of the draft itself.
 */
#define GF_WINDOW 3 /* messages that are replaced at once */

struct gf_trials {
	const struct gf_workbench *w;
	struct gf_rest rest;
	struct gf_draft *d;
	size_t lanes;
	struct gf_sim_state *states;   /* before each message, and at the end */
	struct gf_sim_flight *flights; /* of each state */
	struct gf_sim_flight *trial;
	double *priced_s; /* after each message, by the bound's prices */
	bool *settled;    /* per message: windows from there on were in vain */
	double below_s;   /* the iteration of a trial that is kept */
	size_t patience; /* messages after a window, until which it is behind */
	size_t from;     /* the first message that was changed */
	double left;     /* of the budget */
};

/* Messages i..i+old-1 of the draft replaced by others. */
struct gf_window {
	size_t i, old, n;
	struct gf_send sends[GF_WINDOW];
};

/* A predicted draft, which stays the caller's; budget in simulated messages. */
void gf_trials_init(struct gf_trials *b, const struct gf_workbench *w,
		    double budget, struct gf_draft *d);
void gf_trials_release(struct gf_trials *b);
/* Keeps the window if that is better. */
bool gf_trials_judge(struct gf_trials *b, const struct gf_window *v);
/* Puts the window into the draft. */
void gf_trials_replace(struct gf_trials *b, const struct gf_window *v);
/* Finds the states anew, from message i on. */
void gf_trials_follow(struct gf_trials *b, size_t i);

#endif
