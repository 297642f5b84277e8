/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "plot/frame.h"

#define PAGE_WIDTH   960.0 /* 16:9, as slides are */
#define PAGE_HEIGHT  540.0
#define IDEAL_COLOUR "#757575"

/* How many colours were taken before series i's. */
static size_t colour_number(const struct gf_chart *c, size_t i)
{
	size_t k, n = 0;

	while (i > 0 && c->series[i].pair)
		i--;
	for (k = 0; k < i; k++)
		n += c->series[k].style != GF_SERIES_IDEAL &&
		     !c->series[k].pair;
	return n;
}

static const char *colour_of(const struct gf_chart *c, size_t i)
{
	if (c->series[i].style == GF_SERIES_IDEAL)
		return IDEAL_COLOUR;
	return gf_palette[colour_number(c, i) % gf_palette_count()];
}

/* More series than colours: the second round is dashed. */
static const char *dash_of(const struct gf_chart *c, size_t i)
{
	if (c->series[i].style == GF_SERIES_IDEAL)
		return "7 5";
	return colour_number(c, i) >= gf_palette_count() ? "8 4" : NULL;
}

static int has_markers(const struct gf_series *s)
{
	return s->style == GF_SERIES_LINE_MARKERS ||
	       s->style == GF_SERIES_MARKERS;
}

struct range {
	double x_low, x_high, y_low, y_high;
};

static int add_point(const struct gf_chart *c, size_t i, size_t k,
		     struct range *r, struct gf_error *err)
{
	const struct gf_series *s = &c->series[i];
	int rc = gf_range_add(&r->x_low, &r->x_high, s->x[k], &c->x, err);

	if (!rc)
		rc = gf_range_add(&r->y_low, &r->y_high, s->y[k], &c->y, err);
	if (!rc && s->y_low)
		rc = gf_range_add(&r->y_low, &r->y_high, s->y_low[k], &c->y,
				  err);
	if (!rc && s->y_high)
		rc = gf_range_add(&r->y_low, &r->y_high, s->y_high[k], &c->y,
				  err);
	if (rc)
		gf_error_prefix(err, "series %zu, point %zu", i, k);
	return rc;
}

static int find_range(const struct gf_chart *c, struct range *r,
		      struct gf_error *err)
{
	size_t i, k, points = 0;
	int rc;

	*r = (struct range){INFINITY, -INFINITY, INFINITY, -INFINITY};
	for (i = 0; i < c->nseries; i++) {
		for (k = 0; k < c->series[i].count; k++) {
			rc = add_point(c, i, k, r, err);
			if (rc)
				return rc;
			points++;
		}
	}
	return points ? 0
		      : gf_error_set(err, -EINVAL,
				     "want at least one point, got none");
}

static void draw_series(struct gf_svg *svg, const struct gf_chart *c, size_t i,
			const struct gf_box *area, const struct gf_ticks t[2])
{
	const struct gf_series *s = &c->series[i];
	const struct gf_stroke stroke = {colour_of(c, i), 2.5, dash_of(c, i)};
	double *at = gf_xcalloc(s->count + 1, 2 * sizeof(*at));
	size_t k;

	for (k = 0; k < s->count; k++) {
		at[2 * k] = area->x +
			    area->width * gf_ticks_position(&t[0], s->x[k]);
		at[2 * k + 1] =
			area->y +
			area->height * (1 - gf_ticks_position(&t[1], s->y[k]));
	}
	if (s->style != GF_SERIES_MARKERS && s->count > 1)
		gf_svg_polyline(svg, at, s->count, &stroke);
	for (k = 0; k < s->count && s->y_low && s->y_high; k++)
		gf_error_bar_draw(
			svg, at[2 * k],
			area->y + area->height *
					  (1 - gf_ticks_position(&t[1],
								 s->y_low[k])),
			area->y + area->height *
					  (1 - gf_ticks_position(&t[1],
								 s->y_high[k])),
			4);
	for (k = 0; k < s->count && has_markers(s); k++)
		gf_marker_draw(svg, (int)i, at[2 * k], at[2 * k + 1],
			       stroke.colour);
	free(at);
}

int gf_chart_svg(const struct gf_chart *c, char **svg, struct gf_error *err)
{
	struct gf_legend_entry *legend = NULL;
	struct gf_svg s = {{0}};
	struct gf_ticks t[2]; /* x, y */
	struct gf_box area;
	struct range r;
	double top;
	size_t i;
	int rc = find_range(c, &r, err);

	if (rc)
		return rc;
	gf_ticks_make(&c->x, r.x_low, r.x_high, 10, 1, &t[0]);
	gf_ticks_make(&c->y, r.y_low, r.y_high, 6, 1, &t[1]);
	legend = gf_xcalloc(c->nseries, sizeof(*legend));
	for (i = 0; i < c->nseries; i++)
		legend[i] = (struct gf_legend_entry){
			.name = c->series[i].name ? c->series[i].name : "",
			.colour = colour_of(c, i),
			.dash = dash_of(c, i),
			.marker = has_markers(&c->series[i]) ? (int)i : -1,
			.bare = c->series[i].style == GF_SERIES_MARKERS};

	gf_svg_open(&s, PAGE_WIDTH, PAGE_HEIGHT, c->title ? c->title : "");
	top = gf_heading_draw(&s, PAGE_WIDTH, c->title, c->subtitle);
	top = gf_legend_draw(&s, GF_PAGE_MARGIN, PAGE_WIDTH - GF_PAGE_MARGIN,
			     top, legend, c->nseries);
	area.x = GF_PAGE_MARGIN + gf_axis_y_width(&t[1]);
	area.y = top + 28;
	area.width = PAGE_WIDTH - GF_PAGE_MARGIN - 6 - area.x;
	area.height = PAGE_HEIGHT - 60 - area.y;
	gf_axis_x_draw(&s, &area, &t[0], c->x.label);
	gf_axis_y_draw(&s, &area, &t[1], c->y.label);
	for (i = 0; i < c->nseries; i++)
		draw_series(&s, c, i, &area, t);
	*svg = gf_svg_close(&s);
	free(legend);
	return 0;
}
