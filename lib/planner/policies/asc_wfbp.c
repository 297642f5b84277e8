/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ASC-WFBP (Shi, Chu, Li 2021): Theorem 1 as its derivation means it.
 *
 * The theorem as printed does not hold. The differences: Q3 uses Eqs. 17 and 29 instead of Eq. 27;
 * the penalty refers to the previous message, not to the layer before; a normal message waits for
 * the previous one to end; `lanes` limits how many go at once.
 *
 * Tensors are walked in generation order. The waiting message has `bytes`, would take own = a +
 * b*bytes alone and start at max(ready, previous end):
 *
 *	Q1  start + own <= next ready			normal
 *	Q2  next ready < start + a
 *	Q3  ready + own + penalty(ready) < next ready
 *	    Q2 and not Q3				merge with the next
 *	    otherwise					simultaneous
 *
 * The penalty is what the rest of the previous message costs this one
 * (Eq. 13); the rest is a share in [0, 1] of it, and no more bytes are charged than this message
 * has. The last tensor's message is simultaneous.
 */
#include <math.h>

#include "cli/human.h"
#include "planner/policies/policy.h"
#include "planner/workbench.h"

struct sent {
	double bytes, start_s, end_s;
};

/* The penalty for starting at t_s beside the previous message, Eq. 13 corrected. */
static double penalty_s(const struct gf_workbench *w, const struct sent *previous,
			const struct gf_send *s, double bytes, double t_s)
{
	const struct gf_option *o = &w->menu.options[s->option];
	double length = previous->end_s - previous->start_s;
	double left;

	if (previous->bytes <= 0 || !(length > 0))
		return 0;
	left = 1 - (t_s - previous->start_s) / length;
	left = previous->bytes * fmin(fmax(left, 0), 1);
	return (gf_workbench_gamma(w, s->option, bytes, 2) - 1) * o->line.per_byte_s *
	       fmin(left, bytes);
}

/* The three questions about the message that waits with tensor `last`. */
struct question {
	double ready, start, own, a, next, penalty;
	bool q1, q2, q3;
};

static struct question ask(const struct gf_workbench *w, const struct sent *previous, size_t first,
			   size_t last)
{
	double bytes = gf_workbench_bytes(w, first, last);
	struct gf_send s = {.option = gf_menu_pick(&w->menu, bytes)};
	struct question q = {
		.ready = w->ready_s[last],
		.start = fmax(w->ready_s[last], previous->end_s),
		.own = gf_menu_cost_s(&w->menu, bytes),
		.a = w->menu.options[s.option].line.startup_s,
	};

	q.penalty = penalty_s(w, previous, &s, bytes, q.ready);
	if (last + 1 == w->ntensors)
		return q;
	q.next = w->ready_s[last + 1];
	q.q1 = q.start + q.own <= q.next;
	q.q2 = q.next < q.start + q.a;
	q.q3 = q.ready + q.own + q.penalty < q.next;
	return q;
}

static void quote(const struct question *q, struct gf_text *line)
{
	struct gf_human start, own, next;

	start = gf_human_time(q->start);
	own = gf_human_time(q->own);
	next = gf_human_time(q->next);
	gf_text_addf(line, "Q1 start %s + own %s %s next ready %s", start.text, own.text,
		     q->q1 ? "<=" : ">", next.text);
	if (q->q1)
		return;
	gf_text_addf(line, "; Q2 next ready %s %s start %s + startup %s", next.text,
		     q->q2 ? "<" : ">=", start.text, gf_human_time(q->a).text);
	if (q->q2)
		gf_text_addf(line, "; Q3 ready %s + own %s + penalty %s %s next ready %s",
			     gf_human_time(q->ready).text, own.text, gf_human_time(q->penalty).text,
			     q->q3 ? "<" : ">=", next.text);
}

/* Drafts into d, or explains into lines; the other is NULL. */
static void walk(const struct gf_workbench *w, struct gf_draft *d, struct gf_text *lines)
{
	struct sent previous = {0, 0, 0};
	size_t first = 0, last;

	for (last = 0; last < w->ntensors; last++) {
		struct question q = ask(w, &previous, first, last);
		bool final = last + 1 == w->ntensors;
		double start = q.start, end = q.start + q.own;

		if (lines && final)
			gf_text_addf(&lines[last], "the last tensor is simultaneous");
		else if (lines)
			quote(&q, &lines[last]);
		if (!q.q1 && q.q2 && !q.q3 && last < w->run_last[first])
			continue; /* merge */
		if (d)
			gf_draft_send(d, w, first, last)->mode =
				q.q1 ? GF_MODE_NORMAL : GF_MODE_SIMULTANEOUS;
		if (!q.q1) {
			start = q.ready;
			end = q.ready + q.own + q.penalty;
		}
		previous = (struct sent){gf_workbench_bytes(w, first, last), start,
					 fmax(previous.end_s, end)};
		first = last + 1;
	}
}

static void draft(const struct gf_workbench *w, struct gf_draft *d)
{
	d->lanes = w->lanes;
	walk(w, d, NULL);
}

static void explain(const struct gf_workbench *w, const struct gf_draft *d, struct gf_text *lines)
{
	(void)d;
	walk(w, NULL, lines);
}

/* MANUAL
 * normal, merged or simultaneous by Theorem 1, corrected.
 * Of the message that waits it asks: will it have ended when the next tensor is ready (Q1: then it
 * is normal)?
 * Is that tensor ready within its startup (Q2), and would it end later even so, beside the message
 * before (not Q3)?
 * Then it is merged with the tensor, else simultaneous. */
const struct gf_policy gf_policy_asc_wfbp = {
	.name = "asc-wfbp",
	.description = "normal, merged or simultaneous by Theorem 1, corrected",
	.place = 60,
	.source = "ASC-WFBP, Theorem 1 (Shi, Chu, Li 2021)",
	.lanes = 2,
	.automatic = true,
	.draft = draft,
	.explain = explain,
};
