/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLOT_PLOT_H
#define GF_PLOT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"

/*
 * Pictures for slides and papers: self-contained SVG 1.1, dark on white, no
 * scripts, the same bytes for the same input. Colours are Okabe and Ito's
 * (2008), which colour-blind readers tell apart; series differ in marker and
 * dash as well. Every text is escaped.
 *
 * The three *_svg functions return 0 and a string the caller frees, or -EINVAL
 * with the place ("series 2, point 3: want a finite y, got nan"). A picture of
 * nothing is refused.
 */

/* How an axis prints its numbers. Values are always in the base unit. */
enum gf_quantity {
	GF_QUANTITY_NUMBER,
	GF_QUANTITY_SECONDS, /* s, ms, us, ns */
	GF_QUANTITY_BYTES,   /* B, KiB, MiB, ... */
	GF_QUANTITY_RATE,    /* B/s, MB/s, GB/s, ... */
	GF_QUANTITY_PERCENT, /* 0.5 prints as 50 % */
};

enum gf_scale { GF_SCALE_LINEAR, GF_SCALE_LOG2, GF_SCALE_LOG10 };

/* --- Gantt chart (gantt.c) ------------------------------------------------ */

enum gf_bar_kind {
	GF_BAR_FORWARD,
	GF_BAR_BACKWARD,
	GF_BAR_WAIT,
	GF_BAR_UPDATE,
	GF_BAR_NORMAL,
	GF_BAR_SIMULTANEOUS,
	GF_BAR_REDUCE_SCATTER,
	GF_BAR_ALL_GATHER,
	GF_BAR_OTHER,
	GF_BAR_KINDS
};

/*
 * Zero-initialise, then add panels (timelines below each other on one time
 * axis: predicted, measured), rows and bars in the order they are drawn; rows
 * and bars go to the latest panel and row. Texts are copied.
 */
struct gf_gantt {
	char *title, *subtitle;
	struct gf_gantt_panel *panels;
	size_t npanels, panels_capacity;
};

void gf_gantt_title(struct gf_gantt *g, const char *title,
		    const char *subtitle);
/* title may be NULL. */
void gf_gantt_panel(struct gf_gantt *g, const char *title);
void gf_gantt_row(struct gf_gantt *g, const char *label);

/* label is written into the bar if it fits, else brief if that fits, else
 * nothing; a viewer shows label and times on hovering. Both may be NULL. */
struct gf_gantt_bar {
	double start_s, end_s; /* 0 <= start <= end */
	enum gf_bar_kind kind;
	const char *label, *brief;
};
void gf_gantt_bar(struct gf_gantt *g, const struct gf_gantt_bar *bar);
/* A dashed line across the panel's rows, e.g. where backward ends. */
void gf_gantt_mark(struct gf_gantt *g, double at_s, const char *label);

int gf_gantt_svg(const struct gf_gantt *g, char **svg, struct gf_error *err);
void gf_gantt_release(struct gf_gantt *g);

/*
 * One iteration of a plan as a panel (timeline.c): compute in the first row,
 * one row for each lane that was used, marks where backward and the iteration
 * end. Serves what was predicted and what was measured.
 */
struct gf_plot_times {
	/* From the start of forward; forward_end_s 0: the model's forward_s. */
	double forward_end_s, backward_end_s, iteration_s;
	const struct gf_predicted_message *messages; /* plan's nmessages */
};
void gf_gantt_iteration(struct gf_gantt *g, const char *title,
			const struct gf_plan *plan,
			const struct gf_plot_times *times);

/* --- line chart (chart.c) ------------------------------------------------- */

struct gf_plot_axis {
	const char *label; /* the unit is appended: "time" -> "time (ms)" */
	enum gf_quantity quantity;
	enum gf_scale scale; /* logarithmic: all values > 0 */
	/* Linear axes of data >= 0 start at 0 unless this is set. */
	bool from_data;
};

enum gf_series_style {
	GF_SERIES_LINE_MARKERS,
	GF_SERIES_LINE,
	GF_SERIES_MARKERS,
	GF_SERIES_IDEAL, /* grey, dashed, no markers */
};

struct gf_series {
	const char *name;
	enum gf_series_style style;
	const double *x, *y;          /* x ascending where there is a line */
	const double *y_low, *y_high; /* error bars; both or neither NULL */
	size_t count;
	bool pair; /* the colour of the series before */
};

struct gf_chart {
	const char *title, *subtitle; /* subtitle may be NULL */
	struct gf_plot_axis x, y;
	const struct gf_series *series;
	size_t nseries;
};

int gf_chart_svg(const struct gf_chart *c, char **svg, struct gf_error *err);

/* --- grouped bar chart (bars.c) ------------------------------------------- */

/* One bar per group and series, standing on 0 (or on the lowest decade). */
struct gf_bar_series {
	const char *name;
	const double *values;     /* ngroups, >= 0; NAN: this bar is absent */
	const double *low, *high; /* error bars; both or neither NULL */
	bool pale; /* the colour of the series before, pale: for a pair */
};

struct gf_bars {
	const char *title, *subtitle;
	struct gf_plot_axis y;
	const char *const *groups;
	size_t ngroups;
	const struct gf_bar_series *series;
	size_t nseries;
};

int gf_bars_svg(const struct gf_bars *b, char **svg, struct gf_error *err);

#endif
