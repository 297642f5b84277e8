/* SPDX-License-Identifier: BSD-3-Clause */
/* How a message moves: schedules and runs, by what they are for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "coll/way.h"
#include "engine/thread_parts.h"

void gf_thread_reserve(struct gf_thread_step *s, size_t nwork)
{
	size_t more = nwork - s->capacity;

	if (nwork <= s->capacity)
		return;
	s->messages =
		gf_xreallocarray(s->messages, nwork, sizeof(*s->messages));
	memset(s->messages + s->capacity, 0, more * sizeof(*s->messages));
	s->times = gf_xreallocarray(s->times, nwork, sizeof(*s->times));
	memset(s->times + s->capacity, 0, more * sizeof(*s->times));
	s->capacity = nwork;
}

static uint64_t sent_elems(const struct gf_schedule *s)
{
	uint64_t elems = 0;
	size_t i;

	for (i = 0; i < s->nsteps; i++)
		if (s->steps[i].op == GF_STEP_SEND)
			elems += s->steps[i].range.count;
	return elems;
}

static size_t segment_elems(const struct gf_thread *e, const struct gf_work *w,
			    const struct gf_element *element)
{
	if (w->sparse)
		return 0;
	if (e->segment_bytes && e->segment_bytes < element->size_bytes)
		return 1;
	if (e->segment_bytes)
		return e->segment_bytes / element->size_bytes;
	return gf_exec_segment_elems(e->base.comm, element, w->count_elems);
}

static int build_schedule(const struct gf_thread *e, const struct gf_work *w,
			  const struct gf_element *element,
			  struct gf_schedule *schedule, struct gf_error *err)
{
	struct gf_way way = {.algorithm = w->sparse};
	struct gf_coll_args args;
	int rc = 0;

	if (w->way) {
		way = *w->way;
	} else if (!w->sparse) {
		rc = gf_way_of_message(w->how, &way, err);
		way.servers = e->base.plan->servers;
	}
	if (rc)
		return rc;
	args = gf_way_args(&way, e->base.comm->ranks);
	args.count_elems = w->count_elems;
	args.elem_bytes = element->size_bytes;
	args.segment_elems = segment_elems(e, w, element);
	args.half = w->half;
	args.lossy = gf_element_lossy(element);
	return gf_algorithm_schedule(way.algorithm, &args, e->base.comm->rank,
				     schedule, err);
}

/* A library runs its own. */
static bool has_schedule(const struct gf_work *w)
{
	if (w->way)
		return w->way->algorithm->build;
	return w->sparse || gf_algorithm_find(w->how->algorithm)->build;
}

static int element_of(const struct gf_work *w, struct gf_element *element,
		      struct gf_error *err)
{
	if (!w->sparse && !w->way)
		return gf_element_coded(w->how->codec, GF_OP_SUM, element, err);
	*element = w->element;
	return 0;
}

static int build(struct gf_thread *e, const struct gf_work *w, uint32_t channel,
		 struct gf_thread_path *path, struct gf_error *err)
{
	struct gf_exec_config config = {
		.count_elems = w->count_elems,
		.half = w->half,
		.channel = channel,
	};
	int rc;

	path->how = w->how;
	path->way = w->way;
	path->sparse = w->sparse;
	path->half = w->half;
	path->count_elems = w->count_elems;
	path->set_bytes = w->element.size_bytes;
	rc = element_of(w, &config.element, err);
	if (!rc && has_schedule(w)) {
		config.schedule = &path->schedule;
		rc = build_schedule(e, w, &config.element, &path->schedule,
				    err);
	}
	return rc ? rc : gf_exec_run_new(e->exec, &config, &path->run, err);
}

/* The bytes that a library sends are unknown: counted as a ring's. */
static uint64_t ring_bytes(const struct gf_thread *e, size_t count_elems)
{
	uint64_t p = (uint64_t)e->base.comm->ranks;

	return 2 * (p - 1) * count_elems / p * sizeof(float);
}

uint64_t gf_thread_path_bytes(const struct gf_thread *e,
			      const struct gf_thread_path *path)
{
	return path->schedule.ranks ? gf_exec_wire_bytes(path->run)
				    : ring_bytes(e, path->count_elems);
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
	return path->how == w->how && path->way == w->way &&
	       path->sparse == w->sparse && path->half == w->half &&
	       path->count_elems == w->count_elems &&
	       path->set_bytes == w->element.size_bytes;
}

/* Channels: a place in a slot has one of its own, the same on all ranks. Two
 * paths of one place are never under way together. */
static int find(struct gf_thread *e, struct gf_thread_step *s, size_t i,
		const struct gf_work *w, struct gf_error *err)
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
		rc = build(e, w, (uint32_t)(i * e->base.depth + slot), path,
			   err);
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

int gf_thread_path(struct gf_thread *e, struct gf_thread_step *s, size_t i,
		   struct gf_error *err)
{
	return find(e, s, i, &s->work[i], err);
}

int gf_thread_expect(struct gf_engine *engine, const struct gf_work *like,
		     size_t n, struct gf_error *err)
{
	struct gf_thread *e = (struct gf_thread *)engine;
	struct gf_thread_step *s;
	size_t i;
	int rc = 0;

	for (s = e->steps; s < e->steps + engine->depth && !rc; s++) {
		gf_thread_reserve(s, n);
		for (i = 0; i < n && engine->comm->ranks > 1 && !rc; i++) {
			rc = find(e, s, i, &like[i], err);
			/* an all-gather comes of an earlier message */
			if (rc)
				gf_error_prefix(
					err, "message %zu",
					like[i].after && like[i].after <= i
						? like[i].after - 1
						: i);
		}
	}
	return rc;
}

struct gf_exec_run *gf_thread_run_of(struct gf_engine *engine, size_t message,
				     const struct gf_schedule **schedule)
{
	const struct gf_thread *e = (struct gf_thread *)engine;
	const struct gf_thread_path *path = e->steps->messages[message].path;

	*schedule = path ? &path->schedule : NULL;
	return path ? path->run : NULL;
}

int gf_thread_path_weigh(struct gf_thread *e, size_t i, struct gf_error *err)
{
	const struct gf_element plain = gf_element_number(GF_F32, GF_OP_SUM);
	const struct gf_work *w = &e->base.plan_work[i];
	struct gf_schedule schedule = {0};
	int rc;

	if (!has_schedule(w)) {
		e->base.dense_bytes += ring_bytes(e, w->count_elems);
		return 0;
	}
	rc = build_schedule(e, w, &plain, &schedule, err);
	e->base.dense_bytes += sent_elems(&schedule) * sizeof(float);
	gf_schedule_release(&schedule);
	return rc;
}
