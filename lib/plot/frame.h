/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLOT_FRAME_H
#define GF_PLOT_FRAME_H

#include "base/error.h"
#include "plot/plot.h"
#include "plot/svg.h"
#include "plot/ticks.h"

/* What the pictures share: heading, legend, axes, series styles. */

#define GF_PAGE_MARGIN 28.0
#define GF_LABEL_SIZE  14.0

/* Title and subtitle, smaller if they do not fit. Returns the y below. With
 * s NULL only measures; so does gf_legend_draw. */
double gf_heading_draw(struct gf_svg *s, double width, const char *title,
		       const char *subtitle);

struct gf_legend_entry {
	const char *name;
	const char *colour;
	const char *dash;
	int marker; /* a series' number; -1: none */
	int box;    /* a filled box instead of a line */
	int bare;   /* the marker alone */
};
/* Rows as wide as [left, right] allows, below y; returns the y below. */
double gf_legend_draw(struct gf_svg *s, double left, double right, double y,
		      const struct gf_legend_entry *entries, size_t count);

/* Marker number i (they repeat) centred on (x, y). */
void gf_marker_draw(struct gf_svg *s, int i, double x, double y,
		    const char *colour);

/* Grid lines, tick labels, axis line and name; `area` is the plot's inside. */
void gf_axis_x_draw(struct gf_svg *s, const struct gf_box *area,
		    const struct gf_ticks *t, const char *label);
void gf_axis_y_draw(struct gf_svg *s, const struct gf_box *area,
		    const struct gf_ticks *t, const char *label);
/* Pixels left of the area that the y tick labels need. */
double gf_axis_y_width(const struct gf_ticks *t);
/* An I-shaped error bar; `cap` is half its width. */
void gf_error_bar_draw(struct gf_svg *s, double x, double y_low, double y_high,
		       double cap);

/* Widens [low, high] by value; -EINVAL "<where>: want a finite <name>, ..." */
int gf_range_add(double *low, double *high, double value,
		 const struct gf_plot_axis *axis, struct gf_error *err);

#endif
