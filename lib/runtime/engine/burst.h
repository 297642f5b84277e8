/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_ENGINE_BURST_H
#define GF_ENGINE_BURST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "transport/comm.h"
#include "transport/message_element.h"
#include "documents/trace.h"
#include "transport/watch.h"
#include "collectives/way.h"

/*
 * Messages that are all there already: an engine (runtime/engine/engine.h) without a plan, on the
 * thread that calls. A benchmark of the all-reduce itself wants no hand-over to a communication
 * thread. Between GPUs the engine is the caller's, streams, and several bursts share it.
 *
 * The watch (transport/watch.h) belongs to the caller and lives for as long as bursts are sent; its
 * step counts the sends, and stands in every failure beside the message. After a failure the
 * communicator is broken.
 */

struct gf_burst_message {
	struct gf_way way;
	struct gf_element element;
	enum gf_coll_half half; /* zero: the whole */
	/* Of a half; borrowed, NULL: the algorithm's own parts. */
	const struct gf_layout *owners;
	size_t count_elems;
	bool simultaneous;
	/* Between GPUs, both borrowed: sets, at a place of their own; or steps of f32, in place of
	 * a way. */
	const struct gf_lane_sets *sets;
	void *data;
	const struct gf_schedule *schedule;
};

struct gf_burst_config {
	struct gf_comm *comm;   /* borrowed */
	struct gf_watch *watch; /* borrowed */
	const struct gf_burst_message *messages;
	size_t nmessages;
	int lanes;                /* >= 1 */
	size_t segment_bytes;     /* transfers are cut at; 0: a good size */
	struct gf_engine *engine; /* borrowed, of as many lanes; or NULL */
};

struct gf_burst;

/* Collective, all ranks alike. -EINVAL, -ENOTSUP: the algorithm cannot do it.
 */
int gf_burst_new(const struct gf_burst_config *config, struct gf_burst **b, struct gf_error *err);
/* NULL is allowed. */
void gf_burst_free(struct gf_burst *b);

/* Reduces all messages, which lie one after the other at data; their elements are of one size.
 * Between GPUs that is only enqueued. Memory from the communicator's buffer_alloc goes fastest. */
int gf_burst_send(struct gf_burst *b, void *data, struct gf_error *err);

/* Proves the schedules of all messages (collectives/prove.h), on rank 0, while nothing is under
 * way: a line of `out` for each. Collective; all ranks get the same answer. 1: they are at fault;
 * -ENOTSUP: too large for a proof, or without steps; -EINVAL: ranks differ. */
int gf_burst_prove(struct gf_burst *b, struct gf_text *out, struct gf_error *err);

/* From now on sends are recorded, step by step; or no more, as at first. */
void gf_burst_record(struct gf_burst *b, bool on);
/* Draws what the last send that was recorded did (runtime/traces/rank_traces.h); nothing of the
 * transport's own all-reduce. */
void gf_burst_draw(const struct gf_burst *b, double shift_s, struct gf_trace *trace);

/* The bytes that this rank has sent on the wire for all messages of the last burst. The bytes that
 * the transport's own all-reduce sends are unknown. */
uint64_t gf_burst_wire_bytes(const struct gf_burst *b);

#endif
