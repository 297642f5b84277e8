/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRANSPORT_WATCH_H
#define GF_TRANSPORT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/comm.h"

/*
 * Finds out which ranks are still alive, and how far each has come. In a ring a rank waits for its
 * neighbour, which is more often another victim than the culprit. So a rank that has waited long
 * asks all ranks. Each rank answers from the thread that owns its communicator, as long as that
 * thread runs. A rank that gives up tells the other ranks, which then need not ask.
 *
 * Questions and answers are notes of fixed size on a channel of their own. Neither sending nor
 * receiving ever waits.
 */
enum gf_phase {
	GF_PHASE_IDLE,     /* between steps */
	GF_PHASE_GRADIENT, /* the next message waits for this rank's own gradients, none is under
			    * way */
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

/* Is a note of this rank's still on its way? */
bool gf_liveness_pending(const struct gf_liveness *l);

/*
 * The watchdog of a communication thread. The watchdog counts the time in which nothing moves.
 * After half of the timeout it asks all ranks how far they have come. At the end of the timeout it
 * names the rank to blame: a rank that does not answer, or the rank that has come least far. Time
 * in which this process itself was stopped does not count.
 *
 * While the watchdog lives it is the communicator's on_wait, so that blocking calls are watched as
 * well. One that begins while another lives takes over until it is released.
 */
struct gf_watch {
	struct gf_comm *comm;                           /* borrowed */
	int (*before)(void *ctx, struct gf_error *err); /* its on_wait */
	void *before_ctx;
	struct gf_liveness *liveness;
	double timeout_s;        /* <= 0: never gives up, but answers */
	struct gf_standing self; /* kept up to date by the owner */
	double looked_s;
	bool asked;
	double asked_s; /* when, if so */
	uint64_t waits; /* the blocking wait that wait_s counts */
	double wait_s;
};

void gf_watch_init(struct gf_watch *w, struct gf_comm *comm, double timeout_s);
void gf_watch_release(struct gf_watch *w);

/* Due now and then: answers other ranks. *passed_s is the time since the last look, or 0 if that
 * was a moment ago. Fails with another rank's reason if that rank has given up, or with the
 * transport's. */
int gf_watch_look(struct gf_watch *w, double *passed_s, struct gf_error *err);
/* Nothing has moved for stuck_s. Returns 0, or -ETIMEDOUT and the rank to blame. A late rank is one
 * that has not started `message`, which is ignored in GF_PHASE_CALL. */
int gf_watch_stuck(struct gf_watch *w, double stuck_s, uint64_t message, struct gf_error *err);
/* Tells the other ranks that this rank gives up, and why. */
void gf_watch_give_up(struct gf_watch *w, int rc, const struct gf_error *why);
/* After that: asks the other ranks whether they are there, unless they have been asked. */
void gf_watch_ask(struct gf_watch *w);
/* Fills in, per rank, whether it is missing: it has neither answered nor said that it gives up.
 * Returns true once no more is to be expected: the rest cannot answer, or had the time to. */
bool gf_watch_missing(const struct gf_watch *w, bool *missing);
/* For a rank without a communication thread: gives up, and stays for a moment until the others have
 * taken the news. */
void gf_watch_leave(struct gf_watch *w, int rc, const struct gf_error *why);

#endif
