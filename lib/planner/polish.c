/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local search on a finished draft. A round replaces windows of one to three
 * neighbouring messages: cuts move by 1, 2, 4, ... tensors, messages are
 * merged, split and re-split, modes flip, options change. A change is kept if
 * the step model predicts a shorter iteration. The search ends when a round
 * changes nothing, or when its budget (messages simulated) is spent.
 *
 * The states between the messages of the draft are kept, so that a trial starts
 * at its window; it ends early where it has no hope: the bound on the rest is
 * not below the best, or it has come to a state of the draft itself.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "planner/search.h"

#define WINDOW 3
#define MIXES  3
/* Merging: the limit is approached in so many steps. */
#define MERGE_STEPS 8

struct bench {
	const struct gf_work *w;
	struct gf_rest rest;
	struct gf_draft *d;
	size_t lanes;
	struct gf_sim_state *states;   /* before each message, and at the end */
	struct gf_sim_flight *flights; /* of each state */
	struct gf_sim_flight *trial, *scratch;
	double below_s; /* the iteration of a trial that is kept */
	double left;    /* of the budget */
};

/* Messages i..i+old-1 of the draft replaced by others. */
struct window {
	size_t i, old, n;
	struct gf_send sends[WINDOW];
};

static struct gf_sim_flight *flights_of(struct bench *b, size_t i)
{
	return &b->flights[i * b->lanes];
}

/* The states after message i and after all later ones. */
static void follow(struct bench *b, size_t i)
{
	for (; i < b->d->nsends; i++) {
		gf_work_copy(&b->states[i + 1], &b->states[i],
			     flights_of(b, i + 1));
		gf_rest_send(&b->rest, &b->states[i + 1], &b->d->sends[i]);
	}
}

static bool same(const struct gf_sim_state *a, const struct gf_sim_state *c)
{
	int i;

	if (a->now_s != c->now_s || a->lag_s != c->lag_s ||
	    a->nflights != c->nflights)
		return false;
	for (i = 0; i < a->nflights; i++) {
		const struct gf_sim_flight *x = &a->flights[i];
		const struct gf_sim_flight *y = &c->flights[i];

		if (x->left_s != y->left_s || x->draining != y->draining ||
		    x->startup_end_s != y->startup_end_s ||
		    x->beside != y->beside || x->mutual != y->mutual ||
		    memcmp(&x->contention, &y->contention,
			   sizeof(x->contention)) != 0)
			return false;
	}
	return true;
}

/* The iteration with the window, or INFINITY if it is no shorter. */
static double trial_s(struct bench *b, const struct window *v)
{
	const struct gf_send *sends = b->d->sends;
	struct gf_sim_state s;
	size_t i;

	gf_work_copy(&s, &b->states[v->i], b->trial);
	for (i = 0; i < v->n; i++) {
		gf_rest_send(&b->rest, &s, &v->sends[i]);
		b->left--;
		if (gf_rest_bound_s(&b->rest, &s, v->sends[i].last + 1, NULL) >=
		    b->below_s)
			return INFINITY;
	}
	for (i = v->i + v->old; i < b->d->nsends; i++) {
		if (same(&s, &b->states[i]))
			return INFINITY;
		gf_rest_send(&b->rest, &s, &sends[i]);
		b->left--;
		if (gf_rest_bound_s(&b->rest, &s, sends[i].last + 1, NULL) >=
		    b->below_s)
			return INFINITY;
	}
	return gf_work_end_s(b->w, &s);
}

/* Keeps the window if that is better. */
static bool judge(struct bench *b, const struct window *v)
{
	struct gf_draft *d = b->d;
	double s = trial_s(b, v);

	if (s >= b->below_s)
		return false;
	memmove(&d->sends[v->i + v->n], &d->sends[v->i + v->old],
		(d->nsends - v->i - v->old) * sizeof(*d->sends));
	memcpy(&d->sends[v->i], v->sends, v->n * sizeof(*d->sends));
	d->nsends += v->n;
	d->nsends -= v->old;
	d->iteration_s = b->below_s = s;
	follow(b, v->i);
	return true;
}

static bool fits(const struct bench *b, const struct gf_send *s)
{
	return gf_option_fits(&b->w->menu.options[s->option],
			      gf_work_bytes(b->w, s->first, s->last));
}

/* The window with the options that its messages have, and with the cheapest;
 * false, too, if a message would be empty or of two types. */
static bool offer(struct bench *b, struct window *v)
{
	bool fit = true, changed = false;
	size_t i;

	for (i = 0; i < v->n; i++) {
		const struct gf_send *s = &v->sends[i];

		if (s->first > s->last || b->w->run_last[s->first] < s->last)
			return false;
		fit &= fits(b, s);
	}
	if (fit && judge(b, v))
		return true;
	for (i = 0; i < v->n; i++) {
		struct gf_send *s = &v->sends[i];
		size_t cheapest = gf_menu_pick(
			&b->w->menu, gf_work_bytes(b->w, s->first, s->last));

		changed |= s->option != cheapest;
		s->option = cheapest;
	}
	return changed && judge(b, v);
}

/* n messages from i on, to be changed to at least that many. */
static struct window window_at(const struct bench *b, size_t i, size_t n)
{
	struct window v = {.i = i, .old = n, .n = n};

	memcpy(v.sends, &b->d->sends[i], n * sizeof(*v.sends));
	return v;
}

/* Moves the cut after message i. */
static bool move(struct bench *b, size_t i)
{
	bool won = false;
	size_t step, last;
	int down;

	for (step = 1; step < b->w->ntensors; step *= 2)
		for (down = 0; down < 2; down++) {
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
static bool merge(struct bench *b, size_t i)
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
static bool split(struct bench *b, size_t i, enum gf_mode mode)
{
	int quarter;

	for (quarter = 1; quarter < 4; quarter++) {
		struct window v = window_at(b, i, 1);
		struct gf_send *s = v.sends;
		double bytes = gf_work_bytes(b->w, s->first, s->last);
		size_t at =
			gf_work_lazy_cut(b->w, s->first, bytes * quarter / 4);

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
static bool share_out(struct bench *b, size_t i)
{
	struct window v = window_at(b, i, 3);
	struct gf_send middle = v.sends[1], last = v.sends[2];
	double bytes = gf_work_bytes(b->w, middle.first, middle.last);
	size_t at = gf_work_lazy_cut(b->w, middle.first, bytes / 2);

	v.n = 2;
	v.sends[0].last = at;
	v.sends[1] = last;
	v.sends[1].first = at + 1;
	return offer(b, &v);
}

static bool choose(struct bench *b, size_t i)
{
	const struct gf_menu *menu = &b->w->menu;
	bool won = false;
	size_t k;
	int mode, modes = i > 0 && b->lanes > 1 ? 2 : 1;

	for (mode = 0; mode < modes; mode++)
		for (k = 0; k < menu->nchoices; k++) {
			struct window v = window_at(b, i, 1);
			struct gf_send *s = &v.sends[0];
			size_t option = menu->choices[k];

			if (mode)
				s->mode = s->mode == GF_MODE_NORMAL
						  ? GF_MODE_SIMULTANEOUS
						  : GF_MODE_NORMAL;
			if (!mode && option == s->option)
				continue;
			s->option = option;
			if (fits(b, s))
				won |= judge(b, &v);
		}
	return won;
}

static bool improve(struct bench *b, size_t i)
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

static void bench_init(struct bench *b, const struct gf_work *w, double budget,
		       struct gf_draft *d)
{
	size_t n = w->ntensors, lanes = (size_t)d->lanes;
	struct gf_sim_state last;

	*b = (struct bench){
		.w = w,
		.d = d,
		.lanes = lanes,
		.states = gf_xcalloc(n + 1, sizeof(*b->states)),
		.flights = gf_xcalloc((n + 1) * lanes, sizeof(*b->flights)),
		.trial = gf_xcalloc(lanes, sizeof(*b->trial)),
		.left = budget,
	};
	d->sends = gf_xreallocarray(d->sends, n, sizeof(*d->sends));
	d->capacity = n;
	gf_rest_init(&b->rest, w, d->lanes, MIXES);
	b->states[0] = gf_work_begin(w, d->lanes, b->flights);
	follow(b, 0);
	gf_work_copy(&last, &b->states[d->nsends], b->trial);
	b->below_s = d->iteration_s = gf_work_end_s(w, &last);
}

static void bench_release(struct bench *b)
{
	gf_rest_release(&b->rest);
	free(b->states);
	free(b->flights);
	free(b->trial);
}

void gf_search_polish(const struct gf_work *w, double budget,
		      struct gf_draft *d)
{
	struct bench b;
	bool won = true;
	size_t i;

	bench_init(&b, w, budget, d);
	while (won) {
		won = false;
		for (i = 0; i < d->nsends && b.left > 0; i++)
			won |= improve(&b, i);
	}
	bench_release(&b);
}

void gf_search_merge(const struct gf_work *w, double limit_s, double budget,
		     struct gf_draft *d)
{
	double first_s = d->iteration_s;
	struct bench b;
	size_t i;
	int step;

	bench_init(&b, w, budget, d);
	for (step = 1; step <= MERGE_STEPS; step++) {
		double now_s =
			first_s + (limit_s - first_s) * step / MERGE_STEPS;

		for (i = 0; i + 1 < d->nsends && b.left > 0;) {
			b.below_s = nextafter(now_s, INFINITY);
			if (!merge(&b, i))
				i++;
		}
		b.below_s = d->iteration_s;
		for (i = 0; i + 1 < d->nsends && b.left > 0; i++)
			move(&b, i);
	}
	bench_release(&b);
}
