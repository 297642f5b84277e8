/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoupled all-reduce (DeAR): a message's reduce-scatter runs in backward, its
 * all-gather in the next forward, before the tensor's layer runs again. Half of
 * every startup and byte moves out of backward's tail; forward pays where an
 * all-gather is late.
 *
 * Messages are cut by the lazy rule; the threshold that the step model likes
 * best is searched in octaves and then between them. If none was asked for, all
 * cuts are searched, too. After some messages two numbers matter: the end of
 * the last reduce-scatter, and the delay of forward by the all-gathers so far,
 * which run in reverse order, so that a message delays all before it. A message
 * of cost C that is ready at r and needed at d takes
 *
 *	end' = max(end, r) + C/2,	delay' = max(delay, -d) + C/2
 *
 * and the iteration is max(delay, 0) + max(end, backward_end). Both numbers are
 * monotone, so only Pareto-optimal pairs are kept per position: exact where
 * messages and backward do nothing to each other.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "planner/policies.h"
#include "planner/work.h"

#define STEPS_PER_OCTAVE 4
#define EXACT_TENSORS    1500 /* beyond: thresholds only */

struct pair {
	double end_s, delay_s;
	size_t from, from_pair; /* position and index before this message */
};

/* Pairs at one position, by rising end_s and falling delay_s. */
struct front {
	struct pair *pairs;
	size_t npairs, capacity;
};

static void insert(struct front *f, const struct pair *p)
{
	size_t at = f->npairs, last, i;

	while (at > 0 && f->pairs[at - 1].end_s > p->end_s)
		at--;
	if (at > 0 && f->pairs[at - 1].delay_s <= p->delay_s)
		return;
	for (last = at; last < f->npairs; last++)
		if (f->pairs[last].delay_s < p->delay_s)
			break;
	if (last == at) {
		gf_array_push(&f->pairs, &f->npairs, &f->capacity);
		for (i = f->npairs - 1; i > at; i--)
			f->pairs[i] = f->pairs[i - 1];
	} else {
		for (i = last; i < f->npairs; i++)
			f->pairs[at + 1 + i - last] = f->pairs[i];
		f->npairs -= last - at - 1;
	}
	f->pairs[at] = *p;
}

static double iteration_s(const struct gf_work *w, const struct pair *p)
{
	return fmax(p->delay_s, 0) + fmax(p->end_s, w->backward_end_s) +
	       w->in->model->update_s;
}

/* All messages that end with tensor j-1. */
static void extend(const struct gf_work *w, struct front *fronts, size_t j,
		   double below_s)
{
	double need_s = INFINITY;
	size_t i, k;

	for (i = j; i-- > 0 && w->run_last[i] >= j - 1;) {
		double half_s =
			gf_menu_cost_s(&w->menu, gf_work_bytes(w, i, j - 1)) /
			2;

		need_s = fmin(need_s, gf_sim_need_of_s(w->in->model, i));
		for (k = 0; k < fronts[i].npairs; k++) {
			const struct pair *p = &fronts[i].pairs[k];
			struct pair next = {
				.end_s = fmax(p->end_s, w->ready_s[j - 1]) +
					 half_s,
				.delay_s = fmax(p->delay_s, -need_s) + half_s,
				.from = i,
				.from_pair = k,
			};

			if (iteration_s(w, &next) < below_s)
				insert(&fronts[j], &next);
		}
	}
}

/* Appends the best cuts, if they are better than below_s. */
static void search(const struct gf_work *w, double below_s, struct gf_draft *d)
{
	size_t n = w->ntensors, i, j, best = 0, ncuts = 0;
	struct front *fronts = gf_xcalloc(n + 1, sizeof(*fronts));
	size_t *cuts = gf_xcalloc(n + 1, sizeof(*cuts));
	const struct pair *p;

	insert(&fronts[0], &(struct pair){.end_s = w->in->model->forward_s,
					  .delay_s = -INFINITY});
	for (j = 1; j <= n; j++)
		extend(w, fronts, j, below_s);
	for (i = 1; i < fronts[n].npairs; i++)
		if (iteration_s(w, &fronts[n].pairs[i]) <
		    iteration_s(w, &fronts[n].pairs[best]))
			best = i;
	for (j = fronts[n].npairs ? n : 0; j > 0; j = p->from) {
		p = &fronts[j].pairs[best];
		cuts[ncuts++] = j;
		best = p->from_pair;
	}
	for (i = 0; ncuts-- > 0; i = cuts[ncuts])
		gf_draft_send(d, w, i, cuts[ncuts] - 1)->half = GF_HALF_SPLIT;
	for (j = 0; j <= n; j++)
		free(fronts[j].pairs);
	free(fronts);
	free(cuts);
}

static void cut(const struct gf_work *w, struct gf_draft *d, double theta)
{
	size_t first = 0, last;

	d->nsends = 0;
	for (; first < w->ntensors; first = last + 1) {
		last = gf_work_lazy_cut(w, first, theta);
		gf_draft_send(d, w, first, last)->half = GF_HALF_SPLIT;
	}
}

static void draft(const struct gf_work *w, struct gf_draft *d)
{
	double total = gf_work_bytes(w, 0, w->ntensors - 1);
	double theta, best_theta = 0, best_s = INFINITY;

	if (w->in->threshold_bytes || w->in->threshold_zero) {
		best_theta = (double)w->in->threshold_bytes;
	} else {
		/* from one message down, so that a tie has fewer of them */
		for (theta = total; theta >= 1;
		     theta /= pow(2, 1.0 / STEPS_PER_OCTAVE)) {
			struct gf_sim_result result = {0};

			cut(w, d, theta);
			gf_work_predict(w, d, &result);
			if (result.iteration_s < best_s) {
				best_s = result.iteration_s;
				best_theta = floor(theta);
			}
		}
	}
	if (isfinite(best_s) && w->ntensors <= EXACT_TENSORS) {
		struct gf_sim_result result = {0};

		d->nsends = 0;
		search(w, best_s, d);
		if (d->nsends > 0)
			gf_work_predict(w, d, &result);
		if (d->nsends > 0 && result.iteration_s < best_s)
			return;
	}
	cut(w, d, best_theta);
	d->threshold_bytes = (size_t)fmin(best_theta, 0x1p62);
}

const struct gf_policy gf_policy_dear = {
	.name = "dear",
	.description = "reduce-scatter in backward, all-gather in forward",
	.source = "DeAR (Zhang et al. 2023)",
	.lanes = 1,
	.automatic = false,
	.halves = true,
	.thresholds = true,
	.draft = draft,
};
