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
 * number where there is room.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "planner/explain.h"

#define COLUMNS 64

struct chart {
	const struct gf_plan *plan;
	double end_s;
	size_t nlanes;
	char (*rows)[COLUMNS + 1]; /* compute, then lanes */
	double *free_s;            /* per lane */
};

static size_t column(const struct chart *c, double at_s)
{
	double x = c->end_s > 0 ? at_s / c->end_s * COLUMNS : 0;

	return x < 0 ? 0 : x > COLUMNS ? COLUMNS : (size_t)(x + 0.5);
}

static void fill(struct chart *c, size_t row, double from_s, double to_s,
		 char mark)
{
	size_t i;

	for (i = column(c, from_s); i < column(c, to_s); i++)
		c->rows[row][i] = mark;
}

static void draw_compute(struct chart *c)
{
	const struct gf_plan *p = c->plan;
	double forward = p->model->forward_s;
	double backward = forward + p->model->backward_s;
	double update = c->end_s - p->model->update_s;

	fill(c, 0, 0, forward, 'f');
	fill(c, 0, forward, backward, 'b');
	fill(c, 0, backward, update, '.');
	fill(c, 0, update, c->end_s, 'u');
}

/* The first lane that is free when the message starts. */
static size_t lane_of(struct chart *c, const struct gf_predicted_message *m)
{
	size_t i;

	for (i = 0; i < c->nlanes; i++)
		if (c->free_s[i] <= m->start_s)
			break;
	if (i == c->nlanes) {
		c->nlanes++;
		c->free_s = gf_xreallocarray(c->free_s, c->nlanes,
					     sizeof(*c->free_s));
		c->rows = gf_xreallocarray(c->rows, c->nlanes + 1,
					   sizeof(*c->rows));
		memset(c->rows[i + 1], ' ', COLUMNS);
		c->rows[i + 1][COLUMNS] = '\0';
	}
	c->free_s[i] = m->end_s;
	return i;
}

static void draw_message(struct chart *c, size_t index)
{
	const struct gf_predicted_message *m =
		&c->plan->predicted->messages[index];
	size_t row = lane_of(c, m) + 1, from = column(c, m->start_s);
	size_t to = column(c, m->end_s), width, n;
	char label[32];

	if (from == COLUMNS)
		from--;
	if (to <= from)
		to = from + 1;
	width = to - from;
	fill(c, row, m->start_s, m->end_s, '=');
	c->rows[row][to - 1] = ']';
	c->rows[row][from] = width > 1 ? '[' : '|';
	n = (size_t)snprintf(label, sizeof(label), "%zu", index);
	if (n + 2 <= width)
		memcpy(&c->rows[row][from + 1], label, n);
}

static void trim(char *row)
{
	size_t n = strlen(row);

	while (n > 0 && row[n - 1] == ' ')
		row[--n] = '\0';
}

void gf_plan_chart(const struct gf_plan *p, struct gf_text *out)
{
	struct chart c = {.plan = p, .end_s = p->predicted->iteration_s};
	size_t i;

	c.rows = gf_xcalloc(1, sizeof(*c.rows));
	memset(c.rows[0], ' ', COLUMNS);
	draw_compute(&c);
	for (i = 0; i < p->nmessages; i++)
		draw_message(&c, i);
	for (i = 0; i <= c.nlanes; i++) {
		trim(c.rows[i]);
		if (i == 0)
			gf_text_addf(out, "compute  %s\n", c.rows[i]);
		else
			gf_text_addf(out, "lane %-3zu %s\n", i, c.rows[i]);
	}
	gf_text_addf(out, "         0%*.6g s\n", COLUMNS - 3, c.end_s);
	free(c.rows);
	free(c.free_s);
}
