/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decoupled all-reduce (Zhang et al. 2023, "DeAR: Accelerating Distributed Deep Learning with
 * Fine-Grained All-Reduce Pipelining"): the reduce-scatter of a split message overlaps backward,
 * its all-gather the next step's forward. The all-gathers go in the order in which forward needs
 * them, the last message's first; forward waits for each where it reads the first of its tensors.
 *
 * A step that may be skipped, or that clips at a norm, has no such order. It must look at the whole
 * gradient before any of it is applied: gf_train_settle makes its messages whole.
 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "trainer/method_parts.h"

const char *gf_method_looks_first(double clip_norm, bool scaled, bool skips, bool gpu)
{
	return clip_norm > 0 ? "gradients are clipped at a norm"
	       : scaled	     ? "a loss scale may skip the step"
	       : skips	     ? "bad gradients skip the step"
	       : gpu	     ? "a GPU's layers do not wait for messages"
			     : NULL;
}

static bool may_be_used(const struct gf_method *m)
{
	const double clip_norm = m->env.optim ? m->env.optim->clip_norm : 0;

	return !m->shards && gf_plan_splits(m->env.plan) &&
	       gf_selection_has(&m->env.plan->selection, GF_SELECT_LOSSLESS) &&
	       !gf_method_looks_first(clip_norm, m->scale.used, m->env.skip_bad, !m->env.asks);
}

void gf_method_late_open(struct gf_method *m)
{
	const struct gf_plan *plan = m->env.plan;
	struct gf_method_late *l = &m->late;

	l->used = may_be_used(m);
	if (!l->used)
		return;
	l->message = gf_xcalloc(plan->model->ntensors, sizeof(*l->message));
	l->applied = gf_xcalloc(plan->nmessages, sizeof(*l->applied));
	l->waits = gf_xcalloc(plan->nmessages, sizeof(*l->waits));
	for (size_t i = 0; i < plan->nmessages; i++) {
		for (size_t t = plan->messages[i].first; t <= plan->messages[i].last; t++)
			l->message[t] = i;
	}
}

void gf_method_late_close(struct gf_method *m)
{
	free(m->late.message);
	free(m->late.applied);
	free(m->late.waits);
}

/* Messages are waited for and applied by all ranks with the same sums: a bad one is found by all at
 * the same. */
static int apply(struct gf_method *m, size_t message, struct gf_error *err)
{
	struct gf_optim_part all = {.lr = m->late.lr, .weight = m->updater.params};
	struct gf_select_sums sums;
	struct gf_select_bad bad;

	m->late.applied[message] = true;
	if (!m->env.params)
		return 0;
	(void)gf_exchange_sums(m->made, message, &sums, &bad, err);
	if (bad.found)
		return gf_method_refuse(m, m->made->number, bad, err);
	all.scale = sums.share;
	all.grad = m->made->grads;
	gf_optimizer_step_some(&m->updater.optimizer, &all, sums.pieces->first,
			       sums.pieces->count_elems);
	return 0;
}

void gf_method_wait(struct gf_method *m, size_t which, size_t message, gf_method_wait_fn *wait)
{
	struct gf_method_late *l = &m->late;
	const double began_s = gf_clock_s();
	const double handled_s = gf_exchange_totals(m->exchange).handling_s;
	double waited_s;

	l->rc = wait(m->made, message, &l->err);
	l->waits[which] = (struct gf_step_wait){began_s, gf_clock_s()};
	waited_s = l->waits[which].end_s - began_s;
	l->waited_s += waited_s;
	l->handling_s += fmin(waited_s, gf_exchange_totals(m->exchange).handling_s - handled_s);
}

static int wait_whole(struct gf_exchange_step *step, size_t message, struct gf_error *err)
{
	return gf_exchange_wait(step, message, true, err);
}

/* Its all-gather, and what it brought. */
static void take_up(struct gf_method *m, size_t message)
{
	struct gf_method_late *l = &m->late;

	if (l->rc || l->applied[message])
		return;
	gf_method_wait(m, message, message, wait_whole);
	if (!l->rc)
		l->rc = apply(m, message, &l->err);
}

void gf_method_late_begin(struct gf_method *m)
{
	struct gf_method_late *l = &m->late;

	l->waited_s = l->handling_s = 0;
	memset(l->waits, 0, (m->shards ? 2 : 1) * m->env.plan->nmessages * sizeof(*l->waits));
}

void gf_method_need(void *method, size_t tensor)
{
	struct gf_method *m = method;

	if (m->shards)
		gf_method_shards_need(m, tensor);
	else if (m->late.pending)
		take_up(m, m->late.message[tensor]);
}

int gf_method_take_rest(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_late *l = &m->late;
	struct gf_exchange_step *step;

	if (!l->pending)
		return 0;
	for (size_t i = m->env.plan->nmessages; i-- > 0;)
		take_up(m, i);
	if (!l->rc)
		l->rc = gf_exchange_next(m->exchange, true, &step, &l->err);
	if (l->rc) {
		*err = l->err;
		return l->rc;
	}
	l->pending = false;
	return gf_exchange_take(step, true, err);
}

/* Messages that are not split, and the reduce-scatters of the others. */
int gf_method_late_exchange(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_late *l = &m->late;
	int rc = 0;

	/* told are the times of the step before, which are known now */
	m->timed = l->updated ? m->made->number - 1 : 0;
	for (size_t i = 0; !rc && i < m->env.plan->nmessages; i++)
		rc = gf_exchange_wait(m->made, i, false, err);
	return rc;
}

void gf_method_late_update(struct gf_method *m, double lr)
{
	const struct gf_plan *plan = m->env.plan;
	struct gf_method_late *l = &m->late;

	l->lr = lr;
	l->pending = l->updated = true;
	l->rc = 0;
	gf_optimizer_begin(&m->updater.optimizer);
	for (size_t i = 0; i < plan->nmessages; i++)
		l->applied[i] = false;
	for (size_t i = 0; !l->rc && i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_SPLIT)
			l->rc = apply(m, i, &l->err);
}
