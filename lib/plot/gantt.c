/* SPDX-License-Identifier: BSD-3-Clause */
#include "plot/gantt.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"

void gf_gantt_title(struct gf_gantt *g, const char *title, const char *subtitle)
{
	free(g->title);
	free(g->subtitle);
	g->title = gf_xstrdup_or_null(title);
	g->subtitle = gf_xstrdup_or_null(subtitle);
}

void gf_gantt_panel(struct gf_gantt *g, const char *title)
{
	struct gf_gantt_panel *p =
		gf_array_push(&g->panels, &g->npanels, &g->panels_capacity);

	p->title = gf_xstrdup_or_null(title);
}

static struct gf_gantt_panel *last_panel(struct gf_gantt *g)
{
	if (!g->npanels)
		gf_gantt_panel(g, NULL);
	return &g->panels[g->npanels - 1];
}

void gf_gantt_row(struct gf_gantt *g, const char *label)
{
	struct gf_gantt_panel *p = last_panel(g);
	struct gf_row *row =
		gf_array_push(&p->rows, &p->nrows, &p->rows_capacity);

	row->label = gf_xstrdup_or_null(label);
}

void gf_gantt_bar(struct gf_gantt *g, const struct gf_gantt_bar *bar)
{
	struct gf_gantt_panel *p = last_panel(g);
	struct gf_row *row;
	struct gf_bar *b;

	if (!p->nrows)
		gf_gantt_row(g, NULL);
	row = &p->rows[p->nrows - 1];
	b = gf_array_push(&row->bars, &row->nbars, &row->capacity);
	b->start_s = bar->start_s;
	b->end_s = bar->end_s;
	b->kind = bar->kind;
	b->label = gf_xstrdup_or_null(bar->label);
	b->brief = gf_xstrdup_or_null(bar->brief);
}

void gf_gantt_mark(struct gf_gantt *g, double at_s, const char *label)
{
	struct gf_gantt_panel *p = last_panel(g);
	struct gf_mark *m =
		gf_array_push(&p->marks, &p->nmarks, &p->marks_capacity);

	m->at_s = at_s;
	m->label = gf_xstrdup_or_null(label);
}

void gf_gantt_release(struct gf_gantt *g)
{
	size_t i, k, n;

	for (i = 0; i < g->npanels; i++) {
		struct gf_gantt_panel *p = &g->panels[i];

		for (k = 0; k < p->nrows; k++) {
			for (n = 0; n < p->rows[k].nbars; n++) {
				free(p->rows[k].bars[n].label);
				free(p->rows[k].bars[n].brief);
			}
			free(p->rows[k].bars);
			free(p->rows[k].label);
		}
		for (k = 0; k < p->nmarks; k++)
			free(p->marks[k].label);
		free(p->marks);
		free(p->rows);
		free(p->title);
	}
	free(g->panels);
	free(g->title);
	free(g->subtitle);
	*g = (struct gf_gantt){0};
}
