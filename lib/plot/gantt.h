/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLOT_GANTT_H
#define GF_PLOT_GANTT_H

#include "plot/plot.h"

/* What a Gantt chart holds; gantt.c fills it, gantt_svg.c draws it. */
struct gf_bar {
	double start_s, end_s;
	enum gf_bar_kind kind;
	char *label, *brief;
};

struct gf_row {
	char *label;
	struct gf_bar *bars;
	size_t nbars, capacity;
};

struct gf_mark {
	double at_s;
	char *label;
};

struct gf_gantt_panel {
	char *title;
	struct gf_row *rows;
	size_t nrows, rows_capacity;
	struct gf_mark *marks;
	size_t nmarks, marks_capacity;
};

#endif
