/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparing an engine: all its memory, all schedules, and the agreement of all
 * ranks that they are about to run the same thing. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/heap.h"
#include "rt/bind.h"
#include "rt/engine_parts.h"

static int check(const struct gf_engine_config *config, struct gf_error *err)
{
	const struct gf_plan *plan = config->plan;
	const struct gf_pool *pool = config->pool;
	size_t i, count;
	int rc;

	rc = gf_plan_runnable(plan, err);
	rc = rc ? rc : gf_plan_check(plan, err);
	if (rc)
		return rc;
	if (gf_plan_check_ranks(plan, config->comm->ranks, err))
		return -EINVAL;
	if (plan->model->ntensors != pool->ntensors)
		return gf_error_set(err, -EINVAL,
				    "the plan has %zu tensors, the gradient "
				    "pool has %zu",
				    plan->model->ntensors, pool->ntensors);
	for (i = 0; i < pool->ntensors; i++) {
		count = pool->offsets[i + 1] - pool->offsets[i];
		if (plan->model->tensors[i].count_elems != count)
			return gf_error_set(
				err, -EINVAL,
				"tensor %zu: the plan has %zu elements, the "
				"gradient pool has %zu",
				i, plan->model->tensors[i].count_elems, count);
	}
	return 0;
}

static void init_steps(struct gf_engine *e, size_t depth)
{
	size_t n = e->pool->ntensors, i;

	e->depth = depth ? depth : 1;
	e->steps = gf_xcalloc(e->depth, sizeof(*e->steps));
	for (i = 0; i < e->depth; i++) {
		struct gf_engine_step *s = &e->steps[i];

		s->tensor_ready = gf_xcalloc(n + 1, sizeof(*s->tensor_ready));
		s->ready_s = gf_xcalloc(n + 1, sizeof(*s->ready_s));
		gf_engine_reserve(s, e->nplan_work);
	}
}

static bool sends_sets(const struct gf_plan *plan)
{
	return plan->selection.method == GF_SELECT_TOPK ||
	       plan->selection.method == GF_SELECT_GTOPK;
}

static int build(struct gf_engine *e, size_t depth, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	e->nplan_work = gf_work_count(e->plan);
	e->plan_work = gf_xcalloc(e->nplan_work + 1, sizeof(*e->plan_work));
	gf_work_of_plan(e->plan, e->pool, e->plan_work);
	e->active = gf_xcalloc((size_t)e->lanes, sizeof(*e->active));
	init_steps(e, depth);
	for (i = 0; i < e->nplan_work && e->comm->ranks > 1 && !rc; i++) {
		rc = gf_engine_path_weigh(e, i, err);
		/* sets take other paths, which cannot fail */
		if (!rc && !sends_sets(e->plan))
			rc = gf_engine_path_plan(e, i, err);
	}
	return rc;
}

/* Two ranks that run different things would wait for each other for ever, or
 * add up what does not belong together. */
static int same_everywhere(struct gf_engine *e, struct gf_error *err)
{
	char digest[GF_DIGEST_TEXT], *text;
	int rc;

	rc = gf_comm_same_text(e->comm, "version", GF_VERSION, err);
	if (rc)
		return rc;
	gf_digest_text(e->pool->offsets,
		       (e->pool->ntensors + 1) * sizeof(*e->pool->offsets),
		       digest);
	text = gf_xasprintf("%zu tensors of %zu elements in all, %s",
			    e->pool->ntensors, e->pool->count_elems, digest);
	rc = gf_comm_same_text(e->comm, "gradients", text, err);
	free(text);
	if (rc)
		return rc;
	text = gf_plan_write(e->plan);
	gf_digest_text(text, strlen(text), digest);
	free(text);
	return gf_comm_same_text(e->comm, "plan", digest, err);
}

static int start_thread(struct gf_engine *e, struct gf_error *err)
{
	sigset_t all, before;
	int rc;

	/* Signals are for the threads that know what to do with them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&e->thread, NULL, gf_engine_thread, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return gf_error_errno(err, -rc, "communication thread");
	e->has_thread = true;
	return 0;
}

static void init_lock(struct gf_engine *e)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&e->wake, &attr);
	pthread_cond_init(&e->news, &attr);
	pthread_condattr_destroy(&attr);
}

int gf_engine_new(const struct gf_engine_config *config, struct gf_engine **e,
		  struct gf_error *err)
{
	struct gf_engine *n = gf_xcalloc(1, sizeof(*n));
	int rc;

	n->comm = config->comm;
	n->plan = config->plan;
	n->pool = config->pool;
	n->hooks = config->hooks;
	n->segment_bytes = config->segment_bytes;
	n->lanes = config->plan->lanes > 0 ? config->plan->lanes : 1;
	n->exec = gf_exec_new(n->comm);
	init_lock(n);
	gf_watch_init(&n->watch, n->comm, config->timeout_s);
	n->watch.self.phase = GF_PHASE_CALL;

	rc = check(config, err);
	rc = rc ? rc : build(n, config->depth, err);
	if (!rc && n->comm->ranks > 1)
		rc = start_thread(n, err);
	rc = gf_comm_agree(n->comm, rc, err);
	rc = rc ? rc : same_everywhere(n, err);
	if (rc) {
		gf_engine_free(n);
		return rc;
	}
	pthread_mutex_lock(&n->lock);
	n->running = true;
	pthread_cond_signal(&n->wake);
	pthread_mutex_unlock(&n->lock);
	*e = n;
	return 0;
}

static void free_step(struct gf_engine_step *s)
{
	size_t i;

	for (i = 0; i < s->capacity; i++)
		gf_engine_paths_free(&s->messages[i]);
	free(s->messages);
	free(s->times);
	free(s->tensor_ready);
	free(s->ready_s);
}

void gf_engine_free(struct gf_engine *e)
{
	size_t i;

	if (!e)
		return;
	if (e->has_thread) {
		pthread_mutex_lock(&e->lock);
		e->quit = true;
		pthread_cond_signal(&e->wake);
		pthread_mutex_unlock(&e->lock);
		pthread_join(e->thread, NULL);
	}
	for (i = 0; e->steps && i < e->depth; i++)
		free_step(&e->steps[i]);
	gf_exec_free(e->exec);
	gf_watch_release(&e->watch);
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->wake);
	pthread_cond_destroy(&e->news);
	free(e->steps);
	free(e->active);
	free(e->plan_work);
	free(e);
}
