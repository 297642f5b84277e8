/* SPDX-License-Identifier: BSD-3-Clause */
/* How a message moves: programs on lanes, by what they are for, and what they
 * weigh on the network. */
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "coll/way.h"
#include "engine/streams_parts.h"

size_t gf_streams_lane(const struct gf_streams *e, const struct gf_work *w)
{
	const struct gf_plan *plan = e->base.plan;

	/* a message that is not the plan's, such as norms */
	if (!w->how || w->how < plan->messages ||
	    w->how >= plan->messages + plan->nmessages)
		return 0;
	return e->lane_of[w->how - plan->messages];
}

static bool is_for(const struct gf_streams_path *p, const struct gf_work *w,
		   size_t lane)
{
	if (p->lane != lane || p->sparse != w->sparse || p->half != w->half ||
	    p->count_elems != w->count_elems)
		return false;
	if (w->sparse)
		return p->sets == w->sets;
	return p->how == w->how || gf_message_goes_as(p->how, w->how);
}

/* Makes the program of a message of sets. w->sets has now the largest size that
 * the sets will have. */
static int make_sets(const struct gf_streams *e, const struct gf_work *w,
		     struct gf_device_program *program, struct gf_error *err)
{
	const struct gf_coll_args args = {
		.ranks = e->base.comm->ranks,
		.count_elems = w->count_elems,
		.elem_bytes = w->sets->size_bytes,
		.half = w->half,
	};
	struct gf_schedule s;
	int rc = gf_algorithm_schedule(w->sparse, &args, e->base.comm->rank, &s,
				       err);

	if (rc)
		return rc;
	gf_device_program_of_sets(&s, w->sets, program);
	gf_schedule_release(&s);
	return 0;
}

static int make_values(const struct gf_streams *e, const struct gf_work *w,
		       const struct gf_codec *codec,
		       struct gf_device_program *program, struct gf_error *err)
{
	struct gf_coll_args args;
	struct gf_way way;
	int rc = gf_way_of_message(w->how, &way, err);

	if (rc)
		return rc;
	if (w->half != GF_COLL_WHOLE && !way.algorithm->build)
		return gf_error_set(err, -ENOTSUP,
				    "%s between GPUs: this build runs it "
				    "whole, not in halves",
				    way.algorithm->name);
	args = gf_way_args(&way, e->base.comm->ranks);
	args.count_elems = w->count_elems;
	args.elem_bytes = sizeof(float);
	args.half = w->half;
	return gf_device_program_new(way.algorithm, &args, e->base.comm->rank,
				     codec, program, err);
}

int gf_streams_path(struct gf_streams *e, const struct gf_work *w,
		    struct gf_streams_path **path, bool *made,
		    struct gf_error *err)
{
	const size_t lane = gf_streams_lane(e, w);
	struct gf_streams_path *p;
	int rc;

	*made = false;
	for (p = e->paths; p; p = p->next)
		if (is_for(p, w, lane))
			break;
	*path = p;
	if (p)
		return 0;
	p = gf_xcalloc(1, sizeof(*p));
	p->lane = lane;
	p->how = w->how;
	p->sparse = w->sparse;
	p->sets = w->sets;
	p->half = w->half;
	p->count_elems = w->count_elems;
	rc = w->sparse ? make_sets(e, w, &p->program, err)
		       : make_values(e, w, gf_codec_find(w->how->codec),
				     &p->program, err);
	if (rc) {
		free(p);
		return rc;
	}
	p->next = e->paths;
	e->paths = *path = p;
	*made = true;
	return 0;
}

int gf_streams_path_prepare(struct gf_streams *e, struct gf_streams_path *path,
			    struct gf_error *err)
{
	path->set_bytes = path->sets ? path->sets->size_bytes : 0;
	return gf_device_lane_prepare(&e->lanes[path->lane], &path->program,
				      err);
}

void gf_streams_paths_free(struct gf_streams *e)
{
	struct gf_streams_path *p, *next;

	for (p = e->paths; p; p = next) {
		next = p->next;
		gf_device_program_release(&p->program);
		free(p);
	}
	e->paths = NULL;
}

/* --- weights -------------------------------------------------------------- */

static uint64_t ring_bytes(const struct gf_streams *e, size_t count_elems)
{
	const uint64_t p = (uint64_t)e->base.comm->ranks;

	return 2 * (p - 1) * count_elems / p * sizeof(float);
}

static uint64_t program_bytes(const struct gf_streams *e,
			      const struct gf_device_program *p)
{
	uint64_t bytes = gf_device_program_sent(p);
	size_t i;

	for (i = 0; i < p->nsteps; i++)
		if (p->steps[i].op == GF_DEVICE_ALL_REDUCE)
			bytes += ring_bytes(e, p->steps[i].range.count);
	return bytes;
}

uint64_t gf_streams_path_bytes(const struct gf_streams *e,
			       const struct gf_streams_path *path)
{
	return program_bytes(e, &path->program);
}

/* The message of a selection may lack a way to go whole. */
void gf_streams_weigh(struct gf_streams *e, size_t i)
{
	const struct gf_work *w = &e->base.plan_work[i];
	struct gf_device_program whole = {0};

	if (make_values(e, w, NULL, &whole, NULL))
		e->base.dense_bytes += ring_bytes(e, w->count_elems);
	else
		e->base.dense_bytes += program_bytes(e, &whole);
	gf_device_program_release(&whole);
}
