/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Branch and bound over every partition, mode and option: exact where it ends within its budget,
 * which it does for a dozen tensors and one option, and for more where the bound bites. Depth
 * first, the draft so far on a stack.
 *
 * A state does not know how long later messages will hold backward up, which slows messages until
 * then: its times are too early, if anything. So bounds hold, and a plan that seems better than the
 * best is predicted as a whole.
 */

#include "base/heap.h"
#include "planner/search/search.h"

#define MIXES 5

struct level {
	struct gf_send send;
	struct gf_sim_state state; /* after its start */
};

struct tree {
	const struct gf_workbench *w;
	struct gf_rest rest;
	int lanes;
	double below_s;                          /* to beat */
	struct level *levels;                    /* ntensors + 1; levels[0]: nothing sent */
	struct gf_sim_flight *flights, *scratch; /* per level; for one */
	struct gf_draft *best;
	double left; /* of the budget */
};

/* The iteration if this is the last message, or less. */
static double end_s(struct tree *t, const struct gf_sim_state *s)
{
	struct gf_sim_state copy;

	gf_workbench_copy(&copy, s, t->scratch);
	return gf_workbench_end_s(t->w, &copy);
}

/* Keeps the messages so far, which are all, if they are better. */
static void judge(struct tree *t, size_t depth)
{
	struct gf_draft d = {.lanes = t->lanes};

	d.sends = gf_xcalloc(depth, sizeof(*d.sends));
	d.nsends = d.capacity = depth;
	for (size_t i = 0; i < depth; i++)
		d.sends[i] = t->levels[i + 1].send;
	gf_workbench_predict(t->w, &d);
	if (d.iteration_s < t->below_s) {
		t->below_s = d.iteration_s;
		free(t->best->sends);
		t->best->sends = d.sends;
		t->best->nsends = t->best->capacity = depth;
	} else {
		free(d.sends);
	}
}

static void descend(struct tree *t, size_t depth, size_t first);

/* One message at this depth, and all that can follow it. Returns whether it started beside
 * another. */
static bool branch(struct tree *t, size_t depth, const struct gf_send *send)
{
	struct level *here = &t->levels[depth];
	size_t next = send->last + 1;
	bool beside;

	here->send = *send;
	gf_workbench_copy(&here->state, &t->levels[depth - 1].state,
			  &t->flights[depth * (size_t)t->lanes]);
	beside = gf_rest_send(&t->rest, &here->state, send);
	if (!beside)
		here->send.mode = GF_MODE_NORMAL;
	t->left--;
	if (gf_rest_bound_s(&t->rest, &here->state, next, NULL) >= t->below_s)
		return beside;
	if (next < t->w->ntensors) {
		descend(t, depth + 1, next);
	} else if (end_s(t, &here->state) < t->below_s) {
		judge(t, depth);
	}
	return beside;
}

static void descend(struct tree *t, size_t depth, size_t first)
{
	const struct gf_menu *menu = &t->w->menu;

	for (size_t last = first; last <= t->w->run_last[first]; last++)
		for (size_t e = 0; e < menu->nchoices && t->left > 0; e++) {
			struct gf_send send = {
				.first = first,
				.last = last,
				.mode = GF_MODE_SIMULTANEOUS,
				.release = t->w->in->release,
				.option = menu->choices[e],
			};

			if (!gf_line_holds(&menu->options[send.option].line,
					   gf_workbench_bytes(t->w, first, last)) ||
			    !branch(t, depth, &send))
				continue;
			send.mode = GF_MODE_NORMAL;
			branch(t, depth, &send);
		}
}

bool gf_search_exhaust(const struct gf_workbench *w, double below_s, double budget,
		       struct gf_draft *d)
{
	size_t n = w->ntensors, lanes = (size_t)d->lanes;
	struct tree t = {
		.w = w,
		.lanes = d->lanes,
		.below_s = below_s,
		.levels = gf_xcalloc(n + 1, sizeof(*t.levels)),
		.flights = gf_xcalloc((n + 1) * lanes, sizeof(*t.flights)),
		.scratch = gf_xcalloc(lanes, sizeof(*t.scratch)),
		.best = d,
		.left = budget,
	};

	gf_rest_init(&t.rest, w, d->lanes, MIXES);
	t.levels[0].state = gf_workbench_begin(w, d->lanes, t.flights);
	descend(&t, 1, 0);
	gf_rest_release(&t.rest);
	free(t.levels);
	free(t.flights);
	free(t.scratch);
	return t.left > 0;
}
