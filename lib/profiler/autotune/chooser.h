/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/profiler/autotune: which algorithm a message takes where the plan leaves it open, by a short
 * measurement. */
#ifndef GF_AUTOTUNE_CHOOSER_H
#define GF_AUTOTUNE_CHOOSER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "transport/comm.h"
#include "transport/message_element.h"
#include "documents/plan.h"
#include "transport/watch.h"
#include "profiler/autotune/ways.h"

/*
 * "auto": the algorithm for a message of a given size on these ranks. A rule decides, if one is
 * given and is not itself "auto"; else a short calibration does. The calibration runs every
 * candidate on such a message and takes the slowest rank's time. The lower quartiles decide
 * (profiler/autotune/chooser.h); a candidate further down the registry is preferred only if it is
 * faster by 3 %. A candidate that has clearly lost is not run any more. All ranks see the same
 * times, so all choose alike. A size is calibrated once.
 */
struct gf_chooser_config {
	struct gf_comm *comm; /* borrowed, as all of these */
	struct gf_watch *watch;
	const struct gf_plan *rule; /* or NULL */
	struct gf_element element;
	enum gf_coll_half half; /* of even parts in the order of ranks */
	int lanes;              /* so many of them at once */
	size_t segment_bytes;
	/* Leave out what the transport does itself: nobody promises the same bits of it, on every
	 * rank and in every run, and it has no steps that could be proved. */
	bool same_bits;
	bool reproducible; /* only what gf_algorithm_reproduces */
};

struct gf_chooser;

/* Collective. */
int gf_chooser_new(const struct gf_chooser_config *config, struct gf_chooser **c,
		   struct gf_error *err);
void gf_chooser_free(struct gf_chooser *c);

/* Collective. data: room for `lanes` such messages, what is in it is lost. -ENOTSUP: no algorithm
 * runs such a message here. */
int gf_chooser_pick(struct gf_chooser *c, size_t count_elems, void *data, struct gf_way *way,
		    struct gf_error *err);

/*
 * The fastest of several rivals, by times taken in turns on a machine that also does other things.
 * A run may be slower than it need be, but hardly faster. So a rival's time is its lower quartile.
 * A rival is out when its fastest run so far is slower than the best one's median by more than the
 * number of runs leaves to chance. Pure: the same times give the same answer on every rank.
 */
enum { GF_RIVAL_TIMES = 32 };

struct gf_rival {
	double times[GF_RIVAL_TIMES]; /* ascending */
	size_t n;
	bool out;
};

/* At most GF_RIVAL_TIMES. */
void gf_rival_add(struct gf_rival *r, double time_s);
/* Its lower quartile; n > 0. */
double gf_rival_time_s(const struct gf_rival *r);
/* Takes out the rivals that have lost; returns how many are left, at least one if one was in. All
 * rivals that are in have the same number of times. */
size_t gf_rivals_weed(struct gf_rival *rivals, size_t n);
/* Takes out the rivals with more than `times` times the best one's time; returns how many are
 * left. */
size_t gf_rivals_near(struct gf_rival *rivals, size_t n, double times);
/* The best of those that are in: one further on must be faster by 3 % to be preferred. n if none is
 * in. */
size_t gf_rivals_best(const struct gf_rival *rivals, size_t n);

#endif
