/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_DEVICE_SEND_H
#define GF_CONTEST_DEVICE_SEND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "profiler/contest/device.h"
#include "collectives/schedule.h"
#include "transport/comm.h"
#include "runtime/engine/burst.h"

/*
 * An all-reduce whose messages lie on GPUs, for profiler/contest/contest.h: memory on the device,
 * the inputs and what is worked on, and lanes of NCCL's between the ranks. Times are the device's
 * own, between two events; the host waits for the second, and gives up as it does between hosts
 * (comm->on_wait).
 */
struct gf_contest_gpu;

/* Collective. Room for `bytes` bytes; lanes only if messages go by NCCL. */
int gf_contest_gpu_open(const struct gf_contest_device *device, struct gf_comm *comm, int lanes,
			size_t bytes, struct gf_contest_gpu **d, struct gf_error *err);
/* Collective: room for more. The old contents are lost; the new ones are zeros, and so are their
 * sums. */
int gf_contest_gpu_reserve(struct gf_contest_gpu *d, size_t bytes, struct gf_error *err);
/* NULL is allowed. Collective, unless something has failed. */
void gf_contest_gpu_close(struct gf_contest_gpu *d);

/* Moves and waits: inputs up, inputs in place, results down, or data up there; host: the other end,
 * but for what moves on the device. */
enum gf_contest_move { GF_MOVE_INPUTS, GF_MOVE_IN_PLACE, GF_MOVE_DOWN, GF_MOVE_UP };
int gf_contest_gpu_move(struct gf_contest_gpu *d, enum gf_contest_move what, void *host,
			size_t bytes, struct gf_error *err);

/* Messages by NCCL, one after the other in the memory, started as runtime/engine/burst.h says, on
 * that many of the lanes. The first one's tuning is that of all. Collective. -ENOTSUP: other
 * elements than f32's sums, or no way; -EINVAL, -EIO: NCCL cannot be told that here. */
struct gf_contest_send;
int gf_contest_send_new(struct gf_contest_gpu *d, const struct gf_burst_message *messages, size_t n,
			int lanes, struct gf_contest_send **s, struct gf_error *err);
/* Any steps, of which n go at once on as many of the lanes, each in memory of its own.
 * Collective. */
int gf_contest_send_steps(struct gf_contest_gpu *d, const struct gf_schedule *schedule, int n,
			  struct gf_contest_send **s, struct gf_error *err);
void gf_contest_send_free(struct gf_contest_send *s);
/* A run in two halves, between which the ranks meet: all of it is enqueued, and held back; then it
 * goes, and only now its time begins. So the host's launches do not count, as in training, where
 * the host is ahead. refill: the inputs are put in place first, as part of the time. After a
 * failure in between, free. */
int gf_contest_send_load(struct gf_contest_send *s, bool refill, struct gf_error *err);
int gf_contest_send_go(struct gf_contest_send *s, double *time_s, struct gf_error *err);
/* Sends while other work runs: begin enqueues the messages after an event of the caller's, end
 * waits for them. ends_s: the end of each message, counted from a timed event that has happened
 * (NULL: not wanted). */
int gf_contest_send_begin(struct gf_contest_send *s, struct gf_gpu_event *after,
			  struct gf_error *err);
int gf_contest_send_end(struct gf_contest_send *s, struct gf_gpu_event *from, double *ends_s,
			struct gf_error *err);
/* Its own; borrowed. */
struct gf_burst *gf_contest_send_burst(const struct gf_contest_send *s);
/* Bytes that this rank sends; 0: NCCL's own affair. */
size_t gf_contest_send_wire_bytes(const struct gf_contest_send *s);

/* Can such a message go by NCCL? Not collective. */
int gf_contest_send_check(const struct gf_burst_message *m, const struct gf_comm *comm,
			  struct gf_error *err);

#endif
