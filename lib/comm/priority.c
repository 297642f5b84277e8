/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/priority.h"

#include <signal.h>
#include <sys/resource.h>

/* Compute weighs a ninth of a communication thread: after 100 us of work, that
 * thread has made up for them in a sleep of 11 us. */
enum { LOWER_BY = 10 };

struct start {
	void *(*main)(void *ctx);
	void *ctx;
	pthread_t id;
	int status;
	bool done;
};

/* The thread that starts threads. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool alive;
	struct start *wanted; /* or NULL */
} starter = {.lock = PTHREAD_MUTEX_INITIALIZER,
	     .change = PTHREAD_COND_INITIALIZER};

bool gf_priority_crowded(const struct gf_comm *c, int compute_threads)
{
	return c->crowded || (c->processors > 0 &&
			      c->processors < compute_threads + 1 - 1e-6);
}

static void *start_threads(void *unused)
{
	struct start *s;

	(void)unused;
	pthread_mutex_lock(&starter.lock);
	for (;;) {
		while (!starter.wanted)
			pthread_cond_wait(&starter.change, &starter.lock);
		s = starter.wanted;
		s->status = pthread_create(&s->id, NULL, s->main, s->ctx);
		s->done = true;
		starter.wanted = NULL;
		pthread_cond_broadcast(&starter.change);
	}
	return NULL;
}

/* Under lock. It lasts as long as the process. */
static bool have_starter(void)
{
	sigset_t all, before;
	pthread_t id;

	if (starter.alive)
		return true;
	/* signals are for the threads that know what to do with them */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	starter.alive = !pthread_create(&id, NULL, start_threads, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (starter.alive)
		pthread_detach(id);
	return starter.alive;
}

void gf_priority_give_way(void)
{
	pthread_mutex_lock(&starter.lock);
	/* a refusal costs promptness, nothing else */
	if (have_starter())
		(void)setpriority(PRIO_PROCESS, 0,
				  getpriority(PRIO_PROCESS, 0) + LOWER_BY);
	pthread_mutex_unlock(&starter.lock);
}

/* Under lock. */
static void ask(struct start *s)
{
	while (starter.wanted)
		pthread_cond_wait(&starter.change, &starter.lock);
	starter.wanted = s;
	pthread_cond_broadcast(&starter.change);
	while (!s->done)
		pthread_cond_wait(&starter.change, &starter.lock);
}

int gf_priority_start(pthread_t *id, void *(*main)(void *ctx), void *ctx)
{
	struct start s = {.main = main, .ctx = ctx};

	pthread_mutex_lock(&starter.lock);
	if (starter.alive)
		ask(&s);
	else
		s.status = pthread_create(&s.id, NULL, main, ctx);
	pthread_mutex_unlock(&starter.lock);
	*id = s.id;
	return s.status;
}
