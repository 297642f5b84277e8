/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoupled all-reduce (Zhang et al. 2023, "DeAR: Accelerating Distributed Deep
 * Learning with Fine-Grained All-Reduce Pipelining"): the reduce-scatter of a
 * split message overlaps backward, its all-gather the next step's forward. The
 * all-gathers go in the order in which forward needs them, the last message's
 * first; forward waits for each where it reads the first of its tensors.
 *
 * A step that may be skipped, or that clips at a norm, has no such order. It
 * must look at the whole gradient before any of it is applied, and so waits for
 * all of it.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"
#include "train/method_parts.h"

/* A split message needs one step under way at a time (plan_check.c). */
enum { SLOT = 0 };

static bool may_be_used(const struct gf_method *m)
{
	const struct gf_plan *plan = m->env.plan;
	size_t i;

	if (!m->env.asks || m->env.skip_bad || m->scale.used ||
	    !m->exchange.select.ops->by_message ||
	    (m->env.optim && m->env.optim->clip_norm > 0))
		return false;
	for (i = 0; i < plan->nmessages; i++)
		if (plan->messages[i].half == GF_HALF_SPLIT)
			return true;
	return false;
}

void gf_method_late_open(struct gf_method *m)
{
	const struct gf_plan *plan = m->env.plan;
	struct gf_method_late *l = &m->late;
	size_t i, t;

	l->used = may_be_used(m);
	if (!l->used)
		return;
	l->message = gf_xcalloc(plan->model->ntensors, sizeof(*l->message));
	l->applied = gf_xcalloc(plan->nmessages, sizeof(*l->applied));
	l->waits = gf_xcalloc(plan->nmessages, sizeof(*l->waits));
	for (i = 0; i < plan->nmessages; i++) {
		for (t = plan->messages[i].first; t <= plan->messages[i].last;
		     t++)
			l->message[t] = i;
		m->exchange.times[i] = (struct gf_message_times){NAN, NAN, NAN};
	}
}

void gf_method_late_close(struct gf_method *m)
{
	free(m->late.message);
	free(m->late.applied);
	free(m->late.waits);
}

/* Messages are waited for and applied by all ranks with the same sums: a bad
 * one is found by all at the same. */
static int apply(struct gf_method *m, size_t message, struct gf_error *err)
{
	const struct gf_pool *pool = &m->exchange.pools[SLOT];
	const struct gf_work *w = &m->exchange.select.plan_work[SLOT][message];
	const size_t first = pool->offsets[w->first];
	struct gf_select_bad bad;

	m->late.applied[message] = true;
	if (!m->env.params)
		return 0;
	bad = gf_select_find_bad(pool, w->data, first, w->count_elems);
	if (bad.found)
		return gf_method_refuse(m, m->late.step, bad, err);
	gf_update_some(&m->updater, m->late.lr, first, w->count_elems,
		       pool->data, 1.0f / (float)m->env.plan->ranks);
	return 0;
}

/* One of the plan's messages has come: with `gathered` all of it, else the
 * reduce-scatter if it is split. */
static int wait_message(struct gf_method *m, size_t message, bool gathered,
			struct gf_error *err)
{
	size_t i = message, k;

	for (k = m->env.plan->nmessages;
	     gathered && k < m->exchange.select.nplan_work; k++)
		if (m->exchange.select.plan_work[SLOT][k].after == message + 1)
			i = k;
	return gf_engine_wait_message(m->exchange.engine, i, err);
}

/* Its all-gather, with the clock running, and what it brought. */
static void take_up(struct gf_method *m, size_t message)
{
	struct gf_method_late *l = &m->late;
	double began_s = gf_clock_s();
	double handled_s = gf_engine_handling_s(m->exchange.engine);
	double waited_s;

	if (l->rc || l->applied[message])
		return;
	l->rc = wait_message(m, message, true, &l->err);
	l->waits[message] = (struct gf_step_wait){began_s, gf_clock_s()};
	waited_s = l->waits[message].end_s - began_s;
	l->waited_s += waited_s;
	l->handling_s += fmin(
		waited_s, gf_engine_handling_s(m->exchange.engine) - handled_s);
	if (!l->rc)
		l->rc = apply(m, message, &l->err);
}

void gf_method_need(void *method, size_t tensor)
{
	struct gf_method *m = method;

	if (m->late.pending)
		take_up(m, m->late.message[tensor]);
}

int gf_method_take_rest(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_late *l = &m->late;
	size_t i;

	if (!l->pending)
		return 0;
	for (i = m->env.plan->nmessages; i-- > 0;)
		take_up(m, i);
	if (!l->rc)
		l->rc = gf_exchange_await(&m->exchange, m->exchange.begun,
					  &l->err);
	if (l->rc) {
		*err = l->err;
		return l->rc;
	}
	m->exchange.taken++;
	l->pending = false;
	return 0;
}

/* Messages that are not split, and the reduce-scatters of the others. */
int gf_method_late_exchange(struct gf_method *m, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	/* told are the times of the step before, which are known now */
	m->timed = m->exchange.taken > 0;
	m->age = 1;
	for (i = 0; !rc && i < m->env.plan->nmessages; i++)
		rc = wait_message(m, i, false, err);
	return rc;
}

void gf_method_late_update(struct gf_method *m, size_t step, double lr)
{
	const struct gf_plan *plan = m->env.plan;
	struct gf_method_late *l = &m->late;
	size_t i;

	l->step = step;
	l->lr = lr;
	l->pending = true;
	l->rc = 0;
	gf_update_begin(&m->updater);
	for (i = 0; i < plan->nmessages; i++)
		l->applied[i] = false;
	for (i = 0; !l->rc && i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_SPLIT)
			l->rc = apply(m, i, &l->err);
}
