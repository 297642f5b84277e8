/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIM_DOUBT_H
#define GF_SIM_DOUBT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "doc/plan.h"

/*
 * How far a prediction may be off, by what its measurements left open.
 *
 * The doubt of a fit is a share d, the hypotenuse of two others. One is how far
 * the lines are from the medians (residual_rms). The other is how far repeats
 * scatter: half of the interquartile range by the time, in the median of the
 * points. It is GF_DOUBT_MOST at most. Every cost of that entry lies between
 * its value / (1 + d) and its value * (1 + d), and so do gamma_n - 1. The doubt
 * of compute is half of the model's spread_s by the times of its passes.
 *
 * A plan is predicted with all costs at their low ends, and with all at their
 * high ends: an interval, not a distribution.
 */
#define GF_DOUBT_MOST 1.0

/*
 * Another run differs from the profile's by a share r besides: what parts of
 * the profile that were measured at several times say (drift), of compute and
 * messages by their shares of the iteration. It is GF_DOUBT_RUNS at least, an
 * assumption: repeats of one minute on a quiet machine say nothing of the next.
 * It moves the ends of the interval, to 1 / (1 + r) and 1 + r, but no cost:
 * plans are not chosen by it.
 */
#define GF_DOUBT_RUNS 0.03

struct gf_doubt {
	double network; /* the largest of the entries that count */
	double compute;
}; /* 0: nothing is recorded */

/* Is there any in these measurements? net may be NULL. */
bool gf_doubt_recorded(const struct gf_model_profile *m,
		       const struct gf_network *net);
/* Of the surest of its entries: no plan's messages are known better. */
double gf_doubt_least(const struct gf_network *net);
struct gf_doubt gf_doubt_of(const struct gf_plan *p);

/* Puts all of these costs and times at one end; net may be NULL. */
void gf_doubt_move(struct gf_model_profile *m, struct gf_network *net,
		   bool high);
/* Widens the interval of p's iteration by the share r. */
void gf_doubt_widen(const struct gf_plan *p, double compute_s,
		    double iteration_s, double *low_s, double *high_s);

/* Sets predicted->iteration_low_s and iteration_high_s; both 0 if there is no
 * doubt. p has a prediction. */
int gf_doubt_predict(struct gf_plan *p, struct gf_error *err);

/* One line of detail for people (cli/list.h); nothing without doubt. */
void gf_doubt_text(const struct gf_plan *p, struct gf_text *out);

#endif
