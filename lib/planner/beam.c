/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for several lanes. A node is the state of the step model when the
 * last message of tensors 0..i-1 starts; from it every next message is tried,
 * normal and simultaneous, by every choice of the menu. Nodes at one
 * position are compared by when the last message started, when the flights
 * would end if nothing more came (latest first) and the time lost to overlap:
 * one that is no better anywhere is dropped, and of the rest the `width` that
 * end first are kept. That is a heuristic: a later end now can fit the next
 * message better. exhaust.c closes the gap on small models and polish.c most
 * of it on others.
 *
 * Small models keep many nodes and try every cut. Large ones are searched twice
 * with few: over cuts in growing strides, then over the cuts around those of
 * the first draft.
 */
#include <math.h>
#include <stdint.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "planner/search.h"
#include "sim/flight.h"

/* Starts tried per search, spent on width and on cuts. */
#define BUDGET      2500000.0
#define WIDTH_MOST  128
#define WIDTH_LARGE 4
#define STRIDE      8
#define REACH       8

struct node {
	double now_s, lag_s;
	double score_s; /* the smaller, the sooner kept */
	size_t from;    /* index of the node before; SIZE_MAX: none */
	size_t first, last;
	enum gf_mode mode;
	size_t option;
	int nflights;
};

struct beam {
	const struct gf_work *w;
	int lanes;
	size_t width;
	double share; /* seconds per second alone at best sharing */
	double below_s;
	double *latest_s;   /* per position: the rest alone, at its best */
	double *rest_s;     /* seconds to drain the rest at its best */
	struct node *nodes; /* (ntensors + 1) * width */
	struct gf_sim_flight *flights;         /* nodes * lanes */
	double *ends_s;                        /* nodes * lanes, latest first */
	size_t *counts;                        /* per position */
	struct gf_sim_flight *scratch, *drain; /* lanes */
	double *ends_scratch, *ends_of;
};

/* The cuts that are tried. */
struct effort {
	size_t width;
	size_t stride; /* cuts farther away ever more rarely; 0: every one */
	size_t most;   /* next cuts tried per position; 0: no limit */
	const unsigned char *allowed; /* cut after tensor i? NULL: all */
};

/* Ends of the flights of `s`, latest first; s is used up. */
static void project(struct beam *b, struct gf_sim_state *s, double *ends)
{
	int n = s->nflights, i;

	for (i = 0; i < n; i++)
		s->flights[i].message = (size_t)i;
	s->end_s = b->ends_of;
	gf_sim_finish(s);
	for (i = 0; i < b->lanes; i++) {
		double e = i < n ? b->ends_of[i] : 0;
		int at = i;

		while (at > 0 && ends[at - 1] < e) {
			ends[at] = ends[at - 1];
			at--;
		}
		ends[at] = e;
	}
}

/* a is nowhere worse than c; their ends are beside them. */
static bool dominates(const struct beam *b, const struct node *a,
		      const double *a_ends, const struct node *c,
		      const double *c_ends)
{
	int i;

	if (a->now_s > c->now_s || a->lag_s > c->lag_s)
		return false;
	for (i = 0; i < b->lanes; i++)
		if (a_ends[i] > c_ends[i])
			return false;
	return true;
}

/* Puts a node into position j's list, if it belongs there. */
static void keep(struct beam *b, size_t j, const struct node *node)
{
	size_t base = j * b->width, i, n = b->counts[j], worst = SIZE_MAX;
	size_t lanes = (size_t)b->lanes, k = 0;

	for (i = 0; i < n; i++)
		if (dominates(b, &b->nodes[base + i],
			      &b->ends_s[(base + i) * lanes], node,
			      b->ends_scratch))
			return;
	for (i = 0; i < n; i++) {
		if (dominates(b, node, b->ends_scratch, &b->nodes[base + i],
			      &b->ends_s[(base + i) * lanes]))
			continue;
		if (k != i) {
			b->nodes[base + k] = b->nodes[base + i];
			memcpy(&b->flights[(base + k) * lanes],
			       &b->flights[(base + i) * lanes],
			       lanes * sizeof(*b->flights));
			memcpy(&b->ends_s[(base + k) * lanes],
			       &b->ends_s[(base + i) * lanes],
			       lanes * sizeof(*b->ends_s));
		}
		if (worst == SIZE_MAX ||
		    b->nodes[base + k].score_s > b->nodes[base + worst].score_s)
			worst = k;
		k++;
	}
	if (k == b->width) {
		if (node->score_s >= b->nodes[base + worst].score_s)
			return;
		k = worst;
		b->counts[j] = b->width;
	} else {
		b->counts[j] = k + 1;
	}
	b->nodes[base + k] = *node;
	memcpy(&b->flights[(base + k) * lanes], b->scratch,
	       (size_t)node->nflights * sizeof(*b->flights));
	memcpy(&b->ends_s[(base + k) * lanes], b->ends_scratch,
	       lanes * sizeof(*b->ends_s));
}

/* As a node left it (SIZE_MAX: the beginning), with its flights in scratch. */
static struct gf_sim_state state_behind(struct beam *b, size_t from)
{
	const struct gf_work *w = b->w;
	struct gf_sim_state s = {
		.now_s = w->in->model->forward_s,
		.backward_start_s = w->in->model->forward_s,
		.backward_s = w->in->model->backward_s,
		.slowdown = w->slowdown,
		.lanes = b->lanes,
		.flights = b->scratch,
	};

	if (from != SIZE_MAX) {
		const struct node *n = &b->nodes[from];

		s.now_s = n->now_s;
		s.lag_s = n->lag_s;
		s.nflights = n->nflights;
		memcpy(b->scratch, &b->flights[from * (size_t)b->lanes],
		       (size_t)n->nflights * sizeof(*b->scratch));
	}
	return s;
}

/* Keeps the state after `node`'s last message has started, if it may still lead
 * to a better plan than the best one known. */
static void consider(struct beam *b, struct gf_sim_state *s, size_t from,
		     struct node *node)
{
	size_t j = node->last + 1;
	double left = 0, floor_s;
	int f;

	for (f = 0; f < s->nflights; f++)
		left += b->scratch[f].left_s;
	floor_s = s->now_s + b->share * left + b->rest_s[j];
	if (fmax(floor_s, fmax(b->latest_s[j], b->w->backward_end_s) +
				  s->lag_s) >= b->below_s)
		return;
	node->now_s = s->now_s;
	node->lag_s = s->lag_s;
	node->nflights = s->nflights;
	node->from = from;
	memcpy(b->drain, b->scratch, (size_t)s->nflights * sizeof(*b->drain));
	s->flights = b->drain;
	project(b, s, b->ends_scratch);
	if (b->ends_scratch[0] >= b->below_s)
		return;
	node->score_s =
		b->ends_scratch[0] + s->lag_s + 0.1 * (floor_s - b->rest_s[j]);
	keep(b, j, node);
}

/* One start: tensors i..k from a node. Returns whether another message was in
 * flight when it started. */
static bool try(struct beam *b, size_t i, size_t from, struct node *node)
{
	const struct gf_work *w = b->w;
	const struct gf_option *o = &w->menu.options[node->option];
	double bytes = gf_work_bytes(w, i, node->last);
	struct gf_sim_start start = {
		.mode = node->mode,
		.work_s = w->ready_s[node->last] - w->in->model->forward_s,
		.startup_s = o->startup_s,
		.drain_s = o->per_byte_s * bytes,
		.size_bytes = (size_t)fmin(bytes * o->wire_ratio, 0x1p62),
		.contention = o->contention,
		.mutual = o->mutual,
		.issue_s = w->in->model->issue_s,
	};
	struct gf_sim_state s = state_behind(b, from);
	bool beside;

	gf_sim_start(&s, &start);
	beside = s.nflights > 1;
	if (!beside)
		node->mode = GF_MODE_NORMAL;
	consider(b, &s, from, node);
	return beside;
}

/* Every option worth trying for tensors i..k from one node. */
static void try_options(struct beam *b, size_t i, size_t k, size_t from)
{
	const struct gf_menu *menu = &b->w->menu;
	double bytes = gf_work_bytes(b->w, i, k);
	double least = gf_menu_cost_s(menu, bytes);
	size_t e;

	for (e = 0; e < menu->nchoices; e++) {
		const struct gf_option *o = &menu->options[menu->choices[e]];
		struct node node = {
			.first = i,
			.last = k,
			.mode = GF_MODE_SIMULTANEOUS,
			.option = menu->choices[e],
		};

		if (!gf_option_fits(o, bytes))
			continue;
		/* beside others a startup is hidden, bytes are not; but a far
		 * dearer message never pays */
		if (o->startup_s + o->per_byte_s * bytes > 1.5 * least)
			continue;
		if (!try(b, i, from, &node))
			continue;
		node.mode = GF_MODE_NORMAL;
		try(b, i, from, &node);
	}
}

/* All next messages from position i. */
static void expand(struct beam *b, size_t i, const struct effort *effort)
{
	size_t last = b->w->run_last[i], n = i ? b->counts[i] : 1, k, node;
	size_t tried = 0;

	for (k = i; n > 0 && k <= last;) {
		bool cut = !effort->allowed || effort->allowed[k] || k == last;

		for (node = 0; cut && node < n; node++)
			try_options(b, i, k,
				    i ? i * b->width + node : SIZE_MAX);
		tried += cut;
		if (effort->most && tried == effort->most)
			return;
		k += effort->stride ? 1 + (k - i) / effort->stride : 1;
	}
}

static void trace(const struct beam *b, struct gf_draft *d)
{
	size_t end = b->w->ntensors, base = end * b->width, best = 0, i, at;
	double best_s = INFINITY;
	size_t n = 0;

	for (i = 0; i < b->counts[end]; i++) {
		double s =
			fmax(b->ends_s[(base + i) * (size_t)b->lanes],
			     b->w->backward_end_s + b->nodes[base + i].lag_s);

		if (s < best_s) {
			best_s = s;
			best = base + i;
		}
	}
	if (isinf(best_s))
		return;
	for (at = best; at != SIZE_MAX; at = b->nodes[at].from)
		n++;
	d->sends = gf_xcalloc(n, sizeof(*d->sends));
	d->nsends = d->capacity = n;
	for (at = best; at != SIZE_MAX; at = b->nodes[at].from) {
		const struct node *node = &b->nodes[at];

		d->sends[--n] = (struct gf_send){
			.first = node->first,
			.last = node->last,
			.mode = node->mode,
			.option = node->option,
		};
	}
}

static void search(const struct gf_work *w, const struct effort *effort,
		   double below_s, struct gf_draft *d)
{
	size_t n = w->ntensors, lanes = (size_t)d->lanes, i;
	size_t nodes = (n + 1) * effort->width;
	struct gf_floor f = gf_work_floor(w, d->lanes);
	struct beam b = {
		.w = w,
		.lanes = d->lanes,
		.width = effort->width,
		.share = f.share,
		.below_s = below_s - w->in->model->update_s,
		.latest_s = gf_xcalloc(n + 1, sizeof(double)),
		.rest_s = gf_xcalloc(n + 1, sizeof(double)),
		.nodes = gf_xcalloc(nodes, sizeof(*b.nodes)),
		.flights = gf_xcalloc(nodes * lanes, sizeof(*b.flights)),
		.ends_s = gf_xcalloc(nodes * lanes, sizeof(double)),
		.counts = gf_xcalloc(n + 1, sizeof(size_t)),
		.scratch = gf_xcalloc(lanes, sizeof(*b.scratch)),
		.drain = gf_xcalloc(lanes, sizeof(*b.drain)),
		.ends_scratch = gf_xcalloc(lanes, sizeof(double)),
		.ends_of = gf_xcalloc(lanes, sizeof(double)),
	};

	for (i = n; i-- > 0;) {
		b.rest_s[i] = f.drain_s_per_byte * gf_work_bytes(w, i, n - 1);
		b.latest_s[i] = fmax(b.latest_s[i + 1],
				     w->ready_s[i] + f.startup_s + b.rest_s[i]);
	}
	for (i = 0; i < n; i++)
		expand(&b, i, effort);
	trace(&b, d);
	free(b.latest_s);
	free(b.rest_s);
	free(b.nodes);
	free(b.flights);
	free(b.ends_s);
	free(b.counts);
	free(b.scratch);
	free(b.drain);
	free(b.ends_scratch);
	free(b.ends_of);
}

/* Allows the cuts within `reach` tensors of those of a draft. */
static unsigned char *around(const struct gf_work *w, const struct gf_draft *d,
			     size_t reach)
{
	unsigned char *allowed = gf_xcalloc(w->ntensors, 1);
	size_t i, k;

	for (i = 0; i < d->nsends; i++) {
		size_t last = d->sends[i].last;
		size_t low = last > reach ? last - reach : 0;

		for (k = low; k <= last + reach && k < w->ntensors; k++)
			allowed[k] = 1;
	}
	return allowed;
}

void gf_search_beam(const struct gf_work *w, double below_s, struct gf_draft *d)
{
	double pairs = (double)w->ntensors * (double)w->ntensors *
		       (double)w->menu.nchoices;
	double width = floor(BUDGET / pairs);
	struct gf_draft first = {.lanes = d->lanes};
	struct effort effort = {0};
	unsigned char *allowed;

	if (width >= WIDTH_LARGE) {
		effort.width = (size_t)fmin(width, WIDTH_MOST);
		search(w, &effort, below_s, d);
		return;
	}
	effort.width = WIDTH_LARGE;
	effort.stride = STRIDE;
	search(w, &effort, below_s, &first);
	if (first.nsends == 0)
		return;
	allowed = around(w, &first, REACH);
	effort.stride = 0;
	effort.most = 6 * REACH;
	effort.allowed = allowed;
	search(w, &effort, INFINITY, d);
	free(allowed);
	gf_draft_release(&first);
}
