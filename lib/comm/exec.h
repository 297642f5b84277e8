/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_EXEC_H
#define GF_COMM_EXEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "coll/schedule.h"
#include "comm/comm.h"

/*
 * Runs schedules over a communicator, many at once, none blocking. One thread
 * calls it. Each running schedule has its own channel, so that concurrent
 * messages never meet each other's traffic.
 *
 * Receives that reduce land in the run's own scratch and may be posted before
 * the steps they depend on are done; reductions happen in the progress call.
 */
struct gf_exec;
struct gf_exec_run; /* a schedule prepared for a size: reusable, not shared */

struct gf_exec *gf_exec_new(struct gf_comm *comm);
void gf_exec_free(struct gf_exec *x);

/* Prepares request slots and scratch once; the schedule is borrowed. channel
 * must be the same on all ranks and unique among runs in flight. */
int gf_exec_run_new(struct gf_exec *x, const struct gf_schedule *s,
		    uint32_t channel, struct gf_exec_run **run,
		    struct gf_error *err);
void gf_exec_run_free(struct gf_exec_run *run);

/* Starts it on a buffer of count_elems f32; at most once at a time. */
int gf_exec_start(struct gf_exec_run *run, float *data, struct gf_error *err);
/* Moves every started run on; *moved says whether anything happened. */
int gf_exec_progress(struct gf_exec *x, bool *moved, struct gf_error *err);
bool gf_exec_done(const struct gf_exec_run *run);
/* What it waits for, for messages: peer, step index, bytes. */
void gf_exec_waiting_for(const struct gf_exec_run *run, int *peer,
			 size_t *step);
/* Progress until done or timeout_s (<= 0: no limit); -ETIMEDOUT names peer and
 * step. */
int gf_exec_wait(struct gf_exec *x, struct gf_exec_run *run, double timeout_s,
		 struct gf_error *err);

#endif
