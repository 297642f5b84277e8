/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One iteration as text:
 *
 *	compute  fffbbbbbbbbbbbbbb..............
 *	lane 1      [0======][2==============]
 *	lane 2         [1==========][3=======]
 *	         0                          43 s
 *
 * f forward, b backward, u update, . waiting; a bar begins with its message's
 * number where there is room. All-gathers are drawn with '-'.
 */
#include <stdio.h>
#include <string.h>

#include "cli/human.h"
#include "planner/explain.h"
#include "sim/whatif.h"

/* Columns of a bar: where no window is given, and at the least and the most.
 * LABEL stands left of them. */
enum { USUAL = 64, LEAST = 16, MOST = 200, LABEL = 9 };

/* The scale of a chart. */
struct scale {
	double end_s;
	size_t columns;
};

static const char marks[] = {
	[GF_BAR_FORWARD] = 'f',        [GF_BAR_BACKWARD] = 'b',
	[GF_BAR_WAITING] = '.',        [GF_BAR_UPDATE] = 'u',
	[GF_BAR_MESSAGE] = '=',        [GF_BAR_SIMULTANEOUS] = '=',
	[GF_BAR_REDUCE_SCATTER] = '=', [GF_BAR_ALL_GATHER] = '-',
};

static size_t column(const struct scale *s, double at_s)
{
	double most = (double)s->columns;
	double x = s->end_s > 0 ? at_s / s->end_s * most : 0;

	return x < 0 ? 0 : x > most ? s->columns : (size_t)(x + 0.5);
}

static void draw(const struct gf_bar *bar, const struct scale *s, char *row)
{
	size_t from = column(s, bar->start_s);
	size_t to = column(s, bar->end_s), n;
	char label[32];

	if (bar->row == 0) {
		memset(row + from, marks[bar->kind], to - from);
		return;
	}
	if (from == s->columns)
		from--;
	if (to <= from)
		to = from + 1;
	memset(row + from, marks[bar->kind], to - from);
	row[to - 1] = ']';
	row[from] = to - from > 1 ? '[' : '|';
	n = (size_t)snprintf(label, sizeof(label), "%zu", bar->message);
	if (n + 2 <= to - from)
		memcpy(row + from + 1, label, n);
}

static void print(const struct gf_gantt *t, const struct scale *s, size_t at,
		  struct gf_text *out)
{
	char row[MOST + 1];
	size_t n = s->columns, i;

	memset(row, ' ', n);
	for (i = 0; i < t->nbars; i++)
		if (t->bars[i].row == at)
			draw(&t->bars[i], s, row);
	while (n > 0 && row[n - 1] == ' ')
		n--;
	row[n] = '\0';
	if (at == 0)
		gf_text_addf(out, "compute  %s\n", row);
	else
		gf_text_addf(out, "lane %-3zu %s\n", at, row);
}

int gf_plan_chart(const struct gf_plan *p, size_t window, struct gf_text *out,
		  struct gf_error *err)
{
	struct gf_what_if as_it_is = {.timeline = true};
	struct gf_outcome o;
	const struct gf_gantt *t;
	struct scale s = {.columns = USUAL};
	struct gf_human end;
	size_t i;
	int rc = gf_what_if(p, &as_it_is, &o, err);

	if (rc < 0)
		return rc;
	t = o.timeline;
	s.end_s = t->step_end_s[t->steps - 1];
	if (window)
		s.columns = window < LABEL + LEAST  ? LEAST
			    : window > LABEL + MOST ? MOST
						    : window - LABEL;
	for (i = 0; i <= t->nlanes; i++)
		print(t, &s, i, out);
	gf_text_addf(out, "         0%*s\n", (int)s.columns - 1,
		     gf_human_time(s.end_s, &end));
	gf_outcome_release(&o);
	return 0;
}
