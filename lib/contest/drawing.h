/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_DRAWING_H
#define GF_CONTEST_DRAWING_H

#include <stddef.h>

#include "base/error.h"
#include "comm/comm.h"
#include "trace/rank_traces.h"

/*
 * A drawing of the last repeat in place of each contestant, step by step
 * (trace/rank_traces.h). Each size replaces the one before, so that the last
 * size stays. Nothing else is recorded. Only messages that the executor sends
 * have steps; others are drawn as a whole.
 */
struct gf_contest_timeline {
	struct gf_trace trace;
	struct gf_clock_offset offset;
};

/* Collective, before the first message: compares the clocks. */
int gf_contest_timeline_begin(struct gf_contest_timeline *t,
			      struct gf_comm *comm, struct gf_error *err);
/* Collective. Rank 0 writes the file. */
int gf_contest_timeline_write(const struct gf_contest_timeline *t,
			      struct gf_comm *comm, const char *path,
			      struct gf_error *err);
void gf_contest_timeline_release(struct gf_contest_timeline *t);

struct gf_contest;
struct gf_contest_row;

/* Around the repeat of contestant i that is recorded. */
void gf_contest_record(struct gf_contest *c, size_t i);
void gf_contest_recorded(struct gf_contest *c, size_t i);
/* Draws all contestants, after they have ended. */
void gf_contest_draw(const struct gf_contest *c,
		     const struct gf_contest_row *rows);

#endif
