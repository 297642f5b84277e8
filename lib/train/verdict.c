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

struct gf_select_bad gf_method_bad(const struct gf_method *m, size_t index)
{
	struct gf_selector *s = (struct gf_selector *)&m->select;

	if (index < m->restored)
		return (struct gf_select_bad){.found = m->flight_bad[index] !=
						       0};
	return gf_select_inspect(s, gf_method_slot(m, index));
}

int gf_method_judge(struct gf_method *m, size_t step, struct gf_error *err)
{
	struct gf_select_bad bad = gf_method_bad(m, m->applied);
	double scale = m->select.scale[gf_method_slot(m, m->applied)];
	bool overflow = gf_loss_scale_note(&m->scale, scale, bad.found);

	if (bad.found && !overflow && !m->env.skip_bad)
		return gf_method_refuse(m, step - (m->begun - m->applied - 1),
					bad, err);
	m->skip = bad.found;
	m->skipped += bad.found;
	return 0;
}

void gf_method_learn(struct gf_method *m)
{
	struct gf_method_ahead *a = m->ahead;
	struct gf_error err = {""};
	bool bad = false, overflow;
	int rc;

	if (m->rc || a->learnt == m->applied)
		return;
	rc = gf_device_flag_read(&a->flags, a->learnt, &bad, &err);
	/* what was aborted ends, too, with any numbers */
	rc = rc ? rc : gf_engine_check(m->engine, &err);
	gf_method_keep(m, rc, &err);
	if (rc)
		return;
	overflow = gf_loss_scale_note(&m->scale, a->scale, bad);
	if (!bad)
		gf_select_adopt(&m->select, gf_method_slot(m, a->learnt));
	a->learnt++;
	m->skipped += bad;
	if (bad && !overflow && !m->env.skip_bad)
		gf_method_keep(m,
			       gf_error_set(&err, 1,
					    "a gradient is infinite or not a "
					    "number in step %zu: training has "
					    "diverged",
					    a->step),
			       &err);
}
