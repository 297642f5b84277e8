/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/engine/engine.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/heap.h"
#include "collectives/runnable.h"
#include "transport/processors.h"

/* --- the thread that talks to other ranks ------------------------------------ */

/* How often a thread that has given up looks for other ranks' questions. */
#define ANSWER_S 1e-2
/* How long a rank that has given up waits for others to hear of it. */
#define LINGER_S 0.2

/* No thread yet. timeout_s as in transport/watch.h, unless a watch is lent. */
static void thread_init(struct gf_comm_thread *t, struct gf_comm *comm, double timeout_s,
			struct gf_watch *watch)
{
	pthread_condattr_t attr;

	*t = (struct gf_comm_thread){.comm = comm};
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &attr);
	pthread_cond_init(&t->news, &attr);
	pthread_condattr_destroy(&attr);
	t->missing = gf_xcalloc((size_t)comm->ranks, sizeof(*t->missing));
	t->watch = watch ? watch : &t->own;
	if (watch)
		return;
	gf_watch_init(&t->own, comm, timeout_s);
	t->own.self.phase = GF_PHASE_CALL;
}

/* Stops the thread, if there is one; zeros are allowed. */
static void thread_release(struct gf_comm_thread *t)
{
	if (!t->comm)
		return;
	gf_comm_thread_stop(t);
	gf_watch_release(&t->own);
	free(t->missing);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->wake);
	pthread_cond_destroy(&t->news);
	*t = (struct gf_comm_thread){0};
}

int gf_comm_thread_start(struct gf_comm_thread *t, void *(*main)(void *ctx), void *ctx,
			 struct gf_error *err)
{
	sigset_t all, before;
	int rc;

	/* Signals are for the threads that know what to do with them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = gf_priority_start(&t->id, main, ctx);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return gf_error_errno(err, -rc, "communication thread");
	t->alive = true;
	return 0;
}

void gf_comm_thread_stop(struct gf_comm_thread *t)
{
	if (!t->alive)
		return;
	pthread_mutex_lock(&t->lock);
	t->quit = true;
	pthread_cond_signal(&t->wake);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->id, NULL);
	t->alive = false;
}

/* From other threads, under lock: runs fn(comm, ctx) on the thread and returns what it returned, or
 * the failure that was kept. */
static int call_locked(struct gf_comm_thread *t, gf_comm_fn *fn, void *ctx, struct gf_error *err)
{
	int rc = gf_comm_thread_kept(t, err);

	if (rc)
		return rc;
	t->call = (struct gf_comm_call){fn, ctx, err, 0, true};
	pthread_cond_signal(&t->wake);
	while (t->call.wanted && !t->rc)
		pthread_cond_wait(&t->news, &t->lock);
	rc = t->call.wanted ? gf_comm_thread_kept(t, err) : t->call.rc;
	t->call.wanted = false;
	return rc;
}

int gf_comm_thread_kept(const struct gf_comm_thread *t, struct gf_error *err)
{
	if (t->rc && err)
		*err = t->reason;
	return t->rc;
}

void gf_comm_thread_keep(struct gf_comm_thread *t, int rc, const struct gf_error *why)
{
	if (t->rc)
		return;
	t->rc = rc;
	t->reason = *why;
	pthread_cond_broadcast(&t->news);
	pthread_cond_signal(&t->wake);
}

int gf_engine_missing(struct gf_engine *e, bool *missing)
{
	struct gf_comm_thread *t = &e->thread;
	const size_t bytes = (size_t)t->comm->ranks * sizeof(*missing);
	int rc = 0;

	memset(missing, 0, bytes);
	pthread_mutex_lock(&t->lock);
	while (t->rc && t->alive && !t->looked)
		pthread_cond_wait(&t->news, &t->lock);
	if (t->rc && t->comm->ranks > 1)
		rc = t->looked ? 0 : -ENODATA;
	if (t->looked)
		memcpy(missing, t->missing, bytes);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

bool gf_comm_thread_enter(struct gf_comm_thread *t)
{
	bool go;

	pthread_mutex_lock(&t->lock);
	while (!t->running && !t->quit)
		pthread_cond_wait(&t->wake, &t->lock);
	go = t->running;
	pthread_mutex_unlock(&t->lock);
	return go;
}

bool gf_comm_thread_quits(struct gf_comm_thread *t)
{
	bool quit;

	pthread_mutex_lock(&t->lock);
	quit = t->quit;
	pthread_mutex_unlock(&t->lock);
	return quit;
}

void gf_comm_thread_nap(struct gf_comm_thread *t, double seconds)
{
	struct timespec until = gf_clock_after(seconds);

	pthread_cond_timedwait(&t->wake, &t->lock, &until);
}

int gf_comm_thread_serve(struct gf_comm_thread *t, bool *served, struct gf_error *err)
{
	struct gf_comm_call call;

	pthread_mutex_lock(&t->lock);
	call = t->call;
	pthread_mutex_unlock(&t->lock);
	if (!call.wanted)
		return 0;
	*served = true;
	t->watch->self.phase = GF_PHASE_CALL;
	t->watch->self.calls++;
	call.rc = call.fn(t->comm, call.ctx, err);
	/* All ranks agree on a call's own failure. After a broken wait they agree on nothing. */
	if (call.rc && (t->comm->broken || call.rc == -ETIMEDOUT))
		return call.rc;
	pthread_mutex_lock(&t->lock);
	if (call.rc && call.err)
		*call.err = *err;
	t->call.rc = call.rc;
	t->call.wanted = false;
	pthread_cond_broadcast(&t->news);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

void gf_comm_thread_give_up(struct gf_comm_thread *t, int rc, const struct gf_error *why)
{
	double passed_s, until_s = 0;
	struct gf_error ignored;

	gf_watch_give_up(t->watch, rc, why);
	gf_watch_ask(t->watch);
	pthread_mutex_lock(&t->lock);
	gf_comm_thread_keep(t, rc, why);
	for (;;) {
		if (!t->looked && gf_watch_missing(t->watch, t->missing)) {
			t->looked = true;
			pthread_cond_broadcast(&t->news);
		}
		if (t->quit && until_s == 0)
			until_s = gf_clock_s() + LINGER_S;
		if (t->quit &&
		    (gf_clock_s() >= until_s || !gf_liveness_pending(t->watch->liveness)))
			break;
		gf_comm_thread_nap(t, ANSWER_S);
		pthread_mutex_unlock(&t->lock);
		(void)gf_watch_look(t->watch, &passed_s, &ignored);
		pthread_mutex_lock(&t->lock);
	}
	pthread_mutex_unlock(&t->lock);
}

/* --- opening and closing -------------------------------------------------- */

static int check(const struct gf_engine_config *config, struct gf_error *err)
{
	const struct gf_plan *plan = config->plan;
	const struct gf_pool *pool = config->pool;
	size_t i, count;
	int rc = gf_plan_runnable(plan, err);

	rc = rc ?: gf_plan_check(plan, err);
	rc = rc ?: gf_plan_check_ranks(plan, config->comm->ranks, err);
	if (rc)
		return rc;
	if (plan->model->ntensors != pool->ntensors)
		return gf_error_set(err, -EINVAL,
				    "the plan has %zu tensors, the gradient pool has %zu",
				    plan->model->ntensors, pool->ntensors);
	for (i = 0; i < pool->ntensors; i++) {
		count = pool->offsets[i + 1] - pool->offsets[i];
		if (pool->lent ? plan->model->tensors[i].count_elems > count
			       : plan->model->tensors[i].count_elems != count)
			return gf_error_set(
				err, -EINVAL,
				"tensor %zu: the plan has %zu elements, the gradient pool has %zu",
				i, plan->model->tensors[i].count_elems, count);
	}
	return 0;
}

bool gf_engine_sends_sets(const struct gf_plan *plan)
{
	return gf_selection_has(&plan->selection, GF_SELECT_SETS);
}

static void init(struct gf_engine *e, const struct gf_engine_config *config)
{
	e->comm = config->comm;
	e->plan = config->plan;
	e->pool = config->pool;
	e->hooks = config->hooks;
	e->awaited_at_once = config->awaited_at_once;
	e->depth = config->depth ? config->depth : 1;
	e->lanes = config->lanes ? config->lanes : e->plan ? e->plan->lanes : 1;
	e->lanes = e->lanes > 0 ? e->lanes : 1;
	e->lent = config->watch != NULL;
	e->nready = config->pool->ntensors + config->signals;
	thread_init(&e->thread, e->comm, config->timeout_s, config->watch);
}

/* A rank's own part of making an engine. */
static int make(struct gf_engine *e, const struct gf_engine_config *config, struct gf_error *err)
{
	int rc = e->plan ? check(config, err) : 0;

	if (rc || !e->plan)
		return rc ?: e->ops->make(e, config, err);
	e->nplan_work = gf_work_count(e->plan, e->pool);
	e->plan_work = gf_xcalloc(e->nplan_work + 1, sizeof(*e->plan_work));
	gf_work_of_plan(e->plan, e->pool, e->plan_work);
	return e->ops->make(e, config, err);
}

/* Two ranks that run different things would wait for each other for ever, or add up data that do
 * not belong together. */
static int same_everywhere(const struct gf_engine *e, struct gf_error *err)
{
	const struct gf_pool *pool = e->pool;
	GF_FREED char *gradients = NULL, *plan = gf_plan_write(e->plan);
	char digest[GF_DIGEST_TEXT];
	int rc = gf_comm_same_text(e->comm, "version", GF_VERSION, err);

	gf_digest_text(pool->offsets, (pool->ntensors + 1) * sizeof(*pool->offsets), digest);
	gradients = gf_xasprintf("%zu tensors of %zu elements in all, %s", pool->ntensors,
				 pool->count_elems, digest);
	rc = rc ?: gf_comm_same_text(e->comm, "gradients", gradients, err);
	gf_digest_text(plan, strlen(plan), digest);
	return rc ?: gf_comm_same_text(e->comm, "plan", digest, err);
}

int gf_engine_new(const struct gf_engine_config *config, struct gf_engine **engine,
		  struct gf_error *err)
{
	const struct gf_engine_ops *ops =
		config->place.nccl ? &gf_engine_streams : &gf_engine_thread;
	struct gf_engine *e = gf_xcalloc(1, ops->size_bytes);
	int rc;

	e->ops = ops;
	init(e, config);
	rc = gf_comm_agree(e->comm, make(e, config, err), err);
	if (!rc && e->plan)
		rc = same_everywhere(e, err);
	if (!rc && ops->meet)
		rc = ops->meet(e, config, err);
	rc = rc ?: gf_comm_agree(e->comm, ops->start(e, err), err);
	if (rc) {
		gf_engine_free(e);
		return rc;
	}
	/* from here on the communicator is the thread's alone */
	pthread_mutex_lock(&e->thread.lock);
	e->thread.running = true;
	pthread_cond_signal(&e->thread.wake);
	pthread_mutex_unlock(&e->thread.lock);
	*engine = e;
	return 0;
}

void gf_engine_free(struct gf_engine *e)
{
	if (!e)
		return;
	e->ops->close(e);
	thread_release(&e->thread);
	free(e->plan_work);
	free(e);
}

void gf_engine_fail(struct gf_engine *e, int rc, const struct gf_error *why)
{
	pthread_mutex_lock(&e->thread.lock);
	gf_comm_thread_keep(&e->thread, rc, why);
	pthread_mutex_unlock(&e->thread.lock);
}

void gf_engine_ready_all(struct gf_engine *e, const size_t *tensors, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert(tensors[i] < e->nready);
	e->ops->ready(e, tensors, n);
}

int gf_engine_check(struct gf_engine *e, struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	rc = gf_comm_thread_kept(&e->thread, err);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

struct gf_totals gf_engine_totals(const struct gf_engine *e)
{
	const int ranks = e->plan ? e->plan->ranks : 0;
	struct gf_totals totals = {
		.sent_bytes = e->sent_bytes,
		.waited_bytes = e->waited_bytes,
		.hooks_s = e->hooks_s,
		.coding_s = e->coding_s,
		.handling_s = e->handling_s,
	};

	if (e->comm->rank < ranks) /* a server has no gradients */
		totals.dense_bytes =
			gf_engine_ring_elems(ranks, e->pool->count_elems) * sizeof(float);
	return totals;
}

size_t gf_engine_ring_elems(int ranks, size_t count_elems)
{
	return 2 * (size_t)(ranks - 1) * count_elems / (size_t)ranks;
}

int gf_engine_call(struct gf_engine *e,
		   int (*fn)(struct gf_comm *comm, void *ctx, struct gf_error *err), void *ctx,
		   struct gf_error *err)
{
	int rc;

	pthread_mutex_lock(&e->thread.lock);
	rc = gf_comm_thread_kept(&e->thread, err);
	if (!rc && e->ops->thread)
		rc = e->ops->thread->may_call(e, err);
	if (rc || !e->thread.alive) {
		pthread_mutex_unlock(&e->thread.lock);
		return rc ?: fn(e->comm, ctx, err);
	}
	rc = call_locked(&e->thread, fn, ctx, err);
	pthread_mutex_unlock(&e->thread.lock);
	return rc;
}

static int barrier(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	(void)ctx;
	return gf_comm_barrier(comm, err);
}

int gf_engine_barrier(struct gf_engine *e, struct gf_error *err)
{
	return gf_engine_call(e, barrier, NULL, err);
}

struct verdict {
	int rc;
	struct gf_error reason;
};

static int agree(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct verdict *v = ctx;
	int rc = gf_comm_agree(comm, v->rc, &v->reason);

	if (rc && err)
		*err = v->reason;
	return rc;
}

int gf_engine_agree(struct gf_engine *e, int rc, struct gf_error *err)
{
	struct verdict v = {.rc = rc};

	if (rc && err)
		v.reason = *err;
	return gf_engine_call(e, agree, &v, err);
}
