/* SPDX-License-Identifier: BSD-3-Clause */
/* A job knows which thread of which process is in a call; and why the last call
 * of a thread failed. */
#include <errno.h>
#include <pthread.h>

#include "embed/embedded.h"
#include "base/timeout.h"

#define API __attribute__((visibility("default")))

static _Thread_local struct gf_error last;

struct gf_error *gf_embed_error(void)
{
	return &last;
}

API const char *gradflow_error(void)
{
	return last.text;
}

API const char *gradflow_version(void)
{
	return GF_VERSION;
}

/* Counted up in a child: threads are not forked. */
static _Atomic unsigned long generation = 1;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void count_child(void)
{
	atomic_fetch_add(&generation, 1);
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, count_child);
}

void gf_job_init(struct gf_job *g, struct gf_comm *comm, size_t ntensors,
		 double wait_s)
{
	pthread_once(&watched, watch_forks);
	g->comm = comm;
	g->ntensors = ntensors;
	g->generation = atomic_load(&generation);
	gf_watch_init(&g->watch, comm, wait_s > 0 ? wait_s : GF_TIMEOUT_S);
	g->watch.self.phase = GF_PHASE_CALL;
}

bool gf_job_is_here(const struct gf_job *g)
{
	return g && g->generation == atomic_load(&generation);
}

int gf_job_reach(struct gf_job *g, const char *call, struct gf_error *err)
{
	const char *other = NULL;

	if (!g)
		return gf_error_set(err, -EINVAL,
				    "%s: want an open handle, got NULL", call);
	if (!gf_job_is_here(g))
		return gf_error_set(err, -EINVAL,
				    "%s: a forked child has nothing open: open "
				    "after the fork",
				    call);
	if (!atomic_compare_exchange_strong(&g->calling, &other, call))
		return gf_error_set(err, -EBUSY,
				    "%s: another thread is in %s: one at a "
				    "time",
				    call, other);
	g->locale = gf_locale_enter();
	return 0;
}

int gf_job_no_memory(struct gf_job *g, const struct gf_heap_guard *guard)
{
	gf_error_set(&last, -ENOMEM, "%s: %s", atomic_load(&g->calling),
		     guard->line);
	g->failed = 0; /* what was before is of less account */
	if (g->exchange)
		gf_exchange_fail(g->exchange, -ENOMEM, &last);
	return gf_job_leave(g, -ENOMEM);
}

int gf_job_leave(struct gf_job *g, int rc)
{
	if (rc == -ENOMEM)
		(void)gf_job_keep(g, rc, &last);
	gf_locale_leave(g->locale);
	atomic_store(&g->calling, NULL);
	return rc;
}
