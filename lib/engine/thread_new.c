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

static void init_steps(struct gf_thread *e)
{
	size_t n = e->base.pool->ntensors, i;

	e->steps = gf_xcalloc(e->base.depth, sizeof(*e->steps));
	for (i = 0; i < e->base.depth; i++) {
		struct gf_thread_step *s = &e->steps[i];

		s->tensor_ready = gf_xcalloc(n + 1, sizeof(*s->tensor_ready));
		s->ready_s = gf_xcalloc(n + 1, sizeof(*s->ready_s));
		gf_thread_reserve(s, e->base.nplan_work);
	}
}

static bool sends_sets(const struct gf_plan *plan)
{
	return plan->selection.method == GF_SELECT_TOPK ||
	       plan->selection.method == GF_SELECT_GTOPK;
}

static int build(struct gf_thread *e, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	e->base.nplan_work = gf_work_count(e->base.plan);
	e->base.plan_work =
		gf_xcalloc(e->base.nplan_work + 1, sizeof(*e->base.plan_work));
	gf_work_of_plan(e->base.plan, e->base.pool, e->base.plan_work);
	e->active = gf_xcalloc((size_t)e->lanes, sizeof(*e->active));
	init_steps(e);
	for (i = 0; i < e->base.nplan_work && e->base.comm->ranks > 1 && !rc;
	     i++) {
		rc = gf_thread_path_weigh(e, i, err);
		/* sets take other paths, which cannot fail */
		if (!rc && !sends_sets(e->base.plan))
			rc = gf_thread_path_plan(e, i, err);
	}
	return rc;
}

static int same_everywhere(struct gf_thread *e, struct gf_error *err)
{
	char digest[GF_DIGEST_TEXT], *text;
	int rc;

	gf_digest_text(e->base.pool->offsets,
		       (e->base.pool->ntensors + 1) *
			       sizeof(*e->base.pool->offsets),
		       digest);
	text = gf_xasprintf("%zu tensors of %zu elements in all, %s",
			    e->base.pool->ntensors, e->base.pool->count_elems,
			    digest);
	rc = gf_job_agrees(e->base.comm, e->base.plan, "gradients", text, err);
	free(text);
	return rc;
}

int gf_engine_new(const struct gf_engine_config *config,
		  struct gf_engine **engine, struct gf_error *err)
{
	struct gf_thread *e = gf_xcalloc(1, sizeof(*e));
	int rc;

	gf_engine_init(&e->base, &gf_engine_thread, config);
	e->segment_bytes = config->segment_bytes;
	e->lanes = config->plan->lanes > 0 ? config->plan->lanes : 1;
	e->exec = gf_exec_new(config->comm);

	rc = check(config, err);
	rc = rc ? rc : build(e, err);
	if (!rc && e->base.comm->ranks > 1)
		rc = gf_comm_thread_start(&e->base.thread, gf_thread_main, e,
					  err);
	rc = gf_comm_agree(e->base.comm, rc, err);
	rc = rc ? rc : same_everywhere(e, err);
	if (rc) {
		gf_engine_free(&e->base);
		return rc;
	}
	gf_comm_thread_go(&e->base.thread);
	*engine = &e->base;
	return 0;
}

static void free_step(struct gf_thread_step *s)
{
	size_t i;

	for (i = 0; i < s->capacity; i++)
		gf_thread_paths_free(&s->messages[i]);
	free(s->messages);
	free(s->times);
	free(s->tensor_ready);
	free(s->ready_s);
}

void gf_thread_close(struct gf_engine *engine)
{
	struct gf_thread *e = (struct gf_thread *)engine;
	size_t i;

	gf_comm_thread_stop(&e->base.thread);
	for (i = 0; e->steps && i < e->base.depth; i++)
		free_step(&e->steps[i]);
	gf_exec_free(e->exec);
	free(e->steps);
	free(e->active);
}
