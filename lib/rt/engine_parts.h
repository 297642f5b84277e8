/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RT_ENGINE_PARTS_H
#define GF_RT_ENGINE_PARTS_H

#include <pthread.h>
#include <stdint.h>

#include "coll/schedule.h"
#include "comm/exec.h"
#include "rt/engine.h"
#include "rt/watch.h"

/*
 * The engine's inside: engine.c is what the compute thread calls, engine_new.c
 * prepares, engine_thread.c is the communication thread.
 *
 * What both threads touch is under `lock`; the rest belongs to the one named.
 */
struct gf_engine_message {
	/* set once */
	float *data;
	size_t count_elems, ntensors;
	bool simultaneous, at_end;
	struct gf_schedule schedule;
	struct gf_exec_run *run; /* NULL: one rank, nothing to do */
	/* under lock */
	size_t left; /* tensors that are not ready */
	bool ended;
	struct gf_message_times times;
	/* communication thread */
	uint64_t moves;
	double stuck_s;
};

struct gf_engine_call {
	int (*fn)(struct gf_comm *comm, void *ctx, struct gf_error *err);
	void *ctx;
	struct gf_error *err;
	int rc;
	bool wanted;
};

struct gf_engine {
	/* set once */
	struct gf_comm *comm;
	const struct gf_plan *plan;
	struct gf_pool *pool;
	int lanes;
	size_t nmessages;
	struct gf_engine_message *messages;
	size_t *message_of; /* per tensor */
	pthread_t thread;
	bool has_thread;

	pthread_mutex_t lock;
	pthread_cond_t wake; /* for the communication thread: there is work */
	pthread_cond_t news; /* for the others: something has ended */
	/* under lock */
	bool running, quit;
	bool *tensor_ready;
	bool backward_ended;
	uint64_t step; /* begun so far */
	size_t next;   /* the first message that has not been started */
	size_t nended;
	int nactive; /* <= lanes; changed by the communication thread */
	struct gf_engine_call call;
	int rc; /* the failure that ended it, with its reason */
	struct gf_error reason;

	/* communication thread */
	size_t *active; /* nactive messages under way, lanes of room */
	struct gf_exec *exec;
	struct gf_watch watch;

	/* compute thread */
	struct gf_message_times *finished; /* of the last finished step */
};

/* May message `next` start? The start rule; under lock. */
bool gf_engine_may_start(const struct gf_engine *e);
/* One rank: whatever may start has ended; under lock. */
void gf_engine_advance_alone(struct gf_engine *e);
void *gf_engine_thread(void *engine);

#endif
