/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/heap.h"
#include "plot/frame.h"

#define PAGE_HEIGHT  540.0
#define PAGE_MINIMUM 960.0
#define BAR_MINIMUM  9.0   /* the page grows before bars get thinner */
#define SLANT        -35.0 /* degrees, of names that do not fit level */
#define SLANT_COS    0.82
#define SLANT_SIN    0.58
#define GROUP_GAP    0.25 /* of a group's width */

static const char *colour_of(const struct gf_bars *b, size_t i, char pale[8])
{
	size_t k, n = 0;

	for (k = 1; k <= i; k++)
		n += !b->series[k].pale;
	if (!b->series[i].pale)
		return gf_palette[n % gf_palette_count()];
	gf_svg_pale(gf_palette[n % gf_palette_count()], pale);
	return pale;
}

static int add_bar(const struct gf_bars *b, size_t i, size_t g, double *low,
		   double *high, struct gf_error *err)
{
	const struct gf_bar_series *s = &b->series[i];
	int rc = 0;

	if (s->values[g] < 0)
		rc = gf_error_set(err, -EINVAL, "want a bar >= 0, got %g",
				  s->values[g]);
	if (!rc)
		rc = gf_range_add(low, high, s->values[g], &b->y, err);
	if (!rc && s->low && s->high) {
		rc = gf_range_add(low, high, s->low[g], &b->y, err);
		if (!rc)
			rc = gf_range_add(low, high, s->high[g], &b->y, err);
	}
	if (rc)
		gf_error_prefix(err, "series %zu, group %zu", i, g);
	return rc;
}

static int find_range(const struct gf_bars *b, double *low, double *high,
		      struct gf_error *err)
{
	size_t i, g, bars = 0;
	int rc;

	*low = INFINITY;
	*high = -INFINITY;
	for (i = 0; i < b->nseries; i++) {
		for (g = 0; g < b->ngroups; g++) {
			if (isnan(b->series[i].values[g]))
				continue;
			rc = add_bar(b, i, g, low, high, err);
			if (rc)
				return rc;
			bars++;
		}
	}
	return bars ? 0
		    : gf_error_set(err, -EINVAL,
				   "want at least one bar, got none");
}

static double y_of(const struct gf_ticks *t, const struct gf_box *area,
		   double value)
{
	if (value <= t->low)
		return area->y + area->height;
	return area->y + area->height * (1 - gf_ticks_position(t, value));
}

static void value_text(const struct gf_ticks *t, double value, char out[24])
{
	snprintf(out, 24, "%.3g", value / t->unit_size);
}

static const struct gf_font value_font = {10, GF_ANCHOR_MIDDLE, NULL, 0, 0};

/* Values stand on all bars or on none. */
static bool values_fit(const struct gf_bars *b, const struct gf_ticks *t,
		       double width)
{
	char text[24];
	size_t i, g;

	for (i = 0; i < b->nseries; i++) {
		if (b->series[i].low || t->scale != GF_SCALE_LINEAR)
			return false;
		for (g = 0; g < b->ngroups; g++) {
			if (isnan(b->series[i].values[g]))
				continue;
			value_text(t, b->series[i].values[g], text);
			if (gf_svg_text_width(text, &value_font) > width - 2)
				return false;
		}
	}
	return true;
}

static void draw_bar(struct gf_svg *svg, const struct gf_bars *b, size_t i,
		     size_t g, const struct gf_box *slot,
		     const struct gf_ticks *t)
{
	const struct gf_bar_series *s = &b->series[i];
	const double y = y_of(t, slot, s->values[g]);
	const struct gf_box box = {slot->x, y, slot->width,
				   slot->y + slot->height - y};
	char text[24], pale[8], *tip;

	gf_quantity_print(b->y.quantity, s->values[g], text);
	tip = gf_xasprintf("%s, %s: %s", b->groups[g], s->name, text);
	gf_svg_rect(svg, &box, colour_of(b, i, pale), NULL, tip);
	free(tip);
	if (s->low && s->high)
		gf_error_bar_draw(svg, slot->x + slot->width / 2,
				  y_of(t, slot, s->low[g]),
				  y_of(t, slot, s->high[g]),
				  fmin(4, slot->width / 3));
}

/* Names of groups: level where they fit, slanted where not. */
static void draw_groups(struct gf_svg *svg, const struct gf_bars *b,
			const struct gf_box *area, int slanted)
{
	const double step = area->width / (double)b->ngroups;
	const struct gf_font font = {GF_LABEL_SIZE - 1,
				     slanted ? GF_ANCHOR_END : GF_ANCHOR_MIDDLE,
				     NULL, 0, slanted ? SLANT : 0};
	size_t g;

	for (g = 0; g < b->ngroups; g++)
		gf_svg_write(svg, area->x + step * ((double)g + 0.5),
			     area->y + area->height + (slanted ? 14 : 20),
			     &font, b->groups[g]);
}

static double widest_group(const struct gf_bars *b)
{
	const struct gf_font font = {GF_LABEL_SIZE - 1, GF_ANCHOR_MIDDLE, NULL,
				     0, 0};
	double widest = 0;
	size_t g;

	for (g = 0; g < b->ngroups; g++)
		widest = fmax(widest, gf_svg_text_width(b->groups[g], &font));
	return widest;
}

static void draw_bars(struct gf_svg *svg, const struct gf_bars *b,
		      const struct gf_box *area, const struct gf_ticks *t)
{
	const double step = area->width / (double)b->ngroups;
	const double width = step * (1 - GROUP_GAP) / (double)b->nseries;
	struct gf_box slot = {0, area->y, fmin(width * 0.94, width - 0.5),
			      area->height};
	const bool values = values_fit(b, t, width);
	char text[24];
	size_t i, g;

	for (g = 0; g < b->ngroups; g++) {
		for (i = 0; i < b->nseries; i++) {
			double value = b->series[i].values[g];

			if (isnan(value))
				continue;
			slot.x = area->x + step * ((double)g + GROUP_GAP / 2) +
				 width * (double)i;
			draw_bar(svg, b, i, g, &slot, t);
			if (!values)
				continue;
			value_text(t, value, text);
			gf_svg_write(svg, slot.x + slot.width / 2,
				     y_of(t, &slot, value) - 4, &value_font,
				     text);
		}
	}
}

static double draw_legend(struct gf_svg *svg, const struct gf_bars *b,
			  double width, double top)
{
	struct gf_legend_entry *e = gf_xcalloc(b->nseries, sizeof(*e));
	char(*pale)[8] = gf_xcalloc(b->nseries, sizeof(*pale));
	size_t i;

	for (i = 0; i < b->nseries; i++)
		e[i] = (struct gf_legend_entry){
			.name = b->series[i].name,
			.colour = colour_of(b, i, pale[i]),
			.marker = -1,
			.box = 1};
	top = gf_legend_draw(svg, GF_PAGE_MARGIN, width - GF_PAGE_MARGIN, top,
			     e, b->nseries);
	free(pale);
	free(e);
	return top;
}

int gf_bars_svg(const struct gf_bars *b, char **svg, struct gf_error *err)
{
	struct gf_svg s = {{0}};
	struct gf_ticks t;
	struct gf_box area;
	double low, high, width, widest, top, below;
	int slanted, rc = find_range(b, &low, &high, err);

	if (rc)
		return rc;
	if (b->y.scale != GF_SCALE_LINEAR)
		low *= 0.7; /* the lowest bar must be seen, too */
	gf_ticks_make(&b->y, low, high, 6, 1, &t);
	widest = widest_group(b);
	area.x = GF_PAGE_MARGIN + gf_axis_y_width(&t);
	width = fmax(PAGE_MINIMUM, area.x + GF_PAGE_MARGIN +
					   (double)(b->ngroups * b->nseries) *
						   BAR_MINIMUM /
						   (1 - GROUP_GAP));
	area.width = width - GF_PAGE_MARGIN - area.x;
	slanted = widest + 6 > area.width / (double)b->ngroups;
	if (slanted) { /* room for the first name, which hangs out leftwards */
		area.x = fmax(area.x,
			      widest * SLANT_COS + 4 -
				      area.width / (double)b->ngroups / 2);
		area.width = width - GF_PAGE_MARGIN - area.x;
	}
	below = slanted ? 30 + widest * SLANT_SIN : 40;

	gf_svg_open(&s, width, PAGE_HEIGHT, b->title ? b->title : "");
	top = gf_heading_draw(&s, width, b->title, b->subtitle);
	top = draw_legend(&s, b, width, top);
	area.y = top + 28;
	area.height = fmax(PAGE_HEIGHT - below - area.y, 60);
	gf_axis_y_draw(&s, &area, &t, b->y.label);
	draw_bars(&s, b, &area, &t);
	gf_svg_line(&s, area.x, area.y + area.height, area.x + area.width,
		    area.y + area.height,
		    &(struct gf_stroke){GF_FAINT, 1.25, NULL});
	draw_groups(&s, b, &area, slanted);
	*svg = gf_svg_close(&s);
	return 0;
}
