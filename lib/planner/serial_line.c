/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exact optimum on one lane where messages and backward do nothing to each
 * other: then one number per position is enough, the earliest end of everything
 *before it,
 *
 *	end[j] = min over i < j of max(end[i], ready[j-1]) + C(B[j] - B[i])
 *
 * with B the bytes before a tensor and C the envelope of the menu's lines
 * a_k + b_k * bytes, each for sizes from l_k up to h_k; C does not decrease.
 * Nor does end[] (dropping the last tensor of a plan ends no later). Hence for
 * each j:
 *
 *  - of the i with end[i] <= ready[j-1] only the last one matters: the network
 *    is idle, and what begins earlier is only longer;
 *  - the others form a window whose two ends only move forward, and so do
 *    those i in it for which l_k <= B[j] - B[i] < h_k; among these
 *    end[i] + C = min over k of (end[i] - b_k*B[i]) + a_k + b_k*B[j]:
 *    a sliding minimum per line, in a deque each.
 *
 * That makes O(tensors * lines), where the general search (serial.c) may look
 * at every pair of tensors.
 */
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "planner/search.h"

/* Indices into end[], by rising key; the front is the minimum. */
struct deque {
	size_t *items, head, tail;
	size_t next; /* not yet pushed: their messages are too small */
	const struct gf_option *line;
};

struct line {
	const struct gf_work *w;
	double *end_s;     /* ntensors + 1 */
	size_t *from;      /* where the last message before position j begins */
	size_t *nmessages; /* and how many there are */
	struct deque *deques;
	size_t ndeques;
};

static double key(const struct line *s, const struct deque *q, size_t i)
{
	return s->end_s[i] - q->line->per_byte_s * s->w->prefix_bytes[i];
}

static void push(const struct line *s, struct deque *q, size_t i)
{
	while (q->tail > q->head &&
	       key(s, q, q->items[q->tail - 1]) > key(s, q, i))
		q->tail--;
	q->items[q->tail++] = i;
}

/* The window of one line for messages that end with tensor j-1 and begin at
 * `low` or later. */
static void slide(const struct line *s, struct deque *q, size_t j, size_t low)
{
	const struct gf_work *w = s->w;

	while (q->next < j &&
	       gf_work_bytes(w, q->next, j - 1) >= q->line->from_bytes)
		push(s, q, q->next++);
	while (q->head < q->tail &&
	       (q->items[q->head] < low ||
		gf_work_bytes(w, q->items[q->head], j - 1) >=
			q->line->below_bytes))
		q->head++;
}

/* A last message of tensors i..j-1: earlier, or as early with fewer. */
static void offer(struct line *s, size_t i, size_t j)
{
	const struct gf_work *w = s->w;
	double end = fmax(s->end_s[i], w->ready_s[j - 1]) +
		     gf_menu_cost_s(&w->menu, gf_work_bytes(w, i, j - 1));

	if (end > s->end_s[j] ||
	    (end == s->end_s[j] && s->nmessages[i] + 1 >= s->nmessages[j]))
		return;
	s->end_s[j] = end;
	s->from[j] = i;
	s->nmessages[j] = s->nmessages[i] + 1;
}

static void fill(struct line *s)
{
	const struct gf_work *w = s->w;
	size_t j, k, idle = 0; /* positions before it end while waiting */
	size_t low = 0;        /* the first that shares j-1's dtype */

	s->end_s[0] = w->in->model->forward_s;
	for (j = 1; j <= w->ntensors; j++) {
		double ready = w->ready_s[j - 1];

		s->end_s[j] = INFINITY;
		while (w->run_last[low] < j - 1)
			low++;
		while (idle < j && s->end_s[idle] <= ready)
			idle++;
		if (idle > low)
			offer(s, idle - 1, j);
		for (k = 0; k < s->ndeques; k++) {
			struct deque *q = &s->deques[k];

			slide(s, q, j, low > idle ? low : idle);
			if (q->head < q->tail)
				offer(s, q->items[q->head], j);
		}
	}
}

static void send_all(const struct line *s, struct gf_draft *d)
{
	size_t n = s->nmessages[s->w->ntensors], j = s->w->ntensors, i;
	size_t *cuts = gf_xcalloc(n + 1, sizeof(*cuts));

	for (i = n; i > 0; i--) {
		cuts[i] = j;
		j = s->from[j];
	}
	for (i = 0; i < n; i++)
		gf_draft_send(d, s->w, cuts[i], cuts[i + 1] - 1);
	free(cuts);
}

void gf_search_line(const struct gf_work *w, double below_s, struct gf_draft *d)
{
	size_t n = w->ntensors, k;
	struct line s = {
		.w = w,
		.end_s = gf_xcalloc(n + 1, sizeof(*s.end_s)),
		.from = gf_xcalloc(n + 1, sizeof(*s.from)),
		.nmessages = gf_xcalloc(n + 1, sizeof(*s.nmessages)),
		.deques = gf_xcalloc(w->menu.nenvelope, sizeof(*s.deques)),
		.ndeques = w->menu.nenvelope,
	};

	/* an option that stands in the envelope twice is two windows, no harm
	 */
	for (k = 0; k < s.ndeques; k++) {
		s.deques[k].items = gf_xcalloc(n, sizeof(size_t));
		s.deques[k].line = &w->menu.options[w->menu.envelope[k]];
	}
	fill(&s);
	if (fmax(s.end_s[n], w->backward_end_s) + w->in->model->update_s <
	    below_s)
		send_all(&s, d);
	for (k = 0; k < s.ndeques; k++)
		free(s.deques[k].items);
	free(s.deques);
	free(s.nmessages);
	free(s.from);
	free(s.end_s);
}
