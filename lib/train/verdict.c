/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a gradient that has come applied? Not if it is infinite or not a number:
 * then a smaller loss scale will do, or the step is skipped, or the run ends.
 * All sums are the same on all ranks, so all come to the same verdict.
 *
 * A host that updates judges first. A GPU that updates by itself heeds a flag
 * that it has set, and the host is a step ahead. In step t + 1 the host learns
 * what became of the gradient that was applied in step t, once there is work
 * enqueued for the device to go on with. If the messages depend on the answer,
 * as scaled gradients do, the host learns it before the first of them, else at
 * the end. That is in time: nothing later has been applied by then.
 */
#include "train/method_parts.h"

int gf_method_refuse(const struct gf_method *m, size_t step,
		     struct gf_select_bad bad, struct gf_error *err)
{
	return gf_error_set(err, 1,
			    "the gradient of %s is infinite or not a number "
			    "in step %zu (element %zu): training has diverged",
			    m->env.plan->model->tensors[bad.tensor].name, step,
			    bad.element);
}

int gf_method_judge(struct gf_method *m, size_t step, struct gf_error *err)
{
	struct gf_select_bad bad =
		gf_exchange_bad(&m->exchange, m->exchange.taken);
	double scale = m->exchange.select.scale[gf_exchange_slot(
		&m->exchange, m->exchange.taken)];
	bool overflow = gf_loss_scale_note(&m->scale, scale, bad.found);

	if (bad.found && !overflow && !m->env.skip_bad)
		return gf_method_refuse(
			m, step - (m->exchange.begun - m->exchange.taken - 1),
			bad, err);
	m->skip = bad.found;
	m->skipped += bad.found;
	return 0;
}

void gf_method_learn(struct gf_method *m)
{
	const struct gf_method_ahead *a = m->ahead;
	struct gf_exchange *x = &m->exchange;
	struct gf_error err = {""};
	bool bad = false, overflow;
	int rc;

	if (x->rc || x->learnt == x->taken)
		return;
	rc = gf_exchange_learn(x, &bad, &err);
	gf_exchange_keep(x, rc, &err);
	if (rc)
		return;
	overflow = gf_loss_scale_note(&m->scale, a->scale, bad);
	m->skipped += bad;
	if (bad && !overflow && !m->env.skip_bad)
		gf_exchange_keep(
			&m->exchange,
			gf_error_set(&err, 1,
				     "a gradient is infinite or not a "
				     "number in step %zu: training has "
				     "diverged",
				     a->step),
			&err);
}
