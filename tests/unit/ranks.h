/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_RANKS_H
#define GF_TESTS_RANKS_H

#include <pthread.h>
#include <unistd.h>

#include "local.h"
#include "test.h"

/* Runs body once per rank, each on a thread with its own local communicator, which is closed
 * afterwards. `over` (optional) puts another transport on top of it first. */
struct ranks_thread {
	pthread_t thread;
	struct gf_comm *comm;
	int (*over)(struct gf_comm *below, struct gf_comm **comm, struct gf_error *err);
	void (*body)(struct gf_comm *comm, void *ctx);
	void *ctx;
};

static void *ranks_thread_main(void *arg)
{
	struct ranks_thread *t = arg;
	struct gf_error err = {""};

	if (t->over && t->over(t->comm, &t->comm, &err))
		EXPECT(0, "%s", err.text);
	t->body(t->comm, t->ctx);
	return NULL;
}

static inline void on_ranks_over(int ranks,
				 int (*over)(struct gf_comm *below, struct gf_comm **comm,
					     struct gf_error *err),
				 void (*body)(struct gf_comm *comm, void *ctx), void *ctx)
{
	struct ranks_thread threads[64];
	struct gf_comm *comms[64];
	struct gf_error err = {""};
	int i;

	if (gf_comm_local_new(ranks, comms, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	for (i = 0; i < ranks; i++) {
		threads[i] = (struct ranks_thread){
			.comm = comms[i], .over = over, .body = body, .ctx = ctx};
		if (pthread_create(&threads[i].thread, NULL, ranks_thread_main, &threads[i]))
			abort();
	}
	for (i = 0; i < ranks; i++)
		pthread_join(threads[i].thread, NULL);
	for (i = 0; i < ranks; i++)
		gf_comm_close(threads[i].comm);
}

static inline void on_ranks(int ranks, void (*body)(struct gf_comm *comm, void *ctx), void *ctx)
{
	on_ranks_over(ranks, NULL, body, ctx);
}

/* A test that waits for ever is ended by SIGALRM. `seconds` is ample on a quiet machine; a busy
 * one, or a sanitizer, may take five times as long. */
static inline void watchdog(unsigned seconds)
{
	alarm(5 * seconds);
}

#endif
