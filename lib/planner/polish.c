/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local search on a finished draft. A round moves cuts by 1, 2, 4, ... tensors,
 * merges and splits messages, flips modes and chooses other options; a change
 * is kept if the step model predicts a shorter iteration. The search ends when
 * a round changes nothing, or when its budget (messages simulated) is spent.
 */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "planner/search.h"

struct bench {
	const struct gf_work *w;
	struct gf_draft *best, trial;
	double left;
};

static void copy(struct gf_draft *to, const struct gf_draft *from)
{
	to->nsends = from->nsends;
	to->lanes = from->lanes;
	memcpy(to->sends, from->sends, from->nsends * sizeof(*to->sends));
}

/* Keeps the trial if it is better; leaves trial equal to best. */
static bool judge(struct bench *b)
{
	struct gf_sim_result result = {0};
	bool won;

	gf_work_predict(b->w, &b->trial, &result);
	b->left -= (double)b->trial.nsends;
	won = b->trial.iteration_s < b->best->iteration_s;
	if (won) {
		copy(b->best, &b->trial);
		b->best->iteration_s = b->trial.iteration_s;
	} else {
		copy(&b->trial, b->best);
	}
	return won;
}

static void price(struct bench *b, size_t i)
{
	struct gf_send *s = &b->trial.sends[i];

	s->option = gf_menu_pick(&b->w->menu,
				 gf_work_bytes(b->w, s->first, s->last));
}

/* Moves the cut after message i to tensor `last`. */
static bool move(struct bench *b, size_t i, size_t last)
{
	struct gf_send *s = &b->trial.sends[i];

	if (last < s->first || last >= s[1].last ||
	    last > b->w->run_last[s->first] ||
	    b->w->run_last[last + 1] < s[1].last)
		return false;
	s->last = last;
	s[1].first = last + 1;
	price(b, i);
	price(b, i + 1);
	return judge(b);
}

static bool move_some(struct bench *b, size_t i)
{
	bool won = false;
	size_t step;

	for (step = 1; step < b->w->ntensors; step *= 2) {
		size_t at = b->trial.sends[i].last;

		if (at >= step)
			won |= move(b, i, at - step);
		at = b->trial.sends[i].last;
		won |= move(b, i, at + step);
	}
	return won;
}

static bool merge(struct bench *b, size_t i)
{
	struct gf_send *s = b->trial.sends;
	size_t k;

	if (b->w->run_last[s[i].first] < s[i + 1].last)
		return false;
	s[i].last = s[i + 1].last;
	for (k = i + 1; k + 1 < b->trial.nsends; k++)
		s[k] = s[k + 1];
	b->trial.nsends--;
	price(b, i);
	return judge(b);
}

static bool split(struct bench *b, size_t i, enum gf_mode mode)
{
	struct gf_send *s = b->trial.sends;
	double middle;
	size_t k, at;

	if (s[i].first == s[i].last)
		return false;
	middle = gf_work_bytes(b->w, s[i].first, s[i].last) / 2;
	at = gf_work_lazy_cut(b->w, s[i].first, middle);
	if (at >= s[i].last)
		at = s[i].last - 1;
	for (k = b->trial.nsends; k > i + 1; k--)
		s[k] = s[k - 1];
	b->trial.nsends++;
	s[i + 1] = s[i];
	s[i + 1].mode = mode;
	s[i + 1].first = at + 1;
	s[i].last = at;
	price(b, i);
	price(b, i + 1);
	return judge(b);
}

static bool flip(struct bench *b, size_t i)
{
	struct gf_send *s = &b->trial.sends[i];

	s->mode = s->mode == GF_MODE_NORMAL ? GF_MODE_SIMULTANEOUS
					    : GF_MODE_NORMAL;
	return judge(b);
}

static bool choose(struct bench *b, size_t i)
{
	const struct gf_menu *menu = &b->w->menu;
	const struct gf_send *s = &b->trial.sends[i];
	double bytes = gf_work_bytes(b->w, s->first, s->last);
	bool won = false;
	size_t k;

	for (k = 0; k < menu->nchoices; k++) {
		size_t option = menu->choices[k];

		if (option == s->option ||
		    !gf_option_fits(&menu->options[option], bytes))
			continue;
		b->trial.sends[i].option = menu->choices[k];
		won |= judge(b);
	}
	return won;
}

void gf_search_polish(const struct gf_work *w, double budget,
		      struct gf_draft *d)
{
	struct bench b = {.w = w, .best = d, .left = budget};
	bool won = true;
	size_t i;

	d->sends = gf_xreallocarray(d->sends, w->ntensors, sizeof(*d->sends));
	d->capacity = w->ntensors;
	b.trial.sends = gf_xcalloc(w->ntensors, sizeof(*d->sends));
	b.trial.capacity = w->ntensors;
	copy(&b.trial, d);
	while (won) {
		won = false;
		for (i = 0; i < d->nsends && b.left > 0; i++) {
			if (i > 0 && d->lanes > 1)
				won |= flip(&b, i);
			won |= choose(&b, i);
			if (i + 1 < d->nsends)
				won |= move_some(&b, i);
			if (i + 1 < d->nsends)
				won |= merge(&b, i);
			won |= split(&b, i, GF_MODE_NORMAL);
			if (d->lanes > 1)
				won |= split(&b, i, GF_MODE_SIMULTANEOUS);
		}
	}
	gf_draft_release(&b.trial);
}
