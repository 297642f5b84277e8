/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for several lanes. A node is the state of the step model when the last message of
 * tensors 0..i-1 starts; from it every next message is tried, normal and simultaneous, by every
 * choice of the menu. A node is dropped if the bound on the rest is not below the best draft known.
 * Of the others, a position keeps those which are first in one of two orders:
 *
 *  - by when all would end if nothing more came, and
 *  - by what they cost so far, with what is in flight at the prices of the bound: lambda for the
 *    network's time, 1 - lambda for the lanes' (bound.c).
 *
 * No node dominates another for certain: where contention depends on size, less in flight may fit
 * the next message worse.
 *
 * Small models try every cut. On large ones a message grows in steps that make it dearer by a
 * noticeable share; local_search.c moves the cuts.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/heap.h"
#include "planner/search/search.h"

#define MIXES      3
#define WIDTH_MOST 64
#define NEAR       1.3 /* times the cheapest */

enum order { ENDS, PRICE, ORDERS };

struct node {
	double now_s, lag_s;
	double score_s[ORDERS]; /* the smaller, the sooner kept */
	size_t from;            /* index of the node before; SIZE_MAX: none */
	struct gf_send send;
	int nflights;
};

/* The nodes of one position in one order. */
struct places {
	size_t n;
	double worst_s; /* to be below: INFINITY until all places are taken, then the greatest
			 * score */
};

/* A choice for a message: what it takes alone, and at the bound's prices. */
struct trial {
	size_t option;
	double alone_s, priced_s;
};

struct beam {
	const struct gf_workbench *w;
	struct gf_rest rest;
	size_t lanes, width; /* width: per order */
	double growth;       /* of a message's cost from cut to cut */
	double below_s;
	struct places *places;                   /* (ntensors + 1) * ORDERS */
	struct node *nodes;                      /* width for each of the places */
	struct gf_sim_flight *flights;           /* lanes for each node */
	struct gf_sim_flight *trial, *projected; /* lanes */
	struct trial *trials;                    /* choices of the menu */
	size_t ntrials;
};

static struct node *nodes_of(struct beam *b, size_t position, enum order o)
{
	return &b->nodes[(position * ORDERS + o) * b->width];
}

static struct gf_sim_flight *flights_of(struct beam *b, const struct node *n)
{
	return &b->flights[(size_t)(n - b->nodes) * b->lanes];
}

static size_t worst_of(const struct node *nodes, size_t n, enum order o)
{
	size_t worst = 0, i;

	for (i = 1; i < n; i++)
		if (nodes[i].score_s[o] > nodes[worst].score_s[o])
			worst = i;
	return worst;
}

static bool same(const struct node *a, const struct node *c)
{
	return a->now_s == c->now_s && a->score_s[ENDS] == c->score_s[ENDS] &&
	       a->score_s[PRICE] == c->score_s[PRICE] && a->nflights == c->nflights;
}

/* Puts a node, whose flights are b->trial, into a place of that order. */
static bool keep(struct beam *b, size_t position, enum order o, const struct node *node)
{
	struct places *p = &b->places[position * ORDERS + o];
	struct node *nodes = nodes_of(b, position, o), *to;

	if (node->score_s[o] >= p->worst_s)
		return false;
	for (size_t i = 0; i < p->n; i++)
		if (same(&nodes[i], node))
			return true;
	to = &nodes[p->n < b->width ? p->n++ : worst_of(nodes, p->n, o)];
	*to = *node;
	memcpy(flights_of(b, to), b->trial, (size_t)node->nflights * sizeof(*b->trial));
	if (p->n == b->width)
		p->worst_s = nodes[worst_of(nodes, p->n, o)].score_s[o];
	return true;
}

/* As a node left it (NULL: the beginning), with its flights in b->trial. */
static struct gf_sim_state state_after(struct beam *b, const struct node *n)
{
	struct gf_sim_state s = gf_workbench_begin(b->w, (int)b->lanes, b->trial);

	if (n) {
		s.now_s = n->now_s;
		s.lag_s = n->lag_s;
		s.nflights = n->nflights;
		memcpy(b->trial, flights_of(b, n), (size_t)n->nflights * sizeof(*b->trial));
	}
	return s;
}

/* One message from a node. Were others in flight when it started? */
static bool try(struct beam *b, const struct node *from, struct gf_send *send)
{
	struct gf_sim_state s = state_after(b, from), end;
	bool beside = gf_rest_send(&b->rest, &s, send);
	double priced_s;
	double bound_s = gf_rest_bound_s(&b->rest, &s, send->last + 1, &priced_s);
	struct node node = {
		.now_s = s.now_s,
		.lag_s = s.lag_s,
		.from = from ? (size_t)(from - b->nodes) : SIZE_MAX,
		.send = *send,
		.nflights = s.nflights,
	};

	if (!beside)
		node.send.mode = GF_MODE_NORMAL;
	if (bound_s >= b->below_s)
		return beside;
	gf_workbench_copy(&end, &s, b->projected);
	node.score_s[ENDS] = gf_workbench_end_s(b->w, &end);
	node.score_s[PRICE] = priced_s + s.lag_s;
	if (!keep(b, send->last + 1, PRICE, &node))
		keep(b, send->last + 1, ENDS, &node);
	return beside;
}

/* The choices for tensors first..last, into b->trials: on large models those that are near the
 * cheapest, alone or at the prices of the bound. */
static void find_trials(struct beam *b, size_t first, size_t last)
{
	const struct gf_menu *menu = &b->w->menu;
	double bytes = gf_workbench_bytes(b->w, first, last);
	double alone_s = INFINITY, priced_s = INFINITY;
	size_t e, n = 0;

	for (e = 0; e < menu->nchoices; e++) {
		size_t option = menu->choices[e];
		const struct gf_option *o = &menu->options[option];
		struct trial *t = &b->trials[n];

		if (!gf_line_holds(&o->line, bytes))
			continue;
		n++;
		t->option = option;
		t->alone_s = gf_line_s(&o->line, bytes);
		t->priced_s = gf_rest_price_s(&b->rest, option, bytes);
		alone_s = fmin(alone_s, t->alone_s);
		priced_s = fmin(priced_s, t->priced_s);
	}
	b->ntrials = 0;
	for (e = 0; e < n; e++)
		if (b->w->ntensors <= GF_SEARCH_ALL_CUTS ||
		    b->trials[e].alone_s <= NEAR * alone_s ||
		    b->trials[e].priced_s <= NEAR * priced_s)
			b->trials[b->ntrials++] = b->trials[e];
}

/* Can a message that starts no sooner than that come into a place? */
static bool has_place(const struct beam *b, size_t position, const struct trial *t, double start_s,
		      double lag_s)
{
	const struct places *p = &b->places[position * ORDERS];

	return start_s + t->priced_s + lag_s < p[PRICE].worst_s ||
	       start_s + t->alone_s + gf_problem_update_s(b->w->in) < p[ENDS].worst_s;
}

/* Tensors first..last by those choices from a node. */
static void try_choices(struct beam *b, const struct node *from, size_t first, size_t last)
{
	double now_s = from ? from->now_s : 0, lag_s = from ? from->lag_s : 0;
	double start_s = fmax(now_s, b->w->ready_s[last] + lag_s);

	for (size_t e = 0; e < b->ntrials; e++) {
		struct gf_send send = {
			.first = first,
			.last = last,
			.mode = GF_MODE_SIMULTANEOUS,
			.release = b->w->in->release,
			.option = b->trials[e].option,
		};

		if (!has_place(b, last + 1, &b->trials[e], start_s, lag_s) || !try(b, from, &send))
			continue;
		send.mode = GF_MODE_NORMAL;
		try(b, from, &send);
	}
}

/* What more tensors in a message add to its end, at least about. */
static double step_s(const struct gf_workbench *w, size_t last, size_t k)
{
	double bytes = gf_workbench_bytes(w, last + 1, k);
	const struct gf_option *o = &w->menu.options[gf_menu_pick(&w->menu, bytes)];

	return o->line.per_byte_s * bytes + w->ready_s[k] - w->ready_s[last];
}

/* The next cut that is worth a try, after the one after tensor `last`; none: ntensors. */
static size_t next_cut(const struct beam *b, size_t first, size_t last)
{
	const struct gf_workbench *w = b->w;
	size_t low = last + 1, high = w->run_last[first];
	double grown_s;

	if (low > high)
		return w->ntensors;
	if (w->ntensors <= GF_SEARCH_ALL_CUTS)
		return low;
	grown_s = b->growth * gf_menu_cost_s(&w->menu, gf_workbench_bytes(w, first, last));
	/* the last cut that makes it dearer by less, or the next cut */
	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (step_s(w, last, middle) < grown_s)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static void expand(struct beam *b, size_t first)
{
	const struct gf_workbench *w = b->w;

	for (size_t last = first; last < w->ntensors; last = next_cut(b, first, last)) {
		double cost_s = gf_menu_least_s(&w->menu, gf_workbench_bytes(w, first, last));

		if (w->ready_s[last] + cost_s >= b->below_s)
			return;
		find_trials(b, first, last);
		if (first == 0)
			try_choices(b, NULL, first, last);
		for (int o = 0; o < ORDERS && first > 0; o++)
			for (size_t i = 0; i < b->places[first * ORDERS + (size_t)o].n; i++)
				try_choices(b, &nodes_of(b, first, o)[i], first, last);
	}
}

static void trace(struct beam *b, struct gf_draft *d)
{
	const struct node *best = NULL, *node;
	double best_s = INFINITY;
	size_t i, n = 0;

	for (int o = 0; o < ORDERS; o++)
		for (i = 0; i < b->places[b->w->ntensors * ORDERS + (size_t)o].n; i++) {
			struct gf_sim_state s;
			double end_s;

			node = &nodes_of(b, b->w->ntensors, o)[i];
			s = state_after(b, node);
			end_s = gf_workbench_end_s(b->w, &s);
			if (end_s < best_s) {
				best_s = end_s;
				best = node;
			}
		}
	if (!best)
		return;
	for (node = best;; node = &b->nodes[node->from], n++)
		if (node->from == SIZE_MAX)
			break;
	n++;
	d->sends = gf_xcalloc(n, sizeof(*d->sends));
	d->nsends = d->capacity = n;
	for (node = best;; node = &b->nodes[node->from]) {
		d->sends[--n] = node->send;
		if (!n)
			break;
	}
}

/* Cuts in all, which tell how wide the beam may be. */
static double count_cuts(const struct beam *b)
{
	double n = 0;

	for (size_t i = 0; i < b->w->ntensors; i++)
		for (size_t k = i; k < b->w->ntensors; k = next_cut(b, i, k)) {
			if (b->w->ready_s[k] +
				    gf_menu_least_s(&b->w->menu, gf_workbench_bytes(b->w, i, k)) >=
			    b->below_s)
				break;
			n++;
		}
	return n;
}

void gf_search_beam(const struct gf_workbench *w, double below_s, double budget, double growth,
		    struct gf_draft *d)
{
	size_t n = w->ntensors, lanes = (size_t)d->lanes, nodes, i;
	struct beam b = {
		.w = w,
		.lanes = lanes,
		.growth = growth,
		.below_s = below_s,
		.places = gf_xcalloc((n + 1) * ORDERS, sizeof(*b.places)),
		.trial = gf_xcalloc(lanes, sizeof(*b.trial)),
		.projected = gf_xcalloc(lanes, sizeof(*b.projected)),
		.trials = gf_xcalloc(w->menu.nchoices, sizeof(*b.trials)),
	};
	double width = budget / (count_cuts(&b) * ORDERS * 2 * (double)w->menu.nchoices);

	b.width = (size_t)fmin(fmax(width, n > GF_SEARCH_LARGE ? 1 : 2), WIDTH_MOST);
	nodes = (n + 1) * ORDERS * b.width;
	b.nodes = gf_xcalloc(nodes, sizeof(*b.nodes));
	b.flights = gf_xcalloc(nodes * lanes, sizeof(*b.flights));
	gf_rest_init(&b.rest, w, d->lanes, MIXES);
	for (i = 0; i < (n + 1) * ORDERS; i++)
		b.places[i].worst_s = INFINITY;
	for (i = 0; i < n; i++)
		expand(&b, i);
	trace(&b, d);
	gf_rest_release(&b.rest);
	free(b.places);
	free(b.nodes);
	free(b.flights);
	free(b.trial);
	free(b.projected);
	free(b.trials);
}
