/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/trial.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

#define NEAR  3 /* messages on either side of a change */
#define MIXES 3

static struct gf_sim_flight *flights_of(struct gf_trials *b, size_t i)
{
	return &b->flights[i * b->lanes];
}

/* The states after message i and after all later ones. */
void gf_trials_follow(struct gf_trials *b, size_t i)
{
	for (; i < b->d->nsends; i++) {
		struct gf_sim_state *s = &b->states[i + 1];
		const struct gf_send *send = &b->d->sends[i];

		gf_workbench_copy(s, &b->states[i], flights_of(b, i + 1));
		gf_rest_send(&b->rest, s, send);
		gf_rest_bound_s(&b->rest, s, send->last + 1, &b->priced_s[i]);
		b->priced_s[i] += s->lag_s;
		b->left--;
	}
}

/* Is a nowhere ahead of c? */
static bool no_better(const struct gf_sim_state *a,
		      const struct gf_sim_state *c)
{
	int i;

	if (a->now_s < c->now_s || a->lag_s < c->lag_s ||
	    a->nflights != c->nflights)
		return false;
	for (i = 0; i < a->nflights; i++) {
		const struct gf_sim_flight *x = &a->flights[i];
		const struct gf_sim_flight *y = &c->flights[i];

		if (x->left_s < y->left_s || x->draining > y->draining ||
		    x->startup_end_s < y->startup_end_s ||
		    x->startup_drag > y->startup_drag ||
		    x->beside != y->beside || x->mutual != y->mutual ||
		    memcmp(&x->contention, &y->contention,
			   sizeof(x->contention)) != 0)
			return false;
	}
	return true;
}

/* The iteration with the window, or INFINITY if it is no shorter. */
static double trial_s(struct gf_trials *b, const struct gf_window *v)
{
	const struct gf_send *sends = b->d->sends;
	struct gf_sim_state s;
	size_t i;

	gf_workbench_copy(&s, &b->states[v->i], b->trial);
	for (i = 0; i < v->n; i++) {
		gf_rest_send(&b->rest, &s, &v->sends[i]);
		b->left--;
		if (gf_rest_bound_s(&b->rest, &s, v->sends[i].last + 1, NULL) >=
		    b->below_s)
			return INFINITY;
	}
	for (i = v->i + v->old; i < b->d->nsends; i++) {
		double priced_s;

		if (no_better(&s, &b->states[i]))
			return INFINITY;
		gf_rest_send(&b->rest, &s, &sends[i]);
		b->left--;
		if (gf_rest_bound_s(&b->rest, &s, sends[i].last + 1,
				    &priced_s) >= b->below_s)
			return INFINITY;
		if (i - (v->i + v->old) >= b->patience &&
		    priced_s + s.lag_s >= b->priced_s[i])
			return INFINITY;
	}
	return gf_workbench_end_s(b->w, &s);
}

/* The messages of the window have changed: those around them may, too. */
static void unsettle(struct gf_trials *b, const struct gf_window *v)
{
	size_t from = v->i < NEAR ? 0 : v->i - NEAR;
	size_t after = v->i + v->n + NEAR;

	memmove(&b->settled[v->i + v->n], &b->settled[v->i + v->old],
		b->d->nsends - v->i - v->old);
	for (; from < after && from < b->w->ntensors; from++)
		b->settled[from] = false;
}

/* Puts the window into the draft. */
void gf_trials_replace(struct gf_trials *b, const struct gf_window *v)
{
	struct gf_draft *d = b->d;
	size_t n = d->nsends;
	struct gf_sim_state end;

	unsettle(b, v);
	memmove(&d->sends[v->i + v->n], &d->sends[v->i + v->old],
		(n - v->i - v->old) * sizeof(*d->sends));
	memcpy(&d->sends[v->i], v->sends, v->n * sizeof(*d->sends));
	d->nsends = n + v->n - v->old;
	b->from = v->i < b->from ? v->i : b->from;
	gf_trials_follow(b, v->i);
	gf_workbench_copy(&end, &b->states[d->nsends], b->trial);
	d->iteration_s = b->below_s = gf_workbench_end_s(b->w, &end);
}

/* Keeps the window if that is better. */
bool gf_trials_judge(struct gf_trials *b, const struct gf_window *v)
{
	if (trial_s(b, v) >= b->below_s)
		return false;
	gf_trials_replace(b, v);
	return true;
}

void gf_trials_init(struct gf_trials *b, const struct gf_workbench *w,
		    double budget, struct gf_draft *d)
{
	size_t n = w->ntensors, lanes = (size_t)d->lanes;
	struct gf_sim_state last;

	*b = (struct gf_trials){
		.w = w,
		.d = d,
		.lanes = lanes,
		.states = gf_xcalloc(n + 1, sizeof(*b->states)),
		.flights = gf_xcalloc((n + 1) * lanes, sizeof(*b->flights)),
		.trial = gf_xcalloc(lanes, sizeof(*b->trial)),
		.priced_s = gf_xcalloc(n, sizeof(*b->priced_s)),
		.settled = gf_xcalloc(n, sizeof(*b->settled)),
		.patience = SIZE_MAX,
		.left = budget,
	};
	d->sends = gf_xreallocarray(d->sends, n, sizeof(*d->sends));
	d->capacity = n;
	gf_rest_init(&b->rest, w, d->lanes, MIXES);
	b->states[0] = gf_workbench_begin(w, d->lanes, b->flights);
	gf_trials_follow(b, 0);
	gf_workbench_copy(&last, &b->states[d->nsends], b->trial);
	b->below_s = d->iteration_s = gf_workbench_end_s(w, &last);
}

void gf_trials_release(struct gf_trials *b)
{
	gf_rest_release(&b->rest);
	free(b->states);
	free(b->flights);
	free(b->trial);
	free(b->priced_s);
	free(b->settled);
}
