/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparing an engine: all its memory, all schedules, and the agreement of all
 * ranks that they are about to run the same thing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/heap.h"
#include "engine/agree.h"
#include "engine/thread_parts.h"

static int check(const struct gf_engine_config *config, struct gf_error *err)
{
	const struct gf_plan *plan = config->plan;
	const struct gf_pool *pool = config->pool;
	size_t i, count;
	int rc = gf_job_takes(config->comm, plan, err);

	if (rc)
		return rc;
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

static int same_everywhere(struct gf_engine *e, struct gf_error *err)
{
	char digest[GF_DIGEST_TEXT], *text;
	int rc;

	gf_digest_text(e->pool->offsets,
		       (e->pool->ntensors + 1) * sizeof(*e->pool->offsets),
		       digest);
	text = gf_xasprintf("%zu tensors of %zu elements in all, %s",
			    e->pool->ntensors, e->pool->count_elems, digest);
	rc = gf_job_agrees(e->comm, e->plan, "gradients", text, err);
	free(text);
	return rc;
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
	gf_comm_thread_init(&n->thread, n->comm, config->timeout_s);

	rc = check(config, err);
	rc = rc ? rc : build(n, config->depth, err);
	if (!rc && n->comm->ranks > 1)
		rc = gf_comm_thread_start(&n->thread, gf_engine_thread, n, err);
	rc = gf_comm_agree(n->comm, rc, err);
	rc = rc ? rc : same_everywhere(n, err);
	if (rc) {
		gf_engine_free(n);
		return rc;
	}
	gf_comm_thread_go(&n->thread);
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
	gf_comm_thread_stop(&e->thread);
	for (i = 0; e->steps && i < e->depth; i++)
		free_step(&e->steps[i]);
	gf_exec_free(e->exec);
	gf_comm_thread_release(&e->thread);
	free(e->steps);
	free(e->active);
	free(e->plan_work);
	free(e);
}
