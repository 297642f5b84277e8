/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPLAY_REPLAY_RUN_H
#define GF_REPLAY_REPLAY_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simulator/replay/fluid.h"
#include "simulator/replay/replay.h"

/* A replay under way: what replay_run.c makes and replay.c runs. */

#define GF_REPLAY_NOBODY SIZE_MAX

enum gf_replay_event {
	GF_REPLAY_BEGIN,   /* a rank takes up a message */
	GF_REPLAY_FLOW,    /* a transfer's latency has passed */
	GF_REPLAY_FLOWN,   /* all its bytes are there */
	GF_REPLAY_ENCODED, /* a rank has encoded what it sends */
	GF_REPLAY_REDUCED, /* a rank's reduction has ended */
	GF_REPLAY_READY,   /* a rank's backward has made a message ready */
};

struct gf_replay_node { /* a step of one rank of one message */
	const struct gf_step *step;
	int rank;
	uint32_t message;
	uint32_t waiting;  /* dependencies not done */
	uint32_t unposted; /* those that keep a receive from being posted */
	uint8_t flags;
	size_t partner; /* of a send or receive */
	size_t stream;  /* of a send */
	size_t next;    /* the send that waits after it in its stream */
	size_t first_user;
	uint32_t nusers;
	struct gf_replay_times *times;
};

/* Messages of one schedule between two ranks move one after the other. */
struct gf_replay_stream {
	size_t moving, last; /* sends, or GF_REPLAY_NOBODY */
};

/* The gate of a replay with compute: replay_run.c. */
struct gf_replay_gate {
	size_t next;     /* message to be admitted */
	bool foretold;   /* when, as things stand */
	int active;      /* messages admitted and not ended */
	size_t first;    /* all before it have ended */
	bool *over;      /* per message: it has ended */
	bool *begun;     /* [message * ranks + rank] */
	size_t *left;    /* steps of a message that have not ended */
	size_t *waiting; /* ranks that have not taken up an admitted message */
	/* per rank: */
	int *busy;         /* messages under way */
	double *slowdown;  /* of its backward by these */
	double *since_s;   /* when that last changed */
	double *lag_s;     /* what backward has lost to overlap */
	uint32_t *version; /* of what was foretold */
};

struct gf_replay_run {
	const struct gf_replay_input *in;
	struct gf_replay_result *out;
	size_t *first; /* [message * ranks + rank]: its first node */
	struct gf_replay_node *nodes;
	size_t nnodes, ndone;
	size_t *users;  /* nodes that depend on a node */
	double *free_s; /* per rank: when its processor is free */
	struct gf_replay_stream *streams;
	size_t nstreams, streams_capacity;
	double now_s;
	double reduce_s_per_byte; /* of what came from no other rank */
	struct gf_fluid fluid;
	struct gf_events events;
	size_t *todo; /* nodes to look at, now, in this order */
	size_t looked, ntodo, todo_capacity;
	struct gf_replay_gate gate;
};

/* -EINVAL: the schedules do not fit together. Release in either case, which says when backward
 * ended; the result, in r->out, is the caller's. */
int gf_replay_run_init(struct gf_replay_run *r, const struct gf_replay_input *in,
		       struct gf_replay_result *out, struct gf_error *err);
void gf_replay_run_release(struct gf_replay_run *r);

/* For an event GF_REPLAY_READY: whether its rank takes up its message now. */
bool gf_replay_gate_ready(struct gf_replay_run *r, const struct gf_event *event);
/* How long backward slows the message from now on, as things stand: until the later of two ranks
 * has ended its own (peer < 0: one rank). 0: it does not. */
double gf_replay_gate_beside_s(const struct gf_replay_run *r, size_t message, int rank, int peer);
/* A step of the message has ended. */
void gf_replay_gate_done(struct gf_replay_run *r, size_t message);

#endif
