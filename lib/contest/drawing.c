/* SPDX-License-Identifier: BSD-3-Clause */
#include "contest/drawing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "contest/contest.h"

int gf_contest_timeline_begin(struct gf_contest_timeline *t,
			      struct gf_comm *comm, struct gf_error *err)
{
	return gf_trace_compare_clocks(comm, &t->offset, err);
}

int gf_contest_timeline_write(const struct gf_contest_timeline *t,
			      struct gf_comm *comm, const char *path,
			      struct gf_error *err)
{
	char *text = NULL;
	int rc = gf_trace_gather(&t->trace, comm, &t->offset, "gf-allreduce",
				 &text, err);

	if (rc)
		return rc;
	if (text)
		rc = gf_file_write(path, text, strlen(text), err);
	free(text);
	return gf_comm_agree(comm, rc, err);
}

void gf_contest_timeline_release(struct gf_contest_timeline *t)
{
	gf_trace_release(&t->trace);
}

void gf_contest_record(struct gf_contest *c, size_t i)
{
	if (c->of[i].burst)
		gf_burst_record(c->of[i].burst, true);
}

void gf_contest_recorded(struct gf_contest *c, size_t i)
{
	c->of[i].span = c->latest;
	if (c->of[i].burst)
		gf_burst_record(c->of[i].burst, false);
}

/* The whole all-reduce of a contestant, and its steps if it has any. */
static void draw(const struct gf_contest *c, size_t i,
		 const struct gf_contest_row *row)
{
	struct gf_contest_timeline *t = c->b->config.timeline;
	double shift_s = gf_trace_shift_s(&t->offset);
	const struct gf_contest_span *span = &c->of[i].span;
	char args[96];

	snprintf(args, sizeof(args), "{\"bytes\": %zu, \"messages\": %zu}",
		 row->size_bytes, row->messages);
	gf_trace_slice(&t->trace, c->b->config.comm->rank, GF_TRACE_MESSAGES,
		       "message", row->way.algorithm->name,
		       span->start_s - shift_s, span->time_s, args);
	if (c->of[i].burst)
		gf_burst_draw(c->of[i].burst, shift_s, &t->trace);
}

void gf_contest_draw(const struct gf_contest *c,
		     const struct gf_contest_row *rows)
{
	struct gf_contest_timeline *t = c->b->config.timeline;
	const struct gf_comm *comm = c->b->config.comm;
	size_t i;

	gf_trace_release(&t->trace);
	gf_trace_name_rows(&t->trace, comm->rank, comm->ranks);
	for (i = 0; i < c->n; i++)
		draw(c, i, &rows[i]);
}
