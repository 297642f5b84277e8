/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_LIVENESS_H
#define GF_COMM_LIVENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "comm/comm.h"

/*
 * Finds out which ranks are still alive, and how far each has come. In a ring a
 * rank waits for its neighbour, which is more often another victim than the
 * culprit. So a rank that has waited long asks all ranks. Each rank answers
 * from the thread that owns its communicator, as long as that thread runs. A
 * rank that gives up tells the other ranks, which then need not ask.
 *
 * Questions and answers are notes of fixed size on a channel of their own.
 * Neither sending nor receiving ever waits.
 */
enum gf_phase {
	GF_PHASE_IDLE,     /* between steps */
	GF_PHASE_GRADIENT, /* the next message waits for this rank's own
			    * gradients, none is under way */
	GF_PHASE_NETWORK,  /* messages are under way */
	GF_PHASE_CALL,     /* in something that all ranks do together */
	GF_PHASE_FAILED,   /* has given up */
};

/* How far a rank has come. */
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
/* Is a note of this rank's still on its way? */
bool gf_liveness_pending(const struct gf_liveness *l);
/* The standing that a rank has sent, as an answer or unasked, since it was last
 * asked; NULL: none. Borrowed until the next poll. */
const struct gf_standing *gf_liveness_heard(const struct gf_liveness *l,
					    int rank);
/* The lowest rank that said it has given up; -1: none. */
int gf_liveness_failed(const struct gf_liveness *l);

#endif
