/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_COMPARE_H
#define GF_PLANNER_COMPARE_H

#include "cli/plot.h"
#include "documents/plan_brief.h"
#include "planner/make.h"
#include "simulator/uncertainty.h"

/*
 * Plans of one problem side by side. One axis is varied, or several, each by itself, or two as a
 * grid, each value of one with each of the other; the other axes stay as the request has them.
 */
enum gf_compare_axis {
	GF_COMPARE_POLICIES,
	GF_COMPARE_SYSTEMS,
	GF_COMPARE_CODECS,
	GF_COMPARE_SELECTIONS,
	GF_COMPARE_ALGORITHMS,
	GF_COMPARE_LANES,
	GF_COMPARE_STALENESS,
	GF_COMPARE_THRESHOLD,
	GF_COMPARE_PERIODS,
	GF_COMPARE_DENSITIES,
	GF_COMPARE_SHARDS,
	GF_COMPARE_UNITS,
	GF_COMPARE_AXES,
};
extern const char *const gf_compare_names[]; /* NULL-terminated */

struct gf_compare_over {
	unsigned axes; /* a bit for each */
	/* There are two of them: one down, one across. */
	bool grid;
	enum gf_compare_axis down, across;
	/* Of an axis, the values to compare, NULL-terminated; owned, with texts that are static or
	 * in `text`; NULL: the usual ones. Described codecs stand beside them. */
	const char **values[GF_COMPARE_AXES];
	char *text; /* owned; or NULL */
	bool pays;  /* find where each row begins to pay, too */
	bool twice; /* rows that run alike stay */
	/* (optional) called after each row */
	void (*progress)(void *ctx, double done, const char *detail);
	void *progress_ctx;
};

#define GF_COMPARE_RANKS_MOST 1024

struct gf_compared {
	enum gf_compare_axis axis;
	/* of what varies, and of a grid's second; static */
	const char *name, *across;
	/* The policy leaves the next forward alone: the axis of policies. */
	bool automatic;
	struct gf_plan_brief plan;
	struct gf_prediction times; /* its messages are those of `whole` */
	unsigned unsure;            /* of enum gf_unsure; such rows are last */
	struct gf_plan *whole;      /* owned */
	/* Where it is faster than dense f32 gradients by GF_GAIN_LEAST (planner/summary.h): up to
	 * this bandwidth of the outermost level (0: none, INFINITY: any), and from so many ranks to
	 * so many, of powers of two up to GF_COMPARE_RANKS_MOST (0: on none). */
	double pays_below_bytes_per_s;
	int pays_from_ranks, pays_to_ranks;
	/* That leave a group in a step, where periods are compared; 0: not known. */
	double border_bytes;
};

struct gf_comparison {
	struct gf_compared *rows; /* best first; owned */
	size_t nrows;
	struct gf_compare_over over;
	size_t tried, most; /* rows so far, of at most so many */
	size_t left_out;    /* what does not fit, as notes say */
	struct gf_beyond beyond;
	double now_s; /* an iteration of what the job has now; 0: not known */
	bool pays;    /* what rows say of it counts */
	bool given;   /* that is a plan which was given, not DDP's default */
};

#define GF_COMPARE_COUNT_MOST (1 << 20)

/* For the option that names axes: "lanes,codecs" each by itself, "lanes:codecs" as a grid, each
 * with values, "threshold=5M,25M,lanes"; to: struct gf_compare_over, which is released. */
int gf_compare_store(const char *arg, void *to, struct gf_error *err);
void gf_compare_over_release(struct gf_compare_over *over);
/* The option that chooses on that axis, which a comparison over it excludes. */
const char *gf_compare_option(enum gf_compare_axis axis);

/* The i-th of what an axis has; NULL: none. */
const char *gf_compare_value(const struct gf_compare_over *over, enum gf_compare_axis axis,
			     size_t i);

/* Needs a model and ranks (-EINVAL). now: the plan that the job has; NULL: DDP's default. */
int gf_request_compare(const struct gf_request *r, const struct gf_compare_over *over,
		       const struct gf_plan *now, struct gf_comparison *c, struct gf_text *notes,
		       struct gf_error *err);
void gf_comparison_release(struct gf_comparison *c);

/* A line of JSON for each row; or for people, in a window of so many columns (cli/table.h), of a
 * grid the iterations. */
void gf_comparison_text(const struct gf_comparison *c, bool json, size_t window,
			struct gf_text *out);
/* The answer in one line: what the best row gains over what the job has now. A line before it says
 * if auto leaves that row out. */
void gf_comparison_answer(const struct gf_comparison *c, struct gf_text *out);
/* Bars: compute, and on it the exposed communication; a line across each bar is its lower bound. */
void gf_comparison_plot(const struct gf_request *r, const struct gf_comparison *c,
			struct gf_plot *plot);

/* For compare*.c alone: finds where rows pay, by comparing anew at other bandwidths and on other
 * ranks. */
void gf_comparison_find_pays(const struct gf_request *r, struct gf_comparison *c);
/* The request with values of axes in it. */
struct gf_compare_variant {
	struct gf_request request;
	struct gf_axes axes;
	const char *codecs[2];
	char keys[48]; /* of the selection */
};
/* Puts that value of the axis in. */
void gf_compare_ask(struct gf_compare_variant *v, enum gf_compare_axis axis, const char *value);

#endif
