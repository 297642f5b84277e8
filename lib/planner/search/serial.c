/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exact optimum on one lane: a dynamic programme over contiguous partitions.
 *
 * After some messages two numbers matter: the end of the last one, and the time (`lag`) that
 * backward lost, which is kappa = 1 - 1/slowdown of the time spent communicating, and issue_s per
 * message. A message of tensors i..j-1 and cost C takes
 *
 *	end' = max(end, ready[j-1] + lag) + C
 *	lag' = lag + issue_s + kappa*C
 *
 * and the iteration ends at max(end, backward_end + lag). Both are monotone in end and lag, so only
 * Pareto-optimal pairs need to be kept per position (one, where messages and backward do nothing to
 * each other). The cheapest option of each message is best for both, unless options differ in what
 * they do to backward, or it to them: then all choices of the menu are tried. C is greater while
 * backward runs (message_slowdown); that it ends a little later where later messages are issued is
 * left out.
 *
 * With very many tensors, long messages are tried in growing strides: the result is then good, but
 * not proven.
 *
 * Pruning: the rest of the tensors costs at least the menu's floor for all of them at once (which
 * is C if C is concave). The rest starts after `end` at the earliest and, for every tensor i of it,
 * after ready[i] + lag. Once a message and all longer ones are too dear, no longer one is tried.
 */
#include <math.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/heap.h"
#include "planner/search/search.h"

/* Tensors, where messages and backward do something to each other, and not. */
#define EXACT_MUTUAL 1500
#define EXACT_ALONE  6000
#define FRONT_MOST   6 /* pairs kept per position beyond that */
#define STRIDE       32

struct pair {
	double end_s, lag_s;
	size_t option;
	size_t from, from_pair; /* position and index before this message */
	size_t nmessages;
};

/* Pairs at one position, by rising end_s and falling lag_s. */
struct front {
	struct pair *pairs;
	size_t npairs, capacity;
};

struct serial {
	const struct gf_workbench *w;
	double kappa;         /* the least of any option */
	bool differ;          /* options, in what they do to backward */
	size_t stride;        /* 0: every cut is tried */
	double below_s;       /* end of communication or backward to beat */
	double *rest_s;       /* what tensors i.. cost at the least */
	double *latest_s;     /* max over k >= i of ready[k] + rest[k] */
	struct front *fronts; /* ntensors + 1 */
};

/* No completion of pair p at position j ends before this. */
static double floor_s(const struct serial *s, size_t j, const struct pair *p)
{
	double bound = fmax(p->end_s, s->w->backward_end_s + p->lag_s + s->kappa * s->rest_s[j]);

	if (j < s->w->ntensors)
		bound = fmax(bound, fmax(p->end_s + s->rest_s[j], s->latest_s[j] + p->lag_s));
	return bound;
}

static bool before(const struct pair *a, const struct pair *b)
{
	if (a->end_s != b->end_s)
		return a->end_s < b->end_s;
	return a->lag_s != b->lag_s ? a->lag_s < b->lag_s : a->nmessages < b->nmessages;
}

/* Keeps the front sorted and free of dominated pairs; equal pairs: fewer messages, then the earlier
 * found. */
static void insert(struct front *f, const struct pair *p)
{
	size_t at = f->npairs, last, i;

	while (at > 0 && before(p, &f->pairs[at - 1]))
		at--;
	if (at > 0 && f->pairs[at - 1].lag_s <= p->lag_s)
		return;
	for (last = at; last < f->npairs && f->pairs[last].lag_s >= p->lag_s;)
		last++;
	if (last > at) {
		f->pairs[at] = *p;
		for (i = last; i < f->npairs; i++)
			f->pairs[at + 1 + i - last] = f->pairs[i];
		f->npairs -= last - at - 1;
		return;
	}
	gf_array_push(&f->pairs, &f->npairs, &f->capacity);
	for (i = f->npairs - 1; i > at; i--)
		f->pairs[i] = f->pairs[i - 1];
	f->pairs[at] = *p;
}

/* The message of tensors i..j-1 by that option, after every pair. */
static void send(struct serial *s, size_t i, size_t j, size_t option)
{
	const struct gf_workbench *w = s->w;
	const struct front *from = &s->fronts[i];
	struct front *to = &s->fronts[j];
	const struct gf_workbench_next message = {option, gf_workbench_bytes(w, i, j - 1),
						  w->ready_s[j - 1]};

	for (size_t k = 0; k < from->npairs; k++) {
		const struct pair *p = &from->pairs[k];
		struct gf_workbench_at at = gf_workbench_after(
			w, &message, (struct gf_workbench_at){p->end_s, p->lag_s});
		struct pair next = {
			.end_s = at.end_s,
			.lag_s = at.lag_s,
			.option = option,
			.from = i,
			.from_pair = k,
			.nmessages = p->nmessages + 1,
		};

		if (floor_s(s, j, &next) < s->below_s)
			insert(to, &next);
		if (s->stride && to->npairs > FRONT_MOST)
			to->npairs = FRONT_MOST;
	}
}

/* By the options worth trying. */
static void send_all(struct serial *s, size_t i, size_t j)
{
	const struct gf_menu *menu = &s->w->menu;
	double bytes = gf_workbench_bytes(s->w, i, j - 1);

	if (!s->differ) {
		send(s, i, j, gf_menu_pick(menu, bytes));
		return;
	}
	for (size_t k = 0; k < menu->nchoices; k++)
		if (gf_line_holds(&menu->options[menu->choices[k]].line, bytes))
			send(s, i, j, menu->choices[k]);
}

/* All messages that end with tensor j-1. */
static void extend(struct serial *s, size_t j)
{
	const struct gf_workbench *w = s->w;
	size_t step = 1, i;

	for (i = j - 1;; i -= step) {
		double cost = gf_menu_least_s(&w->menu, gf_workbench_bytes(w, i, j - 1));

		if (w->run_last[i] < j - 1)
			return;
		/* messages only grow from here on */
		if (w->ready_s[j - 1] + cost + s->rest_s[j] >= s->below_s)
			return;
		send_all(s, i, j);
		if (s->stride)
			step = 1 + (j - 1 - i) / s->stride;
		if (i < step)
			return;
	}
}

/* Do options differ in what they and backward do to each other? */
static bool differ(const struct gf_menu *menu)
{
	for (size_t k = 1; k < menu->nchoices; k++)
		if (menu->options[menu->choices[k]].mutual !=
		    menu->options[menu->choices[0]].mutual)
			return true;
	return false;
}

static void trace(const struct serial *s, struct gf_draft *d)
{
	const struct gf_workbench *w = s->w;
	const struct front *f = &s->fronts[w->ntensors];
	size_t best = 0, i, j = w->ntensors, k, n;
	GF_FREED size_t *cuts = NULL, *options = NULL;

	for (i = 1; i < f->npairs; i++)
		if (floor_s(s, w->ntensors, &f->pairs[i]) <
		    floor_s(s, w->ntensors, &f->pairs[best]))
			best = i;
	n = f->pairs[best].nmessages;
	cuts = gf_xcalloc(n + 1, sizeof(*cuts));
	options = gf_xcalloc(n + 1, sizeof(*options));
	cuts[n] = w->ntensors;
	for (i = n, k = best; i-- > 0;) {
		const struct pair *p = &s->fronts[j].pairs[k];

		options[i] = p->option;
		cuts[i] = j = p->from;
		k = p->from_pair;
	}
	for (i = 0; i < n; i++)
		gf_draft_send(d, w, cuts[i], cuts[i + 1] - 1)->option = options[i];
}

void gf_search_serial(const struct gf_workbench *w, double below_s, struct gf_draft *d)
{
	size_t n = w->ntensors, j;
	struct serial s = {
		.w = w,
		.kappa = 1 - 1 / w->least_slowdown,
		.differ = differ(&w->menu),
		.stride = n > (w->mutual ? EXACT_MUTUAL : EXACT_ALONE) ? STRIDE : 0,
		.below_s = below_s - gf_problem_update_s(w->in),
		.rest_s = gf_xcalloc(n + 1, sizeof(double)),
		.latest_s = gf_xcalloc(n + 1, sizeof(double)),
		.fronts = gf_xcalloc(n + 1, sizeof(struct front)),
	};
	struct pair start = {.end_s = w->in->model->forward_s};

	s.latest_s[n] = -INFINITY;
	for (j = n; j-- > 0;) {
		s.rest_s[j] = gf_menu_floor_s(&w->menu, gf_workbench_bytes(w, j, n - 1));
		s.latest_s[j] = fmax(s.latest_s[j + 1], w->ready_s[j] + s.rest_s[j]);
	}
	insert(&s.fronts[0], &start);
	for (j = 1; j <= n; j++)
		extend(&s, j);
	if (s.fronts[n].npairs > 0)
		trace(&s, d);
	for (j = 0; j <= n; j++)
		free(s.fronts[j].pairs);
	free(s.fronts);
	free(s.latest_s);
	free(s.rest_s);
}
