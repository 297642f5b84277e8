/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fewest messages on one lane with which the iteration is still within a limit. They are cut
 * from the end: the last one takes as many tensors as it can and still ends by the limit though it
 * waits for all of them; the one before it then has to end where the last one has to start, and so
 * on.
 *
 * Exact for one line of costs where messages and backward do nothing to each other. Proof: let some
 * plan have a shorter last message, of tensors j'.., and let j.. be the longest, j < j'. Cut the
 * tensors from j on out of the messages before it: these end earlier by at least b times the bytes
 * cut out, and that is just what the longer message needs. No message was added.
 *
 * Several lines, and what messages cost backward, make it a heuristic. So every result is predicted
 * before it counts.
 */
#include <math.h>

#include "base/heap.h"
#include "planner/search/search.h"

/* Ends that are tried: the limit, and earlier ones by shares of what backward lost to messages in
 * the fastest plan; then halvings of the time from it. */
#define EARLIER  8
#define HALVINGS 20

/* The first tensor of the longest message up to `last` that takes no longer than that; last + 1:
 * there is none. */
static size_t first_of(const struct gf_workbench *w, size_t last, double most_s)
{
	size_t low = 0, high = last + 1;

	while (low < high) {
		size_t first = low + (high - low) / 2;

		if (w->run_last[first] >= last &&
		    gf_menu_cost_s(&w->menu, gf_workbench_bytes(w, first, last)) <= most_s)
			high = first;
		else
			low = first + 1;
	}
	return low;
}

/* Messages the last of which ends at end_s as long as backward loses nothing; predicted; without
 * any if there is no time for them. */
static struct gf_draft cut(const struct gf_workbench *w, double end_s)
{
	struct gf_draft d = {.lanes = 1};
	size_t after = w->ntensors;

	while (after > 0) {
		size_t last = after - 1;
		size_t first = first_of(w, last, end_s - w->ready_s[last]);

		if (first > last) {
			gf_draft_release(&d);
			return (struct gf_draft){.iteration_s = INFINITY};
		}
		gf_draft_send(&d, w, first, last);
		end_s -= gf_menu_cost_s(&w->menu, gf_workbench_bytes(w, first, last));
		after = first;
	}
	gf_draft_reverse(&d);
	gf_workbench_predict(w, &d);
	return d;
}

/* Keeps the better one of two drafts within the limit. */
static void keep(struct gf_draft *best, struct gf_draft *d, double limit_s)
{
	GF_RELEASED(gf_draft_release) struct gf_draft worse = *d;

	if (d->nsends && d->iteration_s <= limit_s &&
	    (!best->nsends || d->nsends < best->nsends ||
	     (d->nsends == best->nsends && d->iteration_s < best->iteration_s))) {
		worse = *best;
		*best = *d;
	}
}

void gf_search_fewest(const struct gf_workbench *w, const struct gf_draft *fastest, double limit_s,
		      struct gf_draft *d)
{
	double end_s = limit_s - gf_problem_update_s(w->in), low_s, high_s, lag_s;
	struct gf_draft best = {0}, timed = *fastest, next;

	lag_s = fmax(gf_workbench_predict(w, &timed) - w->backward_end_s, 0);
	for (int i = 0; i <= (lag_s > 0 ? EARLIER : 0); i++) {
		next = cut(w, end_s - lag_s * i / EARLIER);
		keep(&best, &next, limit_s);
	}
	/* as few, and as early as that goes */
	low_s = fastest->iteration_s - gf_problem_update_s(w->in) - lag_s;
	high_s = end_s;
	for (int i = 0; i < HALVINGS && best.nsends; i++) {
		double middle_s = low_s + (high_s - low_s) / 2;
		size_t fewest = best.nsends;
		bool few;

		next = cut(w, middle_s);
		few = next.nsends && next.nsends <= fewest;
		keep(&best, &next, limit_s);
		*(few ? &high_s : &low_s) = middle_s;
	}
	*d = best;
}
