/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local search on a finished draft. A round replaces windows of one to three
 * neighbouring messages: cuts move by 1, 2, 4, ... tensors, messages are
 * merged, split and re-split, modes flip, options change. A change is kept if
 * the step model predicts a shorter iteration. The search ends when a round
 * changes nothing, or when its budget (messages simulated) is spent.
 *
 * After the first round only windows near a change are tried again, and all
 * once more when none of these is left. Trials that fare worse than the draft
 * are given up after a few messages at first, and followed to the end later.
 *
 * Then the draft is changed at random somewhere and the search goes on from
 * there, near the change: iterated local search (Lourenco, Martin and Stuetzle,
 * 2003).
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/rng.h"
#include "planner/search.h"
#include "planner/trial.h"

#define PATIENCE 8 /* messages, at first */
/* Merging: the limit is approached in so many steps. */
#define MERGE_STEPS 8

static bool fits(const struct gf_trials *b, const struct gf_send *s)
{
	return gf_option_fits(&b->w->menu.options[s->option],
			      gf_workbench_bytes(b->w, s->first, s->last));
}

/* The window with the options that its messages have, and with the cheapest;
 * false, too, if a message would be empty or of two types. */
static bool offer(struct gf_trials *b, struct gf_window *v)
{
	bool fit = true, changed = false;
	size_t i;

	for (i = 0; i < v->n; i++) {
		const struct gf_send *s = &v->sends[i];

		if (s->first > s->last || b->w->run_last[s->first] < s->last)
			return false;
		fit &= fits(b, s);
	}
	if (fit && gf_trials_judge(b, v))
		return true;
	for (i = 0; i < v->n; i++) {
		struct gf_send *s = &v->sends[i];
		size_t cheapest = gf_menu_pick(
			&b->w->menu,
			gf_workbench_bytes(b->w, s->first, s->last));

		changed |= s->option != cheapest;
		s->option = cheapest;
	}
	return changed && gf_trials_judge(b, v);
}

/* n messages from i on, to be changed to at least that many. */
static struct gf_window window_at(const struct gf_trials *b, size_t i, size_t n)
{
	struct gf_window v = {.i = i, .old = n, .n = n};

	memcpy(v.sends, &b->d->sends[i], n * sizeof(*v.sends));
	return v;
}

/* Moves the cut after message i. */
static bool move(struct gf_trials *b, size_t i)
{
	bool won = false;
	size_t step, last;
	int down;

	for (step = 1; step < b->w->ntensors; step *= 2)
		for (down = 0; down < 2; down++) {
			struct gf_window v = window_at(b, i, 2);

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
static bool merge(struct gf_trials *b, size_t i)
{
	struct gf_window v = window_at(b, i, 2);
	struct gf_window w = v;

	v.n = w.n = 1;
	v.sends[0].last = v.sends[1].last;
	w.sends[0] = w.sends[1];
	w.sends[0].first = v.sends[0].first;
	return offer(b, &v) || offer(b, &w);
}

/* One into two, at quarters of its bytes. */
static bool split(struct gf_trials *b, size_t i, enum gf_mode mode)
{
	int quarter;

	for (quarter = 1; quarter < 4; quarter++) {
		struct gf_window v = window_at(b, i, 1);
		struct gf_send *s = v.sends;
		double bytes = gf_workbench_bytes(b->w, s->first, s->last);
		size_t at = gf_workbench_lazy_cut(b->w, s->first,
						  bytes * quarter / 4);

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
static bool share_out(struct gf_trials *b, size_t i)
{
	struct gf_window v = window_at(b, i, 3);
	struct gf_send middle = v.sends[1], last = v.sends[2];
	double bytes = gf_workbench_bytes(b->w, middle.first, middle.last);
	size_t at = gf_workbench_lazy_cut(b->w, middle.first, bytes / 2);

	v.n = 2;
	v.sends[0].last = at;
	v.sends[1] = last;
	v.sends[1].first = at + 1;
	return offer(b, &v);
}

static bool choose(struct gf_trials *b, size_t i)
{
	const struct gf_menu *menu = &b->w->menu;
	bool won = false;
	size_t k;
	int mode, modes = i > 0 && b->lanes > 1 ? 2 : 1;

	for (mode = 0; mode < modes; mode++)
		for (k = 0; k < menu->nchoices; k++) {
			struct gf_window v = window_at(b, i, 1);
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
				won |= gf_trials_judge(b, &v);
		}
	return won;
}

static bool improve(struct gf_trials *b, size_t i)
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
static void descend(struct gf_trials *b, bool everywhere)
{
	bool all = everywhere, won;
	size_t i;

	do {
		won = false;
		for (i = 0; i < b->d->nsends && b->left > 0; i++) {
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

/* Two neighbours are cut elsewhere, in another mode, or made one, whatever that
 * costs. */
static bool kick(struct gf_trials *b, struct gf_rng *rng)
{
	size_t i = gf_rng_below(rng, b->d->nsends - 1);
	struct gf_window v = window_at(b, i, 2);
	struct gf_send *s = v.sends;
	size_t last = s[1].last, cut;

	if (b->w->run_last[s->first] < last)
		return false;
	cut = s->first + gf_rng_below(rng, last - s->first + 1);
	s[0].last = cut;
	s[1].first = cut + 1;
	v.n = cut < last ? 2 : 1;
	for (i = 0; i < v.n; i++) {
		s[i].option = gf_menu_pick(
			&b->w->menu,
			gf_workbench_bytes(b->w, s[i].first, s[i].last));
		if (b->lanes > 1 && gf_rng_below(rng, 2))
			s[i].mode = s[i].mode == GF_MODE_NORMAL
					    ? GF_MODE_SIMULTANEOUS
					    : GF_MODE_NORMAL;
	}
	gf_trials_replace(b, &v);
	return true;
}

/* A local search from one kick after the other; what is no better is taken
 * back. */
static void shake(struct gf_trials *b, int kicks)
{
	struct gf_draft *d = b->d;
	size_t n = d->nsends;
	struct gf_send *best = gf_xcalloc(b->w->ntensors, sizeof(*best));
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
		gf_trials_follow(b, b->from);
		memset(b->settled, true, b->w->ntensors);
	}
	free(best);
}

void gf_search_polish(const struct gf_workbench *w, double budget, int kicks,
		      struct gf_draft *d)
{
	struct gf_trials b;

	gf_trials_init(&b, w, budget, d);
	b.patience = PATIENCE;
	descend(&b, true);
	shake(&b, kicks);
	gf_trials_release(&b);
}

void gf_search_merge(const struct gf_workbench *w, double limit_s,
		     double budget, struct gf_draft *d)
{
	double first_s = d->iteration_s;
	struct gf_trials b;
	size_t i;
	int step;

	gf_trials_init(&b, w, budget, d);
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
	gf_trials_release(&b);
}
