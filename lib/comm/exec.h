/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_EXEC_H
#define GF_COMM_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "coll/schedule.h"
#include "comm/comm.h"

/*
 * Runs schedules over a communicator, many at once, none blocking. One thread
 * calls it. Each running schedule has its own channel, so that concurrent
 * messages never meet each other's traffic.
 *
 * Receives that reduce land in the run's own staging memory and are posted
 * ahead of the steps they depend on, in program order, as far as that memory
 * goes; reductions happen in the progress call. Everything a run needs is
 * allocated when it is made, nothing while it runs.
 */
struct gf_exec;
struct gf_exec_run; /* a schedule prepared for a size: reusable, not shared */

struct gf_exec *gf_exec_new(struct gf_comm *comm);
/* After its runs. */
void gf_exec_free(struct gf_exec *x);
/* Staging memory of the runs made from now on, in bytes (4 MiB to begin with;
 * a run has room for at least two receives, one if it is 0). */
void gf_exec_staging_bytes(struct gf_exec *x, size_t staging_bytes);

/* Prepares request slots and scratch once; the schedule is borrowed. channel
 * must be the same on all ranks and unique among runs in flight; at most
 * GF_CHANNEL_LAST. */
int gf_exec_run_new(struct gf_exec *x, const struct gf_schedule *s,
		    uint32_t channel, struct gf_exec_run **run,
		    struct gf_error *err);
/* NULL is allowed; a run that is under way is abandoned. */
void gf_exec_run_free(struct gf_exec_run *run);

/* Starts it on a buffer of count_elems f32; at most once at a time. */
int gf_exec_start(struct gf_exec_run *run, float *data, struct gf_error *err);
/* Moves every started run on; *moved says whether anything happened. A run
 * that fails is abandoned, the others stay. */
int gf_exec_progress(struct gf_exec *x, bool *moved, struct gf_error *err);
/* It was started, and has ended without failure. */
bool gf_exec_done(const struct gf_exec_run *run);
/* It was the one that failed. */
bool gf_exec_failed(const struct gf_exec_run *run);
/* Grows whenever a step begins or ends: tells a slow run from a stuck one. */
uint64_t gf_exec_moves(const struct gf_exec_run *run);
/* What it waits for, for messages: the first step in program order that is
 * under way, and its peer; -1 and 0 if there is none. */
void gf_exec_waiting_for(const struct gf_exec_run *run, int *peer,
			 size_t *step);
/* Progress until done; -ETIMEDOUT when this run has not moved for timeout_s
 * (<= 0: no limit) names step and peer. */
int gf_exec_wait(struct gf_exec *x, struct gf_exec_run *run, double timeout_s,
		 struct gf_error *err);

#endif
