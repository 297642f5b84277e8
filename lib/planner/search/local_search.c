/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local search on a finished draft. A round replaces windows of one to three neighbouring messages:
 * cuts move by 1, 2, 4, ... tensors, messages are merged, split and re-split, modes flip, options
 * change. A change is kept if the step model predicts a shorter iteration. The search ends when a
 * round changes nothing, or when its budget (messages simulated) is spent.
 *
 * After the first round only windows near a change are tried again, and all once more when none of
 * these is left. Trials that fare worse than the draft are given up after a few messages at first,
 * and followed to the end later.
 *
 * Then the draft is changed at random somewhere and the search goes on from there, near the change:
 * iterated local search (Lourenco, Martin and Stuetzle, 2003).
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/heap.h"
#include "base/rng.h"
#include "planner/search/search.h"
#include "planner/workbench.h"

/*
 * Changes to a draft, tried one at a time. The states between the messages of the draft are kept,
 * so that a trial starts at its window; it ends early where it has no hope: the bound on the rest
 * is not below the best, or it is nowhere ahead of the draft itself.
 */
#define WINDOW 3 /* messages that are replaced at once */

struct trials {
	const struct gf_workbench *w;
	struct gf_rest rest;
	struct gf_draft *d;
	size_t lanes;
	struct gf_sim_state *states;   /* before each message, and at the end */
	struct gf_sim_flight *flights; /* of each state */
	struct gf_sim_flight *trial;
	double *priced_s; /* after each message, by the bound's prices */
	bool *settled;    /* per message: windows from there on were in vain */
	double below_s;   /* the iteration of a trial that is kept */
	size_t patience;  /* messages after a window, until which it is behind */
	size_t from;      /* the first message that was changed */
	double left;      /* of the budget */
};

/* Messages i..i+old-1 of the draft replaced by others. */
struct window {
	size_t i, old, n;
	struct gf_send sends[WINDOW];
};

#define NEAR  3 /* messages on either side of a change */
#define MIXES 3

/* Finds the states after message i, and after all later ones, anew. */
static void follow(struct trials *b, size_t i)
{
	for (; i < b->d->nsends; i++) {
		struct gf_sim_state *s = &b->states[i + 1];
		const struct gf_send *send = &b->d->sends[i];

		gf_workbench_copy(s, &b->states[i], &b->flights[(i + 1) * b->lanes]);
		gf_rest_send(&b->rest, s, send);
		gf_rest_bound_s(&b->rest, s, send->last + 1, &b->priced_s[i]);
		b->priced_s[i] += s->lag_s;
		b->left--;
	}
}

/* Is a nowhere ahead of c? */
static bool no_better(const struct gf_sim_state *a, const struct gf_sim_state *c)
{
	if (a->now_s < c->now_s || a->lag_s < c->lag_s || a->nflights != c->nflights)
		return false;
	for (int i = 0; i < a->nflights; i++) {
		const struct gf_sim_flight *x = &a->flights[i];
		const struct gf_sim_flight *y = &c->flights[i];

		if (x->left_s < y->left_s || x->draining > y->draining ||
		    x->startup_end_s < y->startup_end_s || x->startup_drag > y->startup_drag ||
		    x->beside != y->beside || x->mutual != y->mutual ||
		    memcmp(&x->contention, &y->contention, sizeof(x->contention)) != 0)
			return false;
	}
	return true;
}

/* The iteration with the window, or INFINITY if it is no shorter. */
static double trial_s(struct trials *b, const struct window *v)
{
	const struct gf_send *sends = b->d->sends;
	struct gf_sim_state s;

	gf_workbench_copy(&s, &b->states[v->i], b->trial);
	for (size_t i = 0; i < v->n; i++) {
		gf_rest_send(&b->rest, &s, &v->sends[i]);
		b->left--;
		if (gf_rest_bound_s(&b->rest, &s, v->sends[i].last + 1, NULL) >= b->below_s)
			return INFINITY;
	}
	for (size_t i = v->i + v->old; i < b->d->nsends; i++) {
		double priced_s;

		if (no_better(&s, &b->states[i]))
			return INFINITY;
		gf_rest_send(&b->rest, &s, &sends[i]);
		b->left--;
		if (gf_rest_bound_s(&b->rest, &s, sends[i].last + 1, &priced_s) >= b->below_s)
			return INFINITY;
		if (i - (v->i + v->old) >= b->patience && priced_s + s.lag_s >= b->priced_s[i])
			return INFINITY;
	}
	return gf_workbench_end_s(b->w, &s);
}

/* The messages of the window have changed: those around them may, too. */
static void unsettle(struct trials *b, const struct window *v)
{
	size_t from = v->i < NEAR ? 0 : v->i - NEAR;
	size_t after = v->i + v->n + NEAR;

	memmove(&b->settled[v->i + v->n], &b->settled[v->i + v->old], b->d->nsends - v->i - v->old);
	for (; from < after && from < b->w->ntensors; from++)
		b->settled[from] = false;
}

/* Puts the window into the draft. */
static void replace(struct trials *b, const struct window *v)
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
	follow(b, v->i);
	gf_workbench_copy(&end, &b->states[d->nsends], b->trial);
	d->iteration_s = b->below_s = gf_workbench_end_s(b->w, &end);
}

/* Keeps the window if that is better. */
static bool judge(struct trials *b, const struct window *v)
{
	if (trial_s(b, v) >= b->below_s)
		return false;
	replace(b, v);
	return true;
}

/* d: a predicted draft, which stays the caller's; budget in simulated messages. */
static void begin_trials(struct trials *b, const struct gf_workbench *w, double budget,
			 struct gf_draft *d)
{
	size_t n = w->ntensors, lanes = (size_t)d->lanes;
	struct gf_sim_state last;

	*b = (struct trials){
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
	follow(b, 0);
	gf_workbench_copy(&last, &b->states[d->nsends], b->trial);
	b->below_s = d->iteration_s = gf_workbench_end_s(w, &last);
}

static void end_trials(struct trials *b)
{
	gf_rest_release(&b->rest);
	free(b->states);
	free(b->flights);
	free(b->trial);
	free(b->priced_s);
	free(b->settled);
}

#define PATIENCE 8 /* messages, at first */
/* Merging: the limit is approached in so many steps. */
#define MERGE_STEPS 8

static bool fits(const struct trials *b, const struct gf_send *s)
{
	return gf_line_holds(&b->w->menu.options[s->option].line,
			     gf_workbench_bytes(b->w, s->first, s->last));
}

/* The window with the options that its messages have, and with the cheapest; false, too, if a
 * message would be empty or of two types. */
static bool offer(struct trials *b, struct window *v)
{
	bool fit = true, changed = false;

	for (size_t i = 0; i < v->n; i++) {
		const struct gf_send *s = &v->sends[i];

		if (s->first > s->last || b->w->run_last[s->first] < s->last)
			return false;
		fit &= fits(b, s);
	}
	if (fit && judge(b, v))
		return true;
	for (size_t i = 0; i < v->n; i++) {
		struct gf_send *s = &v->sends[i];
		size_t cheapest =
			gf_menu_pick(&b->w->menu, gf_workbench_bytes(b->w, s->first, s->last));

		changed |= s->option != cheapest;
		s->option = cheapest;
	}
	return changed && judge(b, v);
}

/* n messages from i on, to be changed to at least that many. */
static struct window window_at(const struct trials *b, size_t i, size_t n)
{
	struct window v = {.i = i, .old = n, .n = n};

	memcpy(v.sends, &b->d->sends[i], n * sizeof(*v.sends));
	return v;
}

/* Moves the cut after message i. */
static bool move(struct trials *b, size_t i)
{
	bool won = false;
	size_t step, last;

	for (step = 1; step < b->w->ntensors; step *= 2)
		for (int down = 0; down < 2; down++) {
			struct window v = window_at(b, i, 2);

			last = v.sends[0].last;
			if (down && last < v.sends[0].first + step)
				continue;
			last = down ? last - step : last + step;
			if (last >= v.sends[1].last)
				continue;
			v.sends[0].last = last;
			v.sends[1].first = last + 1;
			won |= offer(b, &v);
		}
	return won;
}

/* Two messages into one, in either's place. */
static bool merge(struct trials *b, size_t i)
{
	struct window v = window_at(b, i, 2);
	struct window w = v;

	v.n = w.n = 1;
	v.sends[0].last = v.sends[1].last;
	w.sends[0] = w.sends[1];
	w.sends[0].first = v.sends[0].first;
	return offer(b, &v) || offer(b, &w);
}

/* One into two, at quarters of its bytes. */
static bool split(struct trials *b, size_t i, enum gf_mode mode)
{
	for (int quarter = 1; quarter < 4; quarter++) {
		struct window v = window_at(b, i, 1);
		struct gf_send *s = v.sends;
		double bytes = gf_workbench_bytes(b->w, s->first, s->last);
		size_t at = gf_workbench_lazy_cut(b->w, s->first, bytes * quarter / 4);

		if (s->first == s->last)
			return false;
		v.n = 2;
		if (at == s->last)
			at--;
		s[1] = s[0];
		s[1].mode = mode;
		s[1].first = at + 1;
		s[0].last = at;
		if (offer(b, &v))
			return true;
	}
	return false;
}

/* Three messages into two, at the middle one's cuts and middle. */
static bool share_out(struct trials *b, size_t i)
{
	struct window v = window_at(b, i, 3);
	struct gf_send middle = v.sends[1], last = v.sends[2];
	double bytes = gf_workbench_bytes(b->w, middle.first, middle.last);
	size_t at = gf_workbench_lazy_cut(b->w, middle.first, bytes / 2);

	v.n = 2;
	v.sends[0].last = at;
	v.sends[1] = last;
	v.sends[1].first = at + 1;
	return offer(b, &v);
}

static bool choose(struct trials *b, size_t i)
{
	const struct gf_menu *menu = &b->w->menu;
	bool won = false;
	int mode, modes = i > 0 && b->lanes > 1 ? 2 : 1;

	for (mode = 0; mode < modes; mode++)
		for (size_t k = 0; k < menu->nchoices; k++) {
			struct window v = window_at(b, i, 1);
			struct gf_send *s = &v.sends[0];
			size_t option = menu->choices[k];

			if (mode)
				s->mode = s->mode == GF_MODE_NORMAL ? GF_MODE_SIMULTANEOUS
								    : GF_MODE_NORMAL;
			if (!mode && option == s->option)
				continue;
			s->option = option;
			if (fits(b, s))
				won |= judge(b, &v);
		}
	return won;
}

static bool improve(struct trials *b, size_t i)
{
	bool won = choose(b, i);

	if (i + 1 < b->d->nsends) {
		won |= move(b, i);
		won |= merge(b, i);
	}
	if (i + 2 < b->d->nsends)
		won |= share_out(b, i);
	won |= split(b, i, GF_MODE_NORMAL);
	if (b->lanes > 1)
		won |= split(b, i, GF_MODE_SIMULTANEOUS);
	return won;
}

/* Until nothing improves, or only near the last changes. */
static void descend(struct trials *b, bool everywhere)
{
	bool all = everywhere, won;

	do {
		won = false;
		for (size_t i = 0; i < b->d->nsends && b->left > 0; i++) {
			if (!all && b->settled[i])
				continue;
			b->settled[i] = true;
			won |= improve(b, i);
		}
		all = everywhere && !won && !all;
		if (everywhere && !won && !all && b->patience < SIZE_MAX) {
			b->patience = SIZE_MAX;
			all = true;
		}
	} while ((won || all) && b->left > 0);
}

/* Two neighbours are cut elsewhere, in another mode, or made one, whatever that costs. */
static bool kick(struct trials *b, struct gf_rng *rng)
{
	size_t i = gf_rng_below(rng, b->d->nsends - 1);
	struct window v = window_at(b, i, 2);
	struct gf_send *s = v.sends;
	size_t last = s[1].last, cut;

	if (b->w->run_last[s->first] < last)
		return false;
	cut = s->first + gf_rng_below(rng, last - s->first + 1);
	s[0].last = cut;
	s[1].first = cut + 1;
	v.n = cut < last ? 2 : 1;
	for (i = 0; i < v.n; i++) {
		s[i].option =
			gf_menu_pick(&b->w->menu, gf_workbench_bytes(b->w, s[i].first, s[i].last));
		if (b->lanes > 1 && gf_rng_below(rng, 2))
			s[i].mode =
				s[i].mode == GF_MODE_NORMAL ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
	}
	replace(b, &v);
	return true;
}

/* A local search from one kick after the other; what is no better is taken back. */
static void shake(struct trials *b, int kicks)
{
	struct gf_draft *d = b->d;
	size_t n = d->nsends;
	GF_FREED struct gf_send *best = gf_xcalloc(b->w->ntensors, sizeof(*best));
	struct gf_rng rng;

	gf_rng_init(&rng, 1, 0);
	memcpy(best, d->sends, n * sizeof(*best));
	for (; kicks > 0 && d->nsends > 1 && b->left > 0; kicks--) {
		double best_s = d->iteration_s;

		b->from = SIZE_MAX;
		if (!kick(b, &rng))
			continue;
		descend(b, false);
		if (d->iteration_s < best_s) {
			n = d->nsends;
			memcpy(best, d->sends, n * sizeof(*best));
			continue;
		}
		memcpy(d->sends, best, n * sizeof(*best));
		d->nsends = n;
		d->iteration_s = b->below_s = best_s;
		follow(b, b->from);
		memset(b->settled, true, b->w->ntensors);
	}
}

void gf_search_polish(const struct gf_workbench *w, double budget, int kicks, struct gf_draft *d)
{
	struct trials b;

	begin_trials(&b, w, budget, d);
	b.patience = PATIENCE;
	descend(&b, true);
	shake(&b, kicks);
	end_trials(&b);
}

void gf_search_merge(const struct gf_workbench *w, double limit_s, double budget,
		     struct gf_draft *d)
{
	double first_s = d->iteration_s;
	struct trials b;

	begin_trials(&b, w, budget, d);
	for (int step = 1; step <= MERGE_STEPS; step++) {
		double now_s = first_s + (limit_s - first_s) * step / MERGE_STEPS;

		for (size_t i = 0; i + 1 < d->nsends && b.left > 0;) {
			b.below_s = nextafter(now_s, INFINITY);
			if (!merge(&b, i))
				i++;
		}
		b.below_s = d->iteration_s;
		for (size_t i = 0; i + 1 < d->nsends && b.left > 0; i++)
			move(&b, i);
	}
	end_trials(&b);
}
