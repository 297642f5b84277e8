/* SPDX-License-Identifier: BSD-3-Clause */
/* Preparing a thread: all its memory, and all schedules. */
#include <stdlib.h>

#include "base/heap.h"
#include "comm/processors.h"
#include "engine/thread_parts.h"

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

int gf_thread_make(struct gf_engine *engine,
		   const struct gf_engine_config *config, struct gf_error *err)
{
	struct gf_thread *e = (struct gf_thread *)engine;

	e->segment_bytes = config->segment_bytes;
	e->crowded = gf_priority_crowded(config->comm, config->compute_threads);
	e->exec = gf_exec_new(config->comm);
	e->active = gf_xcalloc((size_t)engine->lanes, sizeof(*e->active));
	init_steps(e);
	/* sets take other paths, which cannot fail */
	if (engine->plan && gf_engine_sends_sets(engine->plan))
		return 0;
	return gf_thread_expect(engine, engine->plan_work, engine->nplan_work,
				err);
}

int gf_thread_start(struct gf_engine *engine, struct gf_error *err)
{
	if (engine->comm->ranks == 1 || engine->lent)
		return 0;
	return gf_comm_thread_start(&engine->thread, gf_thread_main, engine,
				    err);
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
