/* SPDX-License-Identifier: BSD-3-Clause */
/* How a message moves: programs on lanes, by what they are for, and what they weigh on the
 * network. */

#include "base/heap.h"
#include "runtime/engine/streams_parts.h"

size_t gf_streams_lane(const struct gf_streams *e, const struct gf_work *w)
{
	const struct gf_plan *plan = e->base.plan;

	if (!plan || !w->how || w->how < plan->messages ||
	    w->how >= plan->messages + plan->nmessages)
		return w->lane;
	return e->lane_of[w->how - plan->messages];
}

static bool is_for(const struct gf_streams_path *p, const struct gf_work *w, size_t lane)
{
	if (p->lane != lane || p->sparse != w->sparse || p->half != w->half ||
	    p->owners != w->owners || p->way != w->way || p->schedule != w->schedule ||
	    p->count_elems != w->count_elems || p->skew_elems != w->skew_elems)
		return false;
	return w->sets ? p->sets == w->sets : gf_message_goes_as(p->how, w->how);
}

int gf_streams_recipe(const struct gf_engine *e, const struct gf_work *w, struct gf_recipe *r,
		      struct gf_error *err)
{
	return gf_work_recipe(w, e->plan, e->comm->ranks, r, err);
}

/* The program of a message of sets. w->sets has now the largest size that the sets will have. */
static int make_sets(const struct gf_work *w, const struct gf_recipe *r, int rank,
		     struct gf_lane_program *program, struct gf_error *err)
{
	GF_RELEASED(gf_schedule_release) struct gf_schedule s = {0};
	int rc = gf_algorithm_schedule(r->way.algorithm, &r->args, rank, &s, err);

	if (!rc)
		gf_lane_program_of_sets(&s, w->sets, program);
	return rc;
}

static int make_program(const struct gf_engine *e, const struct gf_work *w, int rank,
			struct gf_lane_program *program, struct gf_error *err)
{
	struct gf_recipe r;
	int rc;

	if (w->schedule) {
		gf_lane_program_of(w->schedule, NULL, program);
		return 0;
	}
	rc = gf_streams_recipe(e, w, &r, err);
	if (rc)
		return rc;
	return w->sets ? make_sets(w, &r, rank, program, err)
		       : gf_lane_program_new(r.way.algorithm, &r.args, rank, r.element.codec,
					     program, err);
}

static bool is_call(const struct gf_lane_step *step)
{
	return step->op == GF_LANE_ALL_REDUCE || step->op == GF_LANE_REDUCE_SCATTER ||
	       step->op == GF_LANE_ALL_GATHER;
}

int gf_streams_schedule(const struct gf_engine *e, const struct gf_work *w, int rank,
			struct gf_schedule *s, struct gf_error *err)
{
	GF_RELEASED(gf_lane_program_release) struct gf_lane_program program = {0};
	int rc = make_program(e, w, rank, &program, err);

	if (!rc && w->way && !w->way->algorithm->build)
		rc = gf_error_set(err, -ENOTSUP, "%s has no steps of its own",
				  w->way->algorithm->name);
	for (size_t i = 0; i < program.nsteps && !rc; i++)
		if (is_call(&program.steps[i]))
			rc = gf_error_set(
				err, -ENOTSUP,
				"a call of NCCL has no steps of its own, which could be proved");
	if (!rc)
		gf_lane_program_schedule(&program, s);
	return rc;
}

int gf_streams_path(struct gf_streams *e, const struct gf_work *w, struct gf_streams_path **path,
		    bool *made, struct gf_error *err)
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
	p->way = w->way;
	p->schedule = w->schedule;
	p->sparse = w->sparse;
	p->sets = w->sets;
	p->half = w->half;
	p->owners = w->owners;
	p->count_elems = w->count_elems;
	p->skew_elems = w->skew_elems;
	rc = make_program(&e->base, w, e->base.comm->rank, &p->program, err);
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
	return gf_lane_prepare(&e->lanes[path->lane], &path->program, err);
}

void gf_streams_forget(struct gf_engine *engine, const struct gf_work *like, size_t n)
{
	struct gf_streams *e = gf_streams_of(engine);
	struct gf_streams_path **p, *gone;

	pthread_mutex_lock(&e->base.thread.lock);
	for (size_t i = 0; i < n; i++)
		for (p = &e->paths; *p;) {
			gone = *p;
			if (!is_for(gone, &like[i], gf_streams_lane(e, &like[i]))) {
				p = &gone->next;
				continue;
			}
			*p = gone->next;
			gf_lane_forget(&e->lanes[gone->lane], &gone->program);
			gf_lane_program_release(&gone->program);
			free(gone);
		}
	pthread_mutex_unlock(&e->base.thread.lock);
}
