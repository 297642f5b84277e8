/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot/frame.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/array.h"

#define TITLE_SIZE     22.0
#define SUBTITLE_SIZE  14.0
#define KEY_WIDTH      30.0
#define KEY_GAP        7.0
#define ENTRY_GAP      24.0
#define LEGEND_LEADING 22.0

static const struct gf_stroke grid = {GF_GRID, 1, NULL};
static const struct gf_stroke axis_line = {GF_FAINT, 1.25, NULL};

static void fit(struct gf_font *font, const char *text, double width)
{
	double natural = gf_svg_text_width(text, font);

	if (natural > width)
		font->size = fmax(font->size * width / natural, 9);
}

double gf_heading_draw(struct gf_svg *s, double width, const char *title,
		       const char *subtitle)
{
	struct gf_font big = {TITLE_SIZE, GF_ANCHOR_START, NULL, 1, 0};
	struct gf_font small = {SUBTITLE_SIZE, GF_ANCHOR_START, GF_FAINT, 0, 0};
	const double room = width - 2 * GF_PAGE_MARGIN;
	double y = GF_PAGE_MARGIN;

	if (title && *title) {
		y += TITLE_SIZE * 0.75;
		fit(&big, title, room);
		if (s)
			gf_svg_write(s, GF_PAGE_MARGIN, y, &big, title);
	}
	if (subtitle && *subtitle) {
		y += SUBTITLE_SIZE * 1.6;
		fit(&small, subtitle, room);
		if (s)
			gf_svg_write(s, GF_PAGE_MARGIN, y, &small, subtitle);
	}
	return y + 12;
}

static void key_draw(struct gf_svg *s, double x, double y,
		     const struct gf_legend_entry *e)
{
	struct gf_box box = {x + KEY_WIDTH - 18, y - 7, 18, 14};
	struct gf_stroke stroke = {e->colour, 2.5, e->dash};

	if (e->box) {
		gf_svg_rect(s, &box, e->colour, NULL, NULL);
		return;
	}
	if (!e->bare)
		gf_svg_line(s, x, y, x + KEY_WIDTH, y, &stroke);
	if (e->marker >= 0)
		gf_marker_draw(s, e->marker, x + KEY_WIDTH / 2, y, e->colour);
}

double gf_legend_draw(struct gf_svg *s, double left, double right, double y,
		      const struct gf_legend_entry *entries, size_t count)
{
	const struct gf_font font = {GF_LABEL_SIZE, GF_ANCHOR_START, NULL, 0,
				     0};
	double x = left;
	size_t i;

	if (!count)
		return y;
	y += LEGEND_LEADING / 2;
	for (i = 0; i < count; i++) {
		const struct gf_legend_entry *e = &entries[i];
		double skip = e->box ? KEY_WIDTH - 18 : 0;
		double width = KEY_WIDTH - skip + KEY_GAP +
			       gf_svg_text_width(e->name, &font);

		if (x > left && x + width > right) {
			x = left;
			y += LEGEND_LEADING;
		}
		if (s) {
			key_draw(s, x - skip, y, e);
			gf_svg_write(s, x - skip + KEY_WIDTH + KEY_GAP,
				     y + GF_LABEL_SIZE * 0.36, &font, e->name);
		}
		x += width + ENTRY_GAP;
	}
	return y + LEGEND_LEADING / 2 + 6;
}

void gf_marker_draw(struct gf_svg *s, int i, double x, double y,
		    const char *colour)
{
	/* Outlines in units of the radius; areas about that of the circle. */
	static const double square[] = {-.9, -.9, .9, -.9, .9, .9, -.9, .9};
	static const double up[] = {0, -1.2, 1.15, .85, -1.15, .85};
	static const double diamond[] = {0, -1.3, 1.3, 0, 0, 1.3, -1.3, 0};
	static const double down[] = {0, 1.2, 1.15, -.85, -1.15, -.85};
	static const double cross[] = {
		-.4, -1.2, .4,  -1.2, .4,  -.4, 1.2,  -.4, 1.2,  .4,  .4,  .4,
		.4,  1.2,  -.4, 1.2,  -.4, .4,  -1.2, .4,  -1.2, -.4, -.4, -.4};
	static const struct {
		const double *at;
		size_t count;
	} shapes[] = {
		{NULL, 0},
		{square, GF_ARRAY_LENGTH(square) / 2},
		{up, GF_ARRAY_LENGTH(up) / 2},
		{diamond, GF_ARRAY_LENGTH(diamond) / 2},
		{down, GF_ARRAY_LENGTH(down) / 2},
		{cross, GF_ARRAY_LENGTH(cross) / 2},
	};
	const size_t number = (size_t)i, n = GF_ARRAY_LENGTH(shapes);
	/* The second round is shifted against the round of colours. */
	const size_t which = (number + number / n) % n;
	const double radius = 5;
	double points[2 * 12];
	size_t k;

	if (!shapes[which].count) {
		gf_svg_circle(s, x, y, radius, colour);
		return;
	}
	for (k = 0; k < shapes[which].count; k++) {
		points[2 * k] = x + radius * shapes[which].at[2 * k];
		points[2 * k + 1] = y + radius * shapes[which].at[2 * k + 1];
	}
	gf_svg_polygon(s, points, shapes[which].count, colour);
}

/* "time (ms)", "GPUs"; the unit alone where there is no name. */
static const char *named(const char *label, const char *unit, char out[128])
{
	if (!label)
		label = "";
	if (*unit && *label)
		snprintf(out, 128, "%.100s (%s)", label, unit);
	else
		snprintf(out, 128, "%.100s", *label ? label : unit);
	return out;
}

void gf_axis_x_draw(struct gf_svg *s, const struct gf_box *area,
		    const struct gf_ticks *t, const char *label)
{
	const struct gf_font tick = {GF_LABEL_SIZE - 1, GF_ANCHOR_MIDDLE,
				     GF_INK, 0, 0};
	const struct gf_font name = {GF_LABEL_SIZE, GF_ANCHOR_MIDDLE, NULL, 0,
				     0};
	const double bottom = area->y + area->height;
	double free_from = -1e9;
	char text[128];
	size_t i;

	for (i = 0; i < t->count; i++) {
		double x =
			area->x + area->width * gf_ticks_position(t, t->at[i]);
		double half = gf_svg_text_width(t->label[i], &tick) / 2;

		gf_svg_line(s, x, area->y, x, bottom, &grid);
		gf_svg_line(s, x, bottom, x, bottom + 5, &axis_line);
		if (x - half < free_from)
			continue;
		gf_svg_write(s, x, bottom + 20, &tick, t->label[i]);
		free_from = x + half + 8;
	}
	gf_svg_line(s, area->x, bottom, area->x + area->width, bottom,
		    &axis_line);
	gf_svg_write(s, area->x + area->width / 2, bottom + 42, &name,
		     named(label, t->unit, text));
}

double gf_axis_y_width(const struct gf_ticks *t)
{
	const struct gf_font tick = {GF_LABEL_SIZE - 1, GF_ANCHOR_END, GF_INK,
				     0, 0};
	double widest = 0;
	size_t i;

	for (i = 0; i < t->count; i++)
		widest = fmax(widest, gf_svg_text_width(t->label[i], &tick));
	return widest + 12;
}

/* The name stands above the axis, level: nobody has to turn the head. */
void gf_axis_y_draw(struct gf_svg *s, const struct gf_box *area,
		    const struct gf_ticks *t, const char *label)
{
	const struct gf_font tick = {GF_LABEL_SIZE - 1, GF_ANCHOR_END, GF_INK,
				     0, 0};
	const struct gf_font name = {GF_LABEL_SIZE, GF_ANCHOR_START, NULL, 0,
				     0};
	char text[128];
	size_t i;

	for (i = 0; i < t->count; i++) {
		double y = area->y +
			   area->height * (1 - gf_ticks_position(t, t->at[i]));

		gf_svg_line(s, area->x, y, area->x + area->width, y, &grid);
		gf_svg_write(s, area->x - 8, y + 4.5, &tick, t->label[i]);
	}
	gf_svg_line(s, area->x, area->y, area->x, area->y + area->height,
		    &axis_line);
	gf_svg_write(s, GF_PAGE_MARGIN, area->y - 14, &name,
		     named(label, t->unit, text));
}

void gf_error_bar_draw(struct gf_svg *s, double x, double y_low, double y_high,
		       double cap)
{
	const struct gf_stroke ink = {GF_INK, 1.25, NULL};

	gf_svg_line(s, x, y_low, x, y_high, &ink);
	gf_svg_line(s, x - cap, y_low, x + cap, y_low, &ink);
	gf_svg_line(s, x - cap, y_high, x + cap, y_high, &ink);
}

int gf_range_add(double *low, double *high, double value,
		 const struct gf_plot_axis *axis, struct gf_error *err)
{
	const char *name = axis->label ? axis->label : "value";

	if (!isfinite(value))
		return gf_error_set(err, -EINVAL, "want a finite %s, got %g",
				    name, value);
	if (axis->scale != GF_SCALE_LINEAR && !(value > 0))
		return gf_error_set(err, -EINVAL,
				    "want a %s > 0 for a logarithmic axis, "
				    "got %g",
				    name, value);
	*low = fmin(*low, value);
	*high = fmax(*high, value);
	return 0;
}
