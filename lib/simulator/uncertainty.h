/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_UNCERTAINTY_H
#define GF_SIMULATOR_UNCERTAINTY_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "documents/plan.h"
#include "simulator/predict.h"
#include "documents/profile.h"

/*
 * How far a prediction may be off, by what its measurements left open.
 *
 * The doubt of a fit is a share d, the hypotenuse of two others. One is how far the lines are from
 * the medians (residual_rms). The other is how far repeats scatter: half of the interquartile range
 * by the time, in the median of the points. It is GF_UNCERTAINTY_MOST at most. Every cost of that
 * entry lies between its value / (1 + d) and its value * (1 + d), and so do gamma_n - 1; sizes that
 * the lines miss by more, and sizes beyond those that were measured, have wider intervals
 * (simulator/uncertainty.h). The doubt of compute is half of the model's spread_s by the times of
 * its passes.
 *
 * All-reduces that are carried over to other ranks by closed forms are in doubt by a factor of 1 +
 * GF_UNCERTAINTY_CARRIED for every doubling, an assumption.
 *
 * A plan is predicted with all costs at their low ends, and with all at their high ends: an
 * interval, not a distribution.
 */
#define GF_UNCERTAINTY_MOST    1.0
#define GF_UNCERTAINTY_CARRIED 0.1

/* The share by which two medians of one thing differ where nothing has changed, at least. */
#define GF_UNCERTAINTY_TIMES 0.03

/*
 * Another run differs from the profile's by a share r besides: what parts of the profile that were
 * measured at several times say (drift), of compute and messages by their shares of the iteration.
 * It is GF_UNCERTAINTY_RUNS at least, an assumption: repeats of one minute on a quiet machine say
 * nothing of the next. With 0.03, intervals held 24 of 32 runs on two quiet hosts (docs/lab.md).
 * Scatter within a profile and differences between runs are independent, so an end of the interval
 * is off by the hypotenuse of both shares. No cost is moved by r: plans are not chosen by it.
 */
#define GF_UNCERTAINTY_RUNS 0.06

/* May there be any in these measurements, used on so many ranks? net may be NULL. */
bool gf_uncertainty_recorded(const struct gf_model_profile *m, const struct gf_network *net,
			     int ranks);
/* Of the surest of its entries: no plan's messages are known better. */
double gf_uncertainty_least(const struct gf_network *net);

/* Puts all of these costs and times at one end; net may be NULL. */
void gf_uncertainty_move(struct gf_model_profile *m, struct gf_network *net, int ranks, bool high);
/* Widens the interval of p's iteration, which has low_s and high_s by its costs, by the share r. */
void gf_uncertainty_widen(const struct gf_plan *p, double compute_s, double iteration_s,
			  double *low_s, double *high_s);

/* Sets predicted->iteration_low_s and iteration_high_s; both 0 if there is no doubt. p has a
 * prediction. Replays are kept in `derived`; NULL: for this prediction alone. */
int gf_uncertainty_predict(struct gf_plan *p, struct gf_derived *derived, struct gf_error *err);

/* What of the messages of one plan or more was not measured as it is. */
struct gf_beyond {
	double from_bytes, to_bytes;    /* measured of the first to be beyond */
	double least_bytes, most_bytes; /* of messages beyond; or 0 */
	int measured_ranks, ranks;      /* carried over, to so many; or 0 */
	bool halved;  /* a half of a split message is taken for half of the all-reduce */
	bool derived; /* by a data sheet, on a fabric that is mixed (prices/price.h) */
};
void gf_beyond_add(struct gf_beyond *b, const struct gf_plan *p, const struct gf_fabric *f,
		   const struct gf_traffic *t);
void gf_beyond_add_plan(struct gf_beyond *b, const struct gf_plan *p);
/* Is its time one that cannot be compared with those of measured messages? */
bool gf_plan_is_derived(const struct gf_plan *p);
/* A line each for people; nothing of what was measured. */
void gf_beyond_text(const struct gf_beyond *b, struct gf_text *out);

/* These lines, and one of detail (cli/command.h); nothing without doubt. */
void gf_uncertainty_text(const struct gf_plan *p, struct gf_text *out);

/*
 * The lines of a cost at one end of its doubt (simulator/uncertainty.h). At either end costs do not
 * fall as messages grow.
 *
 * Between the sizes that were measured, the end is 1 + d times the lines, or one by that; where a
 * measured time is farther from them, it is as far as that from the sizes before to the sizes
 * after.
 *
 * A smaller message costs no more than the smallest that was measured. It costs no less than lies
 * between that and the least startup. A larger one costs no more per byte than the largest that was
 * measured, and no less than that with the least slope. Least is two standard errors below a line
 * through the first and the last size, of times that are off by d, or by GF_UNCERTAINTY_TIMES if
 * that is more.
 */

/* The end of a fit has at most so many lines, which a document holds, too. */
struct gf_uncertainty_most {
	size_t parts; /* into which sizes are taken together; >= 1 */
	size_t lines; /* at least as many as the fit has */
};

/* Puts a fit's lines at that end; its sizes rise. All lines have one factor where those that are
 * allowed leave no room for parts. Without points nothing changes. */
void gf_uncertainty_lines(const struct gf_fit *fit, struct gf_cost_line *first,
			  struct gf_cost_line **larger, size_t *nlarger,
			  const struct gf_uncertainty_most *most, bool high);

#endif
