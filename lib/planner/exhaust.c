/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Branch and bound over every partition, mode and option: exact where it ends
 * within its budget, which it does for a dozen tensors and one option, and for
 * more where the bound bites. Depth first, the draft so far on a stack.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "planner/search.h"
#include "sim/flight.h"

struct level {
	struct gf_send send;
	struct gf_sim_state state; /* after its start */
};

struct tree {
	const struct gf_work *w;
	struct gf_floor floor;
	int lanes;
	double below_s;       /* to beat, without the update */
	double *latest_s;     /* per position, the rest alone */
	struct level *levels; /* ntensors */
	struct gf_sim_flight *flights, *drain; /* ntensors * lanes; lanes */
	struct gf_draft *best;
	double left; /* of the budget */
};

/* The iteration's end, without the update, if this is the last message. */
static double end_s(struct tree *t, const struct gf_sim_state *s)
{
	struct gf_sim_state copy = *s;

	copy.flights = t->drain;
	memcpy(t->drain, s->flights, (size_t)s->nflights * sizeof(*t->drain));
	gf_sim_finish(&copy);
	return fmax(copy.now_s, t->w->backward_end_s + copy.lag_s);
}

static double floor_s(const struct tree *t, const struct gf_sim_state *s,
		      size_t next)
{
	double rest = gf_work_bytes(t->w, 0, t->w->ntensors - 1) -
		      t->w->prefix_bytes[next];
	double left = 0;
	int f;

	for (f = 0; f < s->nflights; f++)
		left += s->flights[f].left_s;
	return fmax(s->now_s + t->floor.share * left +
			    t->floor.drain_s_per_byte * rest,
		    fmax(t->latest_s[next], t->w->backward_end_s) + s->lag_s);
}

static void record(struct tree *t, size_t depth)
{
	size_t i;

	free(t->best->sends);
	t->best->sends = gf_xcalloc(depth + 1, sizeof(*t->best->sends));
	t->best->nsends = t->best->capacity = depth + 1;
	for (i = 0; i <= depth; i++)
		t->best->sends[i] = t->levels[i].send;
}

static void descend(struct tree *t, size_t depth, size_t first);

/* One message at this depth, and all that can follow it. Returns whether it
 * started beside another. */
static bool branch(struct tree *t, size_t depth, const struct gf_send *send)
{
	const struct gf_work *w = t->w;
	const struct gf_option *o = &w->menu.options[send->option];
	double bytes = gf_work_bytes(w, send->first, send->last);
	struct level *here = &t->levels[depth];
	size_t lanes = (size_t)t->lanes, next = send->last + 1;
	struct gf_sim_start start = {
		.mode = send->mode,
		.work_s = w->ready_s[send->last] - w->in->model->forward_s,
		.startup_s = o->startup_s,
		.drain_s = o->per_byte_s * bytes,
		.size_bytes = (size_t)fmin(bytes * o->wire_ratio, 0x1p62),
		.contention = o->contention,
		.mutual = o->mutual,
		.issue_s = w->in->model->issue_s,
	};
	bool beside;

	here->send = *send;
	if (depth > 0) {
		here->state = t->levels[depth - 1].state;
		memcpy(&t->flights[depth * lanes], here->state.flights,
		       lanes * sizeof(*t->flights));
	} else {
		here->state = (struct gf_sim_state){
			.now_s = w->in->model->forward_s,
			.backward_start_s = w->in->model->forward_s,
			.backward_s = w->in->model->backward_s,
			.slowdown = w->slowdown,
			.lanes = t->lanes,
		};
	}
	here->state.flights = &t->flights[depth * lanes];
	gf_sim_start(&here->state, &start);
	beside = here->state.nflights > 1;
	if (!beside)
		here->send.mode = GF_MODE_NORMAL;
	t->left--;
	if (floor_s(t, &here->state, next) >= t->below_s)
		return beside;
	if (next < w->ntensors) {
		descend(t, depth + 1, next);
	} else if (end_s(t, &here->state) < t->below_s) {
		t->below_s = end_s(t, &here->state);
		record(t, depth);
	}
	return beside;
}

static void descend(struct tree *t, size_t depth, size_t first)
{
	const struct gf_menu *menu = &t->w->menu;
	size_t last, e;

	for (last = first; last <= t->w->run_last[first]; last++)
		for (e = 0; e < menu->nchoices && t->left > 0; e++) {
			struct gf_send send = {
				.first = first,
				.last = last,
				.mode = GF_MODE_SIMULTANEOUS,
				.option = menu->choices[e],
			};

			if (!gf_option_fits(&menu->options[send.option],
					    gf_work_bytes(t->w, first, last)) ||
			    !branch(t, depth, &send))
				continue;
			send.mode = GF_MODE_NORMAL;
			branch(t, depth, &send);
		}
}

void gf_search_exhaust(const struct gf_work *w, double below_s, double budget,
		       struct gf_draft *d)
{
	size_t n = w->ntensors, lanes = (size_t)d->lanes, i;
	struct tree t = {
		.w = w,
		.floor = gf_work_floor(w, d->lanes),
		.lanes = d->lanes,
		.below_s = below_s - w->in->model->update_s,
		.latest_s = gf_xcalloc(n + 1, sizeof(double)),
		.levels = gf_xcalloc(n, sizeof(*t.levels)),
		.flights = gf_xcalloc(n * lanes, sizeof(*t.flights)),
		.drain = gf_xcalloc(lanes, sizeof(*t.drain)),
		.best = d,
		.left = budget,
	};

	for (i = n; i-- > 0;)
		t.latest_s[i] =
			fmax(t.latest_s[i + 1],
			     w->ready_s[i] + t.floor.startup_s +
				     t.floor.drain_s_per_byte *
					     gf_work_bytes(w, i, n - 1));
	descend(&t, 0, 0);
	free(t.latest_s);
	free(t.levels);
	free(t.flights);
	free(t.drain);
}
