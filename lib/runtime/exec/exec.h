/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/runtime/exec: runs one rank's schedule over a transport. */
#ifndef GF_EXEC_EXEC_H
#define GF_EXEC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collectives/algorithm.h"
#include "collectives/schedule.h"
#include "transport/comm.h"
#include "transport/message_element.h"

/*
 * Runs schedules over a communicator, many at once, none blocking. One thread calls it. Each
 * running schedule has its own channel, so that concurrent messages never meet each other's
 * traffic.
 *
 * Elements are those of transport/message_element.h: numbers of a type under an operation, f32
 * under a codec, or sparse sets. Under a codec, every hop is encoded and decoded as
 * collectives/schedule.h, CODECS, tells.
 *
 * Receives that reduce or decode land in the run's own staging memory and are posted ahead of the
 * steps they depend on, in program order, as far as that memory goes; reductions happen in the
 * progress call. Everything a run needs is allocated when it is made, nothing while it runs.
 */
struct gf_exec;
struct gf_exec_run; /* a schedule prepared for a size: reusable, not shared */

/* The input of gf_exec_run_new. */
struct gf_exec_config {
	/* Borrowed as long as the run lives; lossy if the element is. NULL: the transport's own
	 * all-reduce (`library`), all ranks start theirs in the same order. */
	const struct gf_schedule *schedule;
	size_t count_elems;        /* without a schedule */
	struct gf_element element; /* zero: f32 sums */
	/* Of the schedule; only an average cares: the whole message is divided, or what this rank
	 * owns after the reduce-scatter. */
	enum gf_coll_half half;
	/* The same on all ranks and unique among runs in flight; at most GF_CHANNEL_LAST. Runs that
	 * are never in flight together (two halves of one message) may share one. */
	uint32_t channel;
};

struct gf_exec *gf_exec_new(struct gf_comm *comm);
/* After its runs. */
void gf_exec_free(struct gf_exec *x);
/* Staging memory of the runs made from now on, in bytes (4 MiB to begin with; a run has room for at
 * least two receives, one if it is 0; under a codec for as many sends, too). */
void gf_exec_staging_bytes(struct gf_exec *x, size_t staging_bytes);

/*
 * Where to cut the transfers of a message of numbers, in elements: short enough that parts travel
 * while others are reduced, long enough that their number costs little. Within one host by what a
 * cache holds; otherwise by what goes without asking the receiver first. The same on all ranks.
 */
size_t gf_exec_segment_elems(const struct gf_comm *c, const struct gf_element *element,
			     size_t count_elems);

/* Can the stages be carried out as they are named, between processors over that communicator?
 * -ENOTSUP names the stage. */
int gf_exec_stages_check(struct gf_comm *c, const struct gf_coll_args *args, struct gf_error *err);

/* Prepares request slots and memory once. -EINVAL: it does not fit this rank or its element;
 * -ENOTSUP: the transport has no all-reduce of such elements.
 */
int gf_exec_run_new(struct gf_exec *x, const struct gf_exec_config *config,
		    struct gf_exec_run **run, struct gf_error *err);
/* NULL is allowed; a run that is under way is abandoned. */
void gf_exec_run_free(struct gf_exec_run *run);

/* A step's moments, by gf_clock_s; 0: not reached. A transfer begins when it is posted. A transfer
 * into staging memory has landed when its bytes are there. Then they are worked on (added or
 * decoded) until the step ends. A step that is done on the spot is worked on, too. Other transfers
 * end when their bytes are there, or gone. */
enum gf_exec_moment {
	GF_EXEC_BEGUN,
	GF_EXEC_LANDED,
	GF_EXEC_WORKED,
	GF_EXEC_ENDED,
	GF_EXEC_MOMENTS
};
struct gf_exec_times {
	double at_s[GF_EXEC_MOMENTS];
};
/* From now on each start notes them, in as many entries as the schedule has steps; borrowed. NULL,
 * as at first: it does not look at the clock. */
void gf_exec_record(struct gf_exec_run *run, struct gf_exec_times *times);

/* Whose sets the next starts reduce: the context of the element's `reduce`. */
void gf_exec_reduce_for(struct gf_exec_run *run, void *ctx);
/* Starts it on a buffer of count_elems elements; at most once at a time. */
int gf_exec_start(struct gf_exec_run *run, void *data, struct gf_error *err);
/* Moves every started run on; *moved says whether anything happened. A run that fails is abandoned,
 * the others stay. */
int gf_exec_progress(struct gf_exec *x, bool *moved, struct gf_error *err);
/* Seconds that may pass until the next call of gf_exec_progress without making the runs slower, as
 * far as runtime/exec/pace.h can tell; 0: call it soon. */
double gf_exec_free_s(const struct gf_exec *x);
/* It was started, and has ended without failure. */
bool gf_exec_done(const struct gf_exec_run *run);
/* It was the one that failed. */
bool gf_exec_failed(const struct gf_exec_run *run);
/* Grows whenever a step begins or ends: tells a slow run from a stuck one. */
uint64_t gf_exec_moves(const struct gf_exec_run *run);
/* Bytes that this rank has put on the wire since the last start, after the codec; without a
 * schedule: unknown, 0. */
uint64_t gf_exec_wire_bytes(const struct gf_exec_run *run);
/* Seconds that codecs and the merging of sets have taken in all runs, on the thread that calls
 * this; sums of plain numbers belong to the transfer. */
double gf_exec_coding_s(const struct gf_exec *x);
/* The step that a run waits for, to be named in error texts: the first in program order that is
 * under way, and its peer; -1 and 0 if there is none. */
void gf_exec_waiting_for(const struct gf_exec_run *run, int *peer, size_t *step);
/* Progress until done; -ETIMEDOUT when this run has not moved for timeout_s (<= 0: no limit) names
 * step and peer. */
int gf_exec_wait(struct gf_exec *x, struct gf_exec_run *run, double timeout_s,
		 struct gf_error *err);

#endif
