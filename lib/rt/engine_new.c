/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparing an engine: all its memory, all schedules, and the agreement of all
 * ranks that they are about to run the same thing. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/heap.h"
#include "coll/algorithm.h"
#include "rt/bind.h"
#include "rt/engine_parts.h"

/* Long enough that a segment's fixed costs are small beside its transfer,
 * short enough that a reduction holds up nothing else for long. */
#define SEGMENT_BYTES ((size_t)1 << 20)

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
	if (plan->ranks != config->comm->ranks)
		return gf_error_set(err, -EINVAL,
				    "the plan is for %d ranks, this job has "
				    "%d",
				    plan->ranks, config->comm->ranks);
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

static int build_schedule(struct gf_engine *e, size_t index,
			  size_t segment_bytes, struct gf_error *err)
{
	const struct gf_message *planned = &e->plan->messages[index];
	const struct gf_algorithm *a = gf_algorithm_find(planned->algorithm);
	struct gf_engine_message *m = &e->messages[index];
	size_t n = planned->nstages, i;
	int *factors = gf_xcalloc(n + 1, sizeof(*factors)), rc;
	const char **stages = gf_xcalloc(n + 1, sizeof(*stages));
	struct gf_coll_args args = {
		.ranks = e->comm->ranks,
		.count_elems = m->count_elems,
		.elem_bytes = sizeof(float),
		.segment_elems = segment_bytes / sizeof(float),
		.factors = n ? factors : NULL,
		.stage_algorithms = n ? stages : NULL,
		.nfactors = n,
	};
	struct gf_element element;

	rc = gf_element_coded(planned->codec, GF_OP_SUM, &element, err);
	if (rc)
		goto out;
	args.lossy = gf_element_lossy(&element);
	for (i = 0; i < n; i++) {
		factors[i] = planned->stages[i].factor;
		stages[i] = planned->stages[i].algorithm;
	}
	rc = gf_algorithm_schedule(a, &args, e->comm->rank, &m->schedule, err);
	if (!rc)
		rc = gf_exec_run_new(
			e->exec,
			&(struct gf_exec_config){.schedule = &m->schedule,
						 .element = element,
						 .channel = (uint32_t)index},
			&m->run, err);
out:
	free(factors);
	free(stages);
	return rc;
}

/* The library's own all-reduce. */
static int build_library(struct gf_engine *e, size_t index,
			 struct gf_error *err)
{
	struct gf_engine_message *m = &e->messages[index];
	struct gf_exec_config config = {.count_elems = m->count_elems,
					.channel = (uint32_t)index};
	int rc;

	rc = gf_element_coded(e->plan->messages[index].codec, GF_OP_SUM,
			      &config.element, err);
	return rc ? rc : gf_exec_run_new(e->exec, &config, &m->run, err);
}

static int build_message(struct gf_engine *e, size_t index,
			 size_t segment_bytes, struct gf_error *err)
{
	const struct gf_message *planned = &e->plan->messages[index];
	struct gf_engine_message *m = &e->messages[index];
	const size_t *offsets = e->pool->offsets;
	size_t i;
	int rc = 0;

	m->data = e->pool->data + offsets[planned->first];
	m->count_elems = offsets[planned->last + 1] - offsets[planned->first];
	m->ntensors = planned->last - planned->first + 1;
	m->simultaneous = planned->mode == GF_MODE_SIMULTANEOUS;
	m->at_end = planned->release == GF_RELEASE_BACKWARD_END;
	for (i = planned->first; i <= planned->last; i++)
		e->message_of[i] = index;
	if (e->comm->ranks == 1)
		return 0;
	if (gf_algorithm_find(planned->algorithm)->build)
		rc = build_schedule(e, index, segment_bytes, err);
	else
		rc = build_library(e, index, err);
	if (rc)
		gf_error_prefix(err, "message %zu", index);
	return rc;
}

static int build(struct gf_engine *e, size_t segment_bytes,
		 struct gf_error *err)
{
	size_t i;
	int rc = 0;

	e->nmessages = e->plan->nmessages;
	e->messages = gf_xcalloc(e->nmessages + 1, sizeof(*e->messages));
	e->finished = gf_xcalloc(e->nmessages + 1, sizeof(*e->finished));
	e->active = gf_xcalloc((size_t)e->lanes, sizeof(*e->active));
	e->message_of =
		gf_xcalloc(e->pool->ntensors + 1, sizeof(*e->message_of));
	e->tensor_ready =
		gf_xcalloc(e->pool->ntensors + 1, sizeof(*e->tensor_ready));
	for (i = 0; i < e->nmessages && !rc; i++)
		rc = build_message(
			e, i, segment_bytes ? segment_bytes : SEGMENT_BYTES,
			err);
	/* Nothing is under way: as after a step. */
	e->next = e->nended = e->nmessages;
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
	n->lanes = config->plan->lanes > 0 ? config->plan->lanes : 1;
	n->exec = gf_exec_new(n->comm);
	init_lock(n);
	gf_watch_init(&n->watch, n->comm, config->timeout_s);
	n->watch.self.phase = GF_PHASE_CALL;

	rc = check(config, err);
	rc = rc ? rc : build(n, config->segment_bytes, err);
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

static void abandon(struct gf_engine *e)
{
	size_t i;

	for (i = 0; e->messages && i < e->nmessages; i++) {
		gf_exec_run_free(e->messages[i].run);
		gf_schedule_release(&e->messages[i].schedule);
	}
}

void gf_engine_free(struct gf_engine *e)
{
	if (!e)
		return;
	if (e->has_thread) {
		pthread_mutex_lock(&e->lock);
		e->quit = true;
		pthread_cond_signal(&e->wake);
		pthread_mutex_unlock(&e->lock);
		pthread_join(e->thread, NULL);
	}
	abandon(e);
	gf_exec_free(e->exec);
	gf_watch_release(&e->watch);
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->wake);
	pthread_cond_destroy(&e->news);
	free(e->messages);
	free(e->finished);
	free(e->active);
	free(e->message_of);
	free(e->tensor_ready);
	free(e);
}
