/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of a GPU as a schedule again, for the verifier. */

#include "base/heap.h"
#include "cuda/lanes/program.h"

/* The elements that fit into these bytes without headers: places that lie apart do so here, too.
 * Sets of multiples of 256 bytes follow each other exactly. */
static size_t wire_elems(const struct gf_lane_program *p, size_t bytes)
{
	if (p->codec)
		return bytes * 8 / p->codec->elem_bits;
	return bytes / (p->sets ? p->sets->size_bytes : sizeof(float));
}

/* Wire memory becomes scratch after the program's own scratch, with an element for each that lies
 * there. */
static struct gf_range wire_of(const struct gf_lane_program *p, const struct gf_lane_step *step)
{
	return (struct gf_range){GF_BUFFER_SCRATCH, p->scratch_elems + wire_elems(p, step->wire_at),
				 step->range.count};
}

static void one(const struct gf_lane_program *p, const struct gf_lane_step *step,
		struct gf_schedule *s)
{
	const struct gf_group all = {0, 1, p->ranks, p->rank};
	const struct gf_cut whole = {0};
	struct gf_range where = step->on_wire ? wire_of(p, step) : step->range;

	switch (step->op) {
	case GF_LANE_ENCODE:
		gf_schedule_copy(s, wire_of(p, step), step->range);
		gf_schedule_round(s, wire_of(p, step));
		break;
	case GF_LANE_DECODE:
		gf_schedule_copy(s, step->range, wire_of(p, step));
		break;
	case GF_LANE_SEND:
		gf_schedule_send(s, step->peer, where);
		break;
	case GF_LANE_RECV:
		gf_schedule_recv(s, step->peer, where);
		break;
	case GF_LANE_REDUCE_WIRE:
		gf_schedule_reduce(s, step->range, wire_of(p, step));
		break;
	case GF_LANE_COPY:
		gf_schedule_copy(s, step->range, step->from);
		break;
	case GF_LANE_REDUCE:
		gf_schedule_reduce(s, step->range, step->from);
		break;
	case GF_LANE_ALL_REDUCE:
		gf_ring_reduce_scatter(s, &all, step->range, &whole);
		gf_ring_all_gather(s, &all, step->range, &whole);
		break;
	case GF_LANE_REDUCE_SCATTER:
		gf_ring_reduce_scatter(s, &p->teams[step->team], step->range, &whole);
		break;
	case GF_LANE_ALL_GATHER:
		gf_ring_all_gather(s, &p->teams[step->team], step->range, &whole);
		break;
	default: /* groups */
		break;
	}
}

/* The schedule steps at which each stretch of the stream begins. A group is one stretch. A
 * collective is a stretch of as many steps as its ring has; their order within is free (NCCL
 * decides it). */
struct stretches {
	size_t *begins, count;
	bool *free; /* its steps keep the dependencies of their ranges */
};

static void cut(struct stretches *t, const struct gf_schedule *s, bool keeps)
{
	if (t->count && t->begins[t->count - 1] == s->nsteps)
		t->count--; /* nothing was added since */
	t->begins[t->count] = s->nsteps;
	t->free[t->count++] = keeps;
}

/* Every step of a stretch waits for all of the stretch before. The dependencies that a group's
 * ranges imply are dropped, so that the verifier sees a conflict. */
static void order(struct gf_schedule *s, const struct stretches *t)
{
	uint32_t *deps = NULL;
	size_t ndeps = 0, room = 0, k, i, d;

	for (k = 0; k < t->count; k++) {
		size_t end = k + 1 < t->count ? t->begins[k + 1] : s->nsteps;
		size_t before = k ? t->begins[k - 1] : t->begins[k];

		for (i = t->begins[k]; i < end; i++) {
			struct gf_step *step = &s->steps[i];
			size_t first = ndeps;

			room = ndeps + (t->begins[k] - before) + step->ndeps;
			deps = gf_xreallocarray(deps, room + 1, sizeof(*deps));
			for (d = before; d < t->begins[k]; d++)
				deps[ndeps++] = (uint32_t)d;
			for (d = 0; t->free[k] && d < step->ndeps; d++)
				if (s->deps[step->first_dep + d] >= t->begins[k])
					deps[ndeps++] = s->deps[step->first_dep + d];
			step->first_dep = (uint32_t)first;
			step->ndeps = (uint32_t)(ndeps - first);
		}
	}
	free(s->deps);
	s->deps = deps;
	s->ndeps = ndeps;
}

void gf_lane_program_schedule(const struct gf_lane_program *p, struct gf_schedule *s)
{
	struct stretches t = {0};
	bool in_group = false;

	gf_schedule_init(s, p->rank, p->ranks, p->count_elems);
	s->contributors = p->contributors;
	gf_schedule_own(s, p->owned);
	gf_schedule_scratch(s, p->scratch_elems + wire_elems(p, p->wire_bytes));
	t.begins = gf_xcalloc(p->nsteps + 1, sizeof(*t.begins));
	t.free = gf_xcalloc(p->nsteps + 1, sizeof(*t.free));
	for (size_t i = 0; i < p->nsteps; i++) {
		const struct gf_lane_step *step = &p->steps[i];

		/* the verifier need not see steps of one operation in disorder */
		if (!in_group)
			cut(&t, s, step->op >= GF_LANE_ALL_REDUCE || step->op == GF_LANE_ENCODE);
		if (step->op == GF_LANE_GROUP)
			in_group = true;
		if (step->op == GF_LANE_GROUP_END)
			in_group = false;
		one(p, step, s);
	}
	gf_schedule_finish(s);
	order(s, &t);
	free(t.begins);
	free(t.free);
}
