/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/heap.h"
#include "plot/frame.h"
#include "plot/gantt.h"

#define PAGE_WIDTH   1200.0
#define ROW_HEIGHT   30.0
#define ROW_GAP      6.0
#define PANEL_GAP    18.0
#define PANEL_TITLE  24.0
#define MARK_LEADING 17.0
#define BAR_FONT     12.0

static const struct {
	const char *name, *colour;
} kinds[GF_BAR_KINDS] = {
	[GF_BAR_FORWARD] = {"forward", "#56b4e9"},
	[GF_BAR_BACKWARD] = {"backward", "#0072b2"},
	[GF_BAR_WAIT] = {"waiting for gradients", "#dddddd"},
	[GF_BAR_UPDATE] = {"update", "#757575"},
	[GF_BAR_NORMAL] = {"message", "#e69f00"},
	[GF_BAR_SIMULTANEOUS] = {"simultaneous message", "#009e73"},
	[GF_BAR_REDUCE_SCATTER] = {"reduce-scatter", "#d55e00"},
	[GF_BAR_ALL_GATHER] = {"all-gather", "#cc79a7"},
	[GF_BAR_OTHER] = {"other", "#b5a642"},
};

struct layout {
	struct gf_box area; /* of all panels */
	struct gf_ticks ticks;
	double height; /* of the page */
};

static int check_row(const struct gf_row *row, double *high, size_t *bars,
		     struct gf_error *err)
{
	size_t i;

	for (i = 0; i < row->nbars; i++) {
		const struct gf_bar *b = &row->bars[i];

		if (!isfinite(b->start_s) || !isfinite(b->end_s) ||
		    b->start_s < 0 || b->end_s < b->start_s)
			return gf_error_set(
				err, -EINVAL,
				"bar %zu: want 0 <= start <= end, got %g, %g",
				i, b->start_s, b->end_s);
		*high = fmax(*high, b->end_s);
		++*bars;
	}
	return 0;
}

static int check(const struct gf_gantt *g, double *high, struct gf_error *err)
{
	size_t i, k, bars = 0;
	int rc;

	*high = 0;
	for (i = 0; i < g->npanels; i++) {
		const struct gf_gantt_panel *p = &g->panels[i];

		for (k = 0; k < p->nrows; k++) {
			rc = check_row(&p->rows[k], high, &bars, err);
			if (rc) {
				gf_error_prefix(err, "panel %zu, row %zu", i,
						k);
				return rc;
			}
		}
		for (k = 0; k < p->nmarks; k++) {
			if (!isfinite(p->marks[k].at_s) || p->marks[k].at_s < 0)
				return gf_error_set(
					err, -EINVAL,
					"panel %zu, mark %zu: want a time >= "
					"0, got %g",
					i, k, p->marks[k].at_s);
			*high = fmax(*high, p->marks[k].at_s);
		}
	}
	return bars ? 0
		    : gf_error_set(err, -EINVAL,
				   "want at least one bar, got none");
}

static double label_width(const struct gf_gantt *g)
{
	const struct gf_font font = {GF_LABEL_SIZE, GF_ANCHOR_END, NULL, 0, 0};
	double widest = 0;
	size_t i, k;

	for (i = 0; i < g->npanels; i++)
		for (k = 0; k < g->panels[i].nrows; k++)
			if (g->panels[i].rows[k].label)
				widest =
					fmax(widest,
					     gf_svg_text_width(
						     g->panels[i].rows[k].label,
						     &font));
	return fmin(widest, PAGE_WIDTH / 4) + 12;
}

static double time_x(const struct layout *l, double at_s)
{
	return l->area.x + l->area.width * gf_ticks_position(&l->ticks, at_s);
}

/* Labels stand right of their line, or left of it near the page's edge. */
static void mark_extent(const struct layout *l, const struct gf_mark *m,
			double *from, double *to)
{
	const struct gf_font font = {BAR_FONT, GF_ANCHOR_START, NULL, 0, 0};
	double x = time_x(l, m->at_s);
	double width = gf_svg_text_width(m->label ? m->label : "", &font) + 6;

	*from = x + width > PAGE_WIDTH - GF_PAGE_MARGIN ? x - width : x;
	*to = *from + width;
}

/* Whether mark i on line `line` would run into mark k, text into text or a
 * dashed line, which hangs down from its label, through a text below. */
static bool marks_clash(const struct layout *l, const struct gf_mark *i,
			int line_i, const struct gf_mark *k, int line_k)
{
	double from_i, to_i, from_k, to_k;
	double x_i = time_x(l, i->at_s), x_k = time_x(l, k->at_s);

	mark_extent(l, i, &from_i, &to_i);
	mark_extent(l, k, &from_k, &to_k);
	if (line_i == line_k)
		return from_i < to_k && from_k < to_i;
	if (line_i < line_k)
		return x_k > from_i && x_k < to_i;
	return x_i > from_k && x_i < to_k;
}

static bool marks_fit(const struct layout *l, const struct gf_gantt_panel *p,
		      const int *line, size_t i, int try)
{
	size_t k;

	for (k = 0; k < p->nmarks; k++)
		if (line[k] >= 0 &&
		    marks_clash(l, &p->marks[i], try, &p->marks[k], line[k]))
			return false;
	return true;
}

/* The mark to place next: those whose texts stand left of their lines from the
 * left, then the others from the right, so that a line rarely has to cross an
 * earlier text. */
static size_t next_mark(const struct layout *l, const struct gf_gantt_panel *p,
			const int *line)
{
	double from, to, key, least = INFINITY;
	size_t i, next = 0;

	for (i = 0; i < p->nmarks; i++) {
		if (line[i] >= 0)
			continue;
		mark_extent(l, &p->marks[i], &from, &to);
		key = time_x(l, p->marks[i].at_s);
		if (from >= key)
			key = 2 * PAGE_WIDTH - key;
		if (key < least) {
			least = key;
			next = i;
		}
	}
	return next;
}

/* Every label goes to the lowest line where it clashes with no other; where
 * each one does, to a line of its own. Fills line[nmarks]; returns how many
 * lines there are. */
static int place_marks(const struct layout *l, const struct gf_gantt_panel *p,
		       int *line)
{
	int lines = 0, try;
	size_t done, i;

	for (i = 0; i < p->nmarks; i++)
		line[i] = -1;
	for (done = 0; done < p->nmarks; done++) {
		i = next_mark(l, p, line);
		for (try = 0; try < lines && !marks_fit(l, p, line, i, try);
		     try++)
			;
		line[i] = try;
		if (try == lines)
			lines++;
	}
	return lines;
}

static double panel_height(const struct layout *l,
			   const struct gf_gantt_panel *p)
{
	int *line = gf_xcalloc(p->nmarks + 1, sizeof(*line));
	int lines = place_marks(l, p, line);

	free(line);
	return (p->title ? PANEL_TITLE : 0) + lines * MARK_LEADING +
	       (double)p->nrows * (ROW_HEIGHT + ROW_GAP);
}

static void draw_bar(struct gf_svg *s, const struct layout *l,
		     const struct gf_bar *b, double y)
{
	const struct gf_font font = {BAR_FONT, GF_ANCHOR_MIDDLE,
				     gf_svg_ink_on(kinds[b->kind].colour), 0,
				     0};
	double x = time_x(l, b->start_s), end = time_x(l, b->end_s);
	/* A hair's breadth shows even what lasts next to nothing; bars wide
	 * enough are set apart by a white edge. */
	struct gf_box box = {x, y, fmax(end - x, 0.5), ROW_HEIGHT};
	const char *edge = box.width >= 4 ? "#ffffff" : NULL;
	const char *text = NULL;
	char from[24], to[24], *tip;

	gf_quantity_print(GF_QUANTITY_SECONDS, b->start_s, from);
	gf_quantity_print(GF_QUANTITY_SECONDS, b->end_s, to);
	tip = gf_xasprintf("%s: %s to %s",
			   b->label ? b->label : kinds[b->kind].name, from, to);
	gf_svg_rect(s, &box, kinds[b->kind].colour, edge, tip);
	free(tip);
	if (b->label && gf_svg_text_width(b->label, &font) + 6 <= box.width)
		text = b->label;
	else if (b->brief &&
		 gf_svg_text_width(b->brief, &font) + 6 <= box.width)
		text = b->brief;
	if (text && *text)
		gf_svg_write(s, x + box.width / 2,
			     y + ROW_HEIGHT / 2 + BAR_FONT * 0.36, &font, text);
}

/* The labels' first line ends at y, the rows at bottom. */
static void draw_mark(struct gf_svg *s, const struct layout *l,
		      const struct gf_mark *m, double y, double bottom)
{
	const struct gf_stroke dashed = {GF_INK, 1.25, "4 3"};
	struct gf_font font = {BAR_FONT, GF_ANCHOR_START, GF_INK, 0, 0};
	double x = time_x(l, m->at_s), from, to;

	gf_svg_line(s, x, y - BAR_FONT - 3, x, bottom, &dashed);
	if (!m->label)
		return;
	mark_extent(l, m, &from, &to);
	font.anchor = from < x ? GF_ANCHOR_END : GF_ANCHOR_START;
	gf_svg_write(s, from < x ? x - 4 : x + 4, y - 5, &font, m->label);
}

static double draw_panel(struct gf_svg *s, const struct layout *l,
			 const struct gf_gantt_panel *p, double y)
{
	const struct gf_font title = {15, GF_ANCHOR_START, NULL, 1, 0};
	const struct gf_font label = {GF_LABEL_SIZE, GF_ANCHOR_END, NULL, 0, 0};
	int *line = gf_xcalloc(p->nmarks + 1, sizeof(*line));
	double rows_y;
	size_t i, k;

	if (p->title) {
		const struct gf_box behind = {
			GF_PAGE_MARGIN, y, gf_svg_text_width(p->title, &title),
			PANEL_TITLE - 4};

		gf_svg_rect(s, &behind, "#ffffff", NULL, NULL);
		gf_svg_write(s, GF_PAGE_MARGIN, y + 14, &title, p->title);
		y += PANEL_TITLE;
	}
	y += place_marks(l, p, line) * MARK_LEADING;
	rows_y = y;
	for (i = 0; i < p->nrows; i++) {
		for (k = 0; k < p->rows[i].nbars; k++)
			draw_bar(s, l, &p->rows[i].bars[k], y);
		if (p->rows[i].label)
			gf_svg_write(s, l->area.x - 10,
				     y + ROW_HEIGHT / 2 + GF_LABEL_SIZE * 0.36,
				     &label, p->rows[i].label);
		y += ROW_HEIGHT + ROW_GAP;
	}
	for (i = 0; i < p->nmarks; i++)
		draw_mark(s, l, &p->marks[i], rows_y - MARK_LEADING * line[i],
			  y - ROW_GAP + 2);
	free(line);
	return y;
}

/* The kinds that occur, in the order of the enum. */
static size_t make_legend(const struct gf_gantt *g,
			  struct gf_legend_entry legend[GF_BAR_KINDS])
{
	int used[GF_BAR_KINDS] = {0};
	size_t i, k, n, count = 0;

	for (i = 0; i < g->npanels; i++)
		for (k = 0; k < g->panels[i].nrows; k++)
			for (n = 0; n < g->panels[i].rows[k].nbars; n++)
				used[g->panels[i].rows[k].bars[n].kind] = 1;
	for (i = 0; i < GF_BAR_KINDS; i++)
		if (used[i])
			legend[count++] = (struct gf_legend_entry){
				.name = kinds[i].name,
				.colour = kinds[i].colour,
				.marker = -1,
				.box = 1};
	return count;
}

int gf_gantt_svg(const struct gf_gantt *g, char **svg, struct gf_error *err)
{
	const struct gf_plot_axis axis = {"time", GF_QUANTITY_SECONDS,
					  GF_SCALE_LINEAR, false};
	struct gf_legend_entry legend[GF_BAR_KINDS];
	struct gf_svg s = {{0}};
	struct layout l;
	size_t i, nlegend;
	double high, y;
	int rc = check(g, &high, err);

	if (rc)
		return rc;
	gf_ticks_make(&axis, 0, high, 12, 0, &l.ticks);
	nlegend = make_legend(g, legend);
	y = gf_heading_draw(NULL, PAGE_WIDTH, g->title, g->subtitle);
	y = gf_legend_draw(NULL, GF_PAGE_MARGIN, PAGE_WIDTH - GF_PAGE_MARGIN, y,
			   legend, nlegend);
	l.area.x = GF_PAGE_MARGIN + label_width(g);
	l.area.y = y + 8;
	l.area.width = PAGE_WIDTH - GF_PAGE_MARGIN - l.area.x;
	l.area.height = 0;
	for (i = 0; i < g->npanels; i++) {
		l.area.height +=
			panel_height(&l, &g->panels[i]) + (i ? PANEL_GAP : 0);
	}
	l.height = l.area.y + l.area.height + 60;

	gf_svg_open(&s, PAGE_WIDTH, l.height, g->title ? g->title : "");
	y = gf_heading_draw(&s, PAGE_WIDTH, g->title, g->subtitle);
	gf_legend_draw(&s, GF_PAGE_MARGIN, PAGE_WIDTH - GF_PAGE_MARGIN, y,
		       legend, nlegend);
	gf_axis_x_draw(&s, &l.area, &l.ticks, axis.label);
	y = l.area.y;
	for (i = 0; i < g->npanels; i++)
		y = draw_panel(&s, &l, &g->panels[i], y + (i ? PANEL_GAP : 0));
	*svg = gf_svg_close(&s);
	return 0;
}
