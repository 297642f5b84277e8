/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/simulator/replay: replays of schedules, message by message, on a topology. */
#ifndef GF_REPLAY_REPLAY_H
#define GF_REPLAY_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "documents/cost_line.h"
#include "documents/plan.h"
#include "documents/topology.h"
#include "simulator/replay/fluid.h"

/*
 * Charges the schedules of all ranks time on a topology, event by event.
 *
 * A message starts when its send has started and its receive is posted (schedule.h, POSTING). Its
 * latency passes, using no bandwidth; then its bytes flow at a fair share of the links on the way
 * (simulator/replay/fluid.h). Messages of one schedule between the same two ranks flow one after
 * the other. A rank's processor does one thing at a time: it encodes before a send starts, and
 * decodes and reduces what came. A reduction takes gamma; copies take no time. The
 * result is the algorithm's cost for one message and one segment on a uniform network.
 */
/* What an element of a schedule takes on the wire. */
struct gf_replay_element {
	double bytes;
	const struct gf_codec *codec; /* that has blocks; else NULL */
};
double gf_replay_bytes(const struct gf_replay_element *e, size_t count);

struct gf_replay_message {
	const struct gf_schedule *ranks; /* in->ranks of them, borrowed */
	struct gf_replay_element element;
	/* by every rank's processor: per element, and once before the first step */
	double encode_s, decode_s, before_s;
	double start_s; /* where nothing is computed */
	/* where it is: */
	enum gf_mode mode;
	double work_s;                           /* backward work that makes it ready */
	/* compute stands still before that much of its work until the message has ended; 0: not */
	double needed_s;
	const struct gf_beside_backward *mutual; /* or NULL: compute's */
	double startup_s;                        /* the model's, which backward delays besides */
	/* What gf_verify_shape said of the ranks, borrowed; NULL: it is asked. */
	uint32_t **partners;
};

/*
 * Compute beside the messages: these start by the rules of the step model (simulator/step.h), each
 * rank when its own backward has come that far.
 */
struct gf_replay_compute {
	const double *forward_end_s; /* per rank */
	double backward_s;
	double slowdown; /* of backward while messages are active; >= 1, where they say no more */
	int lanes;
	const double *factor; /* per rank: its compute takes so many times as long; or NULL */
};

struct gf_replay_input {
	int ranks;
	/* >= 1 level; ranks beyond them meet at the outermost. A rank's processor takes a level's
	 * gamma for what came by it, and the greatest for the rest. */
	const struct gf_cost_net *net;
	const struct gf_replay_message *messages; /* in flight together */
	size_t nmessages;
	/* Per rank, or NULL: >= 1, by how much its links and its reductions are slower; and when it
	 * first takes part. */
	const double *slowdown, *late_s;
	const struct gf_slow_link *slow_links;
	size_t nslow_links;
	const struct gf_replay_compute *compute; /* or NULL */
};

struct gf_replay_times {
	double start_s; /* a send starts, a receive is posted */
	double moves_s; /* both are there, and nothing is before them on their way; of a local step
			 * start_s */
	double end_s;
};

struct gf_replay_result {
	double end_s;
	double backward_end_s;                   /* the last rank's, where there is compute */
	double *message_start_s, *message_end_s; /* nmessages */
	/* steps[message][rank][step] */
	struct gf_replay_times ***steps;
	size_t nmessages;
	int ranks;
};

/* -EINVAL: the schedules do not fit together, or wait for ever. On success the caller releases the
 * result. */
int gf_replay(const struct gf_replay_input *in, struct gf_replay_result *out, struct gf_error *err);
void gf_replay_result_release(struct gf_replay_result *r);

#endif
