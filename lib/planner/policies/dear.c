/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoupled all-reduce (DeAR): a message's reduce-scatter runs in backward, its all-gather in the
 * next forward, before the tensor's layer runs again. About half of every startup and byte moves
 * out of backward's tail; forward pays where an all-gather is late.
 *
 * Messages are cut by the lazy rule; the threshold that the step model likes best is searched in
 * octaves and then between them. If none was asked for, all cuts are searched, too. After some
 * messages three numbers matter: the end of the last reduce-scatter, the time (`lag`) that backward
 * lost to messages, and the delay of forward by the all-gathers so far. These run in reverse order,
 * so a message delays all before it. A message whose halves cost S and G, that is ready at r and
 * needed at d takes
 *
 *	end' = max(end, r + lag) + S,	delay' = max(delay, -d) + G
 *
 * with lag' and what S takes beside backward as in serial.c. The iteration is max(delay, 0) +
 * max(end, backward_end + lag). All numbers are monotone, so only Pareto-optimal ones are kept per
 * position. Where S and G differ, the way that is the cheapest for both together need not be the
 * best, and each choice is tried. That is exact where messages and compute do nothing to each
 *other. Where they do, there may be too many parts of plans: those are kept that would end the
 *earliest, and what all-gathers and forward do to each other counts only between whole plans.
 */
#include <math.h>
#include <stdint.h>

#include "base/array.h"
#include "base/heap.h"
#include "planner/policies/policy.h"
#include "planner/workbench.h"

#define STEPS_PER_OCTAVE 4
#define EXACT_TENSORS    1500 /* beyond: thresholds only */
/* Parts of plans that are kept, where messages and backward do something to each other: of models
 * with so few tensors, and of others. */
#define FEW_TENSORS 150
#define FRONT_FEW   64
#define FRONT_MANY  8

struct part {
	struct gf_workbench_at at;
	double delay_s;
	size_t option;
	size_t from, from_part; /* position and index before this message */
};

/* Parts of plans at one position, none of which is as good as another. */
struct front {
	struct part *parts;
	size_t nparts, capacity;
};

struct search {
	const struct gf_workbench *w;
	struct gf_menu scatters, gathers;
	bool unlike, picks;   /* picks: the cheapest option is the best one */
	double below_s;       /* to beat */
	double *scatter_s;    /* what tensors i.. cost at the least */
	double *gather_s;     /* likewise */
	struct front *fronts; /* ntensors + 1 */
	size_t front_most;
};

/* No completion of the part, of the tensors before j, takes less. */
static double floor_s(const struct search *s, size_t j, const struct part *p)
{
	return fmax(p->delay_s + s->gather_s[j], 0) +
	       fmax(p->at.end_s + s->scatter_s[j], s->w->backward_end_s + p->at.lag_s) +
	       gf_problem_update_s(s->w->in);
}

static bool as_good(const struct part *a, const struct part *b)
{
	return a->at.end_s <= b->at.end_s && a->at.lag_s <= b->at.lag_s && a->delay_s <= b->delay_s;
}

static void drop_last(const struct search *s, size_t j)
{
	struct front *f = &s->fronts[j];
	size_t last = 0, i;

	for (i = 1; i < f->nparts; i++)
		if (floor_s(s, j, &f->parts[i]) > floor_s(s, j, &f->parts[last]))
			last = i;
	f->parts[last] = f->parts[--f->nparts];
}

static void insert(struct search *s, size_t j, const struct part *p)
{
	struct front *f = &s->fronts[j];
	size_t i, n = 0;

	if (floor_s(s, j, p) >= s->below_s)
		return;
	for (i = 0; i < f->nparts; i++)
		if (as_good(&f->parts[i], p))
			return;
	for (i = 0; i < f->nparts; i++)
		if (!as_good(p, &f->parts[i]))
			f->parts[n++] = f->parts[i];
	f->nparts = n;
	*(struct part *)gf_array_push(&f->parts, &f->nparts, &f->capacity) = *p;
	if (f->nparts > s->front_most)
		drop_last(s, j);
}

/* The message of tensors i..j-1 by that option, after every part of a plan. */
static void send(struct search *s, size_t i, size_t j, size_t option, double need_s)
{
	const struct gf_option *o = &s->w->menu.options[option];
	const struct gf_workbench_next half = {option, gf_workbench_bytes(s->w, i, j - 1),
					       s->w->ready_s[j - 1]};
	double gather_s = gf_line_s(&o->gather, half.bytes);

	for (size_t k = 0; k < s->fronts[i].nparts; k++) {
		const struct part *p = &s->fronts[i].parts[k];
		const struct part next = {
			.at = gf_workbench_after(s->w, &half, p->at),
			.delay_s = fmax(p->delay_s, -need_s) + gather_s,
			.option = option,
			.from = i,
			.from_part = k,
		};

		insert(s, j, &next);
	}
}

/* Is its price a guess that no replay has looked at? What is the best of a half, or of both, is
 * none. */
static bool is_guess(const struct search *s, const struct gf_option *o)
{
	return s->unlike && !o->final && o->origin == GF_PRICE_DERIVED &&
	       s->w->in->fabric.nlevels > 1;
}

/* By every choice for that size. */
static void send_each(struct search *s, size_t i, size_t j, double bytes, double need_s)
{
	const struct gf_menu *menu = &s->w->menu;
	const size_t pick = gf_menu_pick(menu, bytes);

	for (size_t k = 0; k < menu->nchoices; k++) {
		const struct gf_option *o = &menu->options[menu->choices[k]];

		if (gf_line_holds(&o->line, bytes) && (menu->choices[k] == pick || !is_guess(s, o)))
			send(s, i, j, menu->choices[k], need_s);
	}
}

/* All messages that end with tensor j-1. Where options and backward do something to each other, or
 * halves are not alike, the cheapest need not be the best. */
static void extend(struct search *s, size_t j)
{
	const struct gf_workbench *w = s->w;
	const struct gf_menu *menu = &w->menu;
	double need_s = INFINITY;

	for (size_t i = j; i-- > 0 && w->run_last[i] >= j - 1;) {
		double bytes = gf_workbench_bytes(w, i, j - 1);

		/* messages only grow from here on */
		if (w->ready_s[j - 1] + gf_menu_least_s(&s->scatters, bytes) + s->scatter_s[j] +
			    gf_problem_update_s(w->in) >=
		    s->below_s)
			return;
		need_s = fmin(need_s, gf_sim_need_of_s(w->in->model, i));
		if (s->picks)
			send(s, i, j, gf_menu_pick(menu, bytes), need_s);
		else
			send_each(s, i, j, bytes, need_s);
	}
}

/* The messages that end in that part, and what the step model says of them. */
static double trace(const struct search *s, size_t part, struct gf_draft *d)
{
	size_t j = s->w->ntensors;

	d->nsends = 0;
	while (j > 0) {
		const struct part *p = &s->fronts[j].parts[part];
		struct gf_send *sent = gf_draft_send(d, s->w, p->from, j - 1);

		sent->half = GF_HALF_SPLIT;
		sent->option = p->option;
		j = p->from;
		part = p->from_part;
	}
	gf_draft_reverse(d);
	gf_workbench_predict(s->w, d);
	return d->iteration_s;
}

/* The best of the whole plans: parts leave out that forward is slowed. */
static void trace_best(const struct search *s, struct gf_draft *d)
{
	const struct front *f = &s->fronts[s->w->ntensors];
	double best_s = INFINITY, takes_s;
	size_t best = 0, i;

	for (i = 0; i < f->nparts; i++) {
		takes_s = trace(s, i, d);
		if (takes_s < best_s) {
			best_s = takes_s;
			best = i;
		}
	}
	if (f->nparts)
		trace(s, best, d);
}

/* Appends the best messages, if they are better than below_s. */
static void search(const struct gf_workbench *w, double below_s, struct gf_draft *d)
{
	const struct part nothing = {.at.end_s = w->in->model->forward_s, .delay_s = -INFINITY};
	size_t n = w->ntensors, few = n <= FEW_TENSORS ? FRONT_FEW : FRONT_MANY;
	struct search s = {
		.w = w,
		.unlike = gf_menu_unlike(&w->menu),
		.below_s = below_s,
		.scatter_s = gf_xcalloc(n + 1, sizeof(double)),
		.gather_s = gf_xcalloc(n + 1, sizeof(double)),
		.fronts = gf_xcalloc(n + 1, sizeof(struct front)),
		.front_most = w->mutual ? few : SIZE_MAX,
	};

	s.picks = !w->mutual && !s.unlike;
	gf_menu_half(&w->menu, GF_COLL_REDUCE_SCATTER, &s.scatters);
	gf_menu_half(&w->menu, GF_COLL_ALL_GATHER, &s.gathers);
	for (size_t j = 0; j < n; j++) {
		double bytes = gf_workbench_bytes(w, j, n - 1);

		s.scatter_s[j] = gf_menu_floor_s(&s.scatters, bytes);
		s.gather_s[j] = gf_menu_floor_s(&s.gathers, bytes);
	}
	insert(&s, 0, &nothing);
	for (size_t j = 1; j <= n; j++)
		extend(&s, j);
	trace_best(&s, d);
	for (size_t j = 0; j <= n; j++)
		free(s.fronts[j].parts);
	free(s.fronts);
	free(s.scatter_s);
	free(s.gather_s);
	gf_menu_part_release(&s.scatters);
	gf_menu_part_release(&s.gathers);
}

static void cut(const struct gf_workbench *w, struct gf_draft *d, double theta)
{
	d->nsends = 0;
	gf_draft_cut(d, w, theta);
	for (size_t i = 0; i < d->nsends; i++)
		d->sends[i].half = GF_HALF_SPLIT;
}

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	double total = gf_workbench_bytes(w, 0, w->ntensors - 1);
	double theta, best_theta = 0, best_s = INFINITY;

	if (w->in->threshold_bytes || w->in->threshold_zero) {
		best_theta = (double)w->in->threshold_bytes;
	} else {
		/* from one message down, so that a tie has fewer of them */
		for (theta = total; theta >= 1; theta /= pow(2, 1.0 / STEPS_PER_OCTAVE)) {
			cut(w, d, theta);
			gf_workbench_predict(w, d);
			if (d->iteration_s < best_s) {
				best_s = d->iteration_s;
				best_theta = floor(theta);
			}
		}
	}
	if (isfinite(best_s) && w->ntensors <= EXACT_TENSORS) {
		d->nsends = 0;
		search(w, best_s, d);
		if (d->nsends > 0)
			gf_workbench_predict(w, d);
		if (d->nsends > 0 && d->iteration_s < best_s)
			return;
	}
	cut(w, d, best_theta);
	d->threshold_bytes = (size_t)fmin(best_theta, 0x1p62);
}

/* MANUAL
 * reduce-scatter in backward, all-gather in the next forward.
 * Up to 1500 tensors no cut is better, unless messages and backward slow each other or
 * .Fl -threshold
 * sets the cuts.
 * .Xr gf-train 1
 * runs it on processors, and
 * .Fl -emit
 * and PyTorch refuse it, so
 * .Cm auto
 * leaves it out; a line says if it is predicted at least 3 % faster. */
const struct gf_policy gf_policy_dear = {
	.name = "dear",
	.description = "reduce-scatter in backward, all-gather in forward",
	.place = 100,
	.source = "DeAR (Zhang et al. 2023)",
	.lanes = 1,
	.automatic = false,
	.halves = true,
	.thresholds = true,
	.draft = draft,
};
