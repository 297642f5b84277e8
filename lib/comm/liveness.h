/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_LIVENESS_H
#define GF_COMM_LIVENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/comm.h"

/*
 * Who is still there, and where does everybody stand? In a ring a rank waits
 * for its neighbour, who is more often another victim than the culprit; so
 * whoever has waited long asks all ranks, and each answers from the thread
 * that owns its communicator, as long as that thread runs. A rank that gives
 * up tells the others, who then need not find out for themselves.
 *
 * A rank's words are notes of fixed size on a channel of their own. Sending
 * never blocks.
 */
enum gf_phase {
	GF_PHASE_IDLE,     /* between steps */
	GF_PHASE_GRADIENT, /* the next message waits for this rank's own
			    * gradients, none is under way */
	GF_PHASE_NETWORK,  /* messages are under way */
	GF_PHASE_CALL,     /* in something that all ranks do together */
	GF_PHASE_FAILED,   /* has given up */
};

/* Where a rank stands. */
struct gf_standing {
	uint64_t step;    /* steps begun */
	uint64_t started; /* messages of this step that have been started */
	uint64_t calls;   /* calls begun (GF_PHASE_CALL) */
	int32_t phase;
	int32_t rc; /* GF_PHASE_FAILED: why, with text */
	char text[256];
};

struct gf_liveness;

struct gf_liveness *gf_liveness_new(struct gf_comm *comm);
/* Notes on their way are abandoned. NULL is allowed. */
void gf_liveness_free(struct gf_liveness *l);

/* Answers the questions that have come and takes in the answers; cheap, to be
 * called every millisecond or so. An error is the transport's. */
int gf_liveness_poll(struct gf_liveness *l, const struct gf_standing *self,
		     struct gf_error *err);
/* Asks every other rank; older answers no longer count. */
int gf_liveness_ask(struct gf_liveness *l, const struct gf_standing *self,
		    struct gf_error *err);
/* Tells every other rank unasked. */
int gf_liveness_tell(struct gf_liveness *l, const struct gf_standing *self,
		     struct gf_error *err);
/* Is something still on its way? */
bool gf_liveness_pending(const struct gf_liveness *l);
/* What a rank answered since it was last asked, or told unasked since then;
 * NULL: nothing. Borrowed until the next poll. */
const struct gf_standing *gf_liveness_heard(const struct gf_liveness *l,
					    int rank);
/* The lowest rank that said it has given up; -1: none. */
int gf_liveness_failed(const struct gf_liveness *l);

#endif
