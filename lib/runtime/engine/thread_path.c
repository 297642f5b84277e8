/* SPDX-License-Identifier: BSD-3-Clause */
/* How a message moves: schedules and runs, by what they are for. */
#include <string.h>

#include "base/heap.h"
#include "runtime/engine/thread_parts.h"

void gf_thread_reserve(struct gf_thread_step *s, size_t nwork)
{
	size_t more = nwork - s->capacity;

	if (nwork <= s->capacity)
		return;
	s->messages = gf_xreallocarray(s->messages, nwork, sizeof(*s->messages));
	memset(s->messages + s->capacity, 0, more * sizeof(*s->messages));
	s->times = gf_xreallocarray(s->times, nwork, sizeof(*s->times));
	memset(s->times + s->capacity, 0, more * sizeof(*s->times));
	s->capacity = nwork;
}

static size_t segment_elems(const struct gf_thread *e, const struct gf_element *element,
			    size_t count_elems)
{
	if (e->segment_bytes && e->segment_bytes < element->size_bytes)
		return 1;
	if (e->segment_bytes)
		return e->segment_bytes / element->size_bytes;
	return gf_exec_segment_elems(e->base.comm, element, count_elems);
}

int gf_thread_recipe(const struct gf_engine *engine, const struct gf_work *w, struct gf_recipe *r,
		     struct gf_error *err)
{
	const struct gf_thread *e = (const struct gf_thread *)engine;
	int rc = gf_work_recipe(w, engine->plan, engine->comm->ranks, r, err);

	if (!rc && !w->sparse)
		r->args.segment_elems = segment_elems(e, &r->element, w->count_elems);
	return rc;
}

static int build(struct gf_thread *e, const struct gf_work *w, uint32_t channel,
		 struct gf_thread_path *path, struct gf_error *err)
{
	struct gf_exec_config config = {
		.count_elems = w->count_elems,
		.half = w->half,
		.channel = channel,
	};
	struct gf_recipe r;
	int rc = gf_thread_recipe(&e->base, w, &r, err);

	path->how = w->how;
	path->way = w->way;
	path->sparse = w->sparse;
	path->half = w->half;
	path->owners = w->owners;
	path->count_elems = w->count_elems;
	path->set_bytes = w->element.size_bytes;
	config.element = path->element = r.element;
	rc = rc ?: gf_exec_stages_check(e->base.comm, &r.args, err);
	/* a library runs its own whole */
	if (!rc && (r.way.algorithm->build || w->half != GF_COLL_WHOLE)) {
		config.schedule = &path->schedule;
		r.args.calls = true;
		rc = gf_algorithm_schedule(r.way.algorithm, &r.args, e->base.comm->rank,
					   &path->schedule, err);
	}
	return rc ?: gf_exec_run_new(e->exec, &config, &path->run, err);
}

uint64_t gf_thread_path_bytes(const struct gf_thread *e, const struct gf_thread_path *path)
{
	return path->schedule.ranks
		       ? gf_exec_wire_bytes(path->run)
		       : gf_element_wire_bytes(
				 &path->element,
				 gf_engine_ring_elems(e->base.comm->ranks, path->count_elems));
}

static void free_path(struct gf_thread_path *path)
{
	gf_exec_run_free(path->run);
	gf_schedule_release(&path->schedule);
	free(path);
}

void gf_thread_paths_free(struct gf_thread_message *m)
{
	struct gf_thread_path *path, *next;

	for (path = m->paths; path; path = next) {
		next = path->next;
		free_path(path);
	}
	m->paths = m->path = NULL;
}

static bool is_for(const struct gf_thread_path *path, const struct gf_work *w)
{
	return path->way == w->way && path->sparse == w->sparse && path->half == w->half &&
	       path->owners == w->owners && path->count_elems == w->count_elems &&
	       path->set_bytes == w->element.size_bytes && gf_message_goes_as(path->how, w->how);
}

/* Channels: a place in a slot has one of its own, the same on all ranks. Two paths of one place are
 * never under way together. */
static int find(struct gf_thread *e, struct gf_thread_step *s, size_t i, const struct gf_work *w,
		struct gf_error *err)
{
	struct gf_thread_message *m = &s->messages[i];
	size_t slot = (size_t)(s - e->steps);
	struct gf_thread_path *path;
	int rc;

	for (path = m->paths; path; path = path->next)
		if (is_for(path, w))
			break;
	if (!path) {
		path = gf_xcalloc(1, sizeof(*path));
		rc = build(e, w, (uint32_t)(i * e->base.depth + slot), path, err);
		if (rc) {
			free_path(path);
			return rc;
		}
		path->next = m->paths;
		m->paths = path;
	}
	m->path = path;
	return 0;
}

int gf_thread_path(struct gf_thread *e, struct gf_thread_step *s, size_t i, struct gf_error *err)
{
	const struct gf_work *w = &s->work[i];
	int rc = find(e, s, i, w, err);

	/* The path may have been made for another slot's sets. */
	if (!rc && w->element.size_bytes)
		gf_exec_reduce_for(s->messages[i].path->run, w->element.ctx);
	return rc;
}

int gf_thread_expect(struct gf_engine *engine, const struct gf_work *like, size_t n,
		     struct gf_error *err)
{
	struct gf_thread *e = (struct gf_thread *)engine;
	struct gf_thread_step *s;
	int rc = 0;

	for (s = e->steps; s < e->steps + engine->depth && !rc; s++) {
		gf_thread_reserve(s, n);
		for (size_t i = 0; i < n && engine->comm->ranks > 1 && !rc; i++) {
			rc = find(e, s, i, &like[i], err);
			/* an all-gather comes of an earlier message */
			if (rc)
				gf_error_prefix(err, "message %zu",
						like[i].after && like[i].after <= i
							? like[i].after - 1
							: i);
		}
	}
	return rc;
}
