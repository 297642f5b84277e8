/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline of whole steps: a selection's messages are moved by an engine,
 * and what comes is applied by the update rule. */
#include <math.h>

#include "train/method_parts.h"

void gf_method_keep(struct gf_method *m, int rc, const struct gf_error *err)
{
	if (m->rc || !rc)
		return;
	m->rc = rc;
	m->reason = *err;
}

int gf_method_kept(const struct gf_method *m, struct gf_error *err)
{
	if (m->rc)
		*err = m->reason;
	return m->rc;
}

static void mark(struct gf_method *m, enum gf_device_mark what)
{
	struct gf_error err = {""};

	if (m->ahead)
		gf_method_keep(m,
			       gf_device_mark(&m->ahead->marks, m->begun - 1,
					      what, &err),
			       &err);
}

/* The messages of the step begun last. Ahead of a GPU they are listed when the
 * first gradient is there, since what they are may depend on how the step
 * before has ended. */
static void list(struct gf_method *m)
{
	const size_t slot = gf_method_slot(m, m->begun - 1);
	const struct gf_work *work;
	size_t n;

	if (m->listed == m->begun)
		return;
	m->listed = m->begun;
	m->select.scale[slot] = gf_loss_scale_now(&m->scale);
	gf_select_begin(&m->select, slot, m->number, &work, &n);
	if (m->ahead)
		gf_engine_list(m->engine, work, n);
	else
		gf_engine_begin_work(m->engine, work, n);
}

float *gf_method_begin(struct gf_method *m, size_t step)
{
	const size_t slot = gf_method_slot(m, m->begun);

	m->number = step;
	if (m->ahead) {
		m->select.flag[slot] =
			gf_device_flag(&m->ahead->flags, m->begun);
		m->select.scale[slot] = gf_loss_scale_now(&m->scale);
		gf_engine_begin_work(m->engine, NULL, 0);
	}
	m->begun++;
	mark(m, GF_MARK_BEGUN);
	if (!m->ahead)
		list(m);
	return m->pools[slot].data;
}

void gf_method_forward_end(struct gf_method *m)
{
	mark(m, GF_MARK_FORWARD);
}

void gf_method_ready(struct gf_method *m, size_t tensor)
{
	if (m->ahead) {
		if (m->env.scale.used || m->select.ops->adopt)
			gf_method_learn(m);
		if (m->rc)
			return;
		list(m);
	}
	gf_engine_ready(m->engine, tensor);
}

void gf_method_backward_end(struct gf_method *m)
{
	mark(m, GF_MARK_BACKWARD);
	if (m->ahead && m->rc > 0)
		return;
	list(m);
	gf_engine_backward_end(m->engine);
}

int gf_method_take(void *method, struct gf_gpu_stream *s, size_t tensor,
		   struct gf_error *err)
{
	struct gf_method *m = method;

	return gf_select_ready(&m->select, tensor, s, err);
}

int gf_method_may_take(void *method, bool wait, bool *now, struct gf_error *err)
{
	struct gf_method *m = method;

	return gf_engine_earlier_ended(m->engine, wait, now, err);
}

static void no_times(struct gf_method *m)
{
	size_t i;

	for (i = 0; i < m->env.plan->nmessages; i++)
		m->times[i] = (struct gf_message_times){NAN, NAN, NAN};
}

/* Of a step of the engine that has been waited for. */
static void take_times(struct gf_method *m, uint64_t engine_step,
		       const double *ready_s)
{
	const struct gf_message_times *sent =
		gf_engine_times_of(m->engine, engine_step);
	const struct gf_work *work;
	size_t n;

	if (!sent)
		return;
	work = gf_engine_list_of(m->engine, engine_step, &n);
	gf_select_times(m->env.plan, work, n, sent, ready_s, m->times);
}

int gf_method_await(struct gf_method *m, size_t count, struct gf_error *err)
{
	int rc = 0;

	while (!rc && m->arrived < count) {
		rc = gf_engine_wait(m->engine, err);
		rc = rc ? rc : gf_method_kept(m, err);
		if (rc)
			break;
		take_times(m, m->arrived - m->restored,
			   gf_engine_ready_times(m->engine));
		m->arrived++;
	}
	return rc;
}

/* Has the step a gradient to apply? Yes if enough steps have begun since the
 * last one that was applied. */
static bool is_due(const struct gf_method *m, size_t step)
{
	const bool warm = step > m->env.plan->pipeline_warmup_steps;

	return m->begun - m->applied >= (warm ? gf_method_depth(m) : 1);
}

/* Takes the times of the step before, and of the messages of the gradient
 * applied there. */
static void take_times_before(struct gf_method *m)
{
	struct gf_method_ahead *a = m->ahead;
	const size_t last = m->applied - 1;
	struct gf_error err = {""};

	no_times(m);
	m->timed = false;
	if (!a->was_due)
		return;
	gf_method_keep(m,
		       gf_device_marks_read(&a->marks, m->begun - 2,
					    &a->durations, &err),
		       &err);
	a->has_durations = true;
	if (last < m->restored)
		return;
	m->timed = true;
	m->age = m->begun - 1 - last;
	take_times(m, last - m->restored, NULL);
}

/* The oldest gradient under way is waited for, by the device; what was in a
 * checkpoint came with it. */
static void join(struct gf_method *m)
{
	struct gf_error err = {""};

	if (!m->rc)
		gf_method_keep(m,
			       m->due && m->applied >= m->restored
				       ? gf_engine_wait(m->engine, &err)
				       : gf_engine_check(m->engine, &err),
			       &err);
	if (!m->rc)
		gf_method_learn(m);
}

/* A run that is to end has told nobody of this step's messages, or of all: the
 * same on all ranks. */
static int exchange_ahead(struct gf_method *m, size_t step,
			  struct gf_error *err)
{
	m->ahead->was_due = m->due;
	m->due = is_due(m, step);
	join(m);
	if (m->rc)
		return gf_method_kept(m, err);
	mark(m, GF_MARK_JOINED);
	take_times_before(m);
	if (!m->due)
		return 0;
	m->ahead->step = step - (m->begun - 1 - m->applied);
	m->ahead->scale = m->select.scale[gf_method_slot(m, m->applied)];
	return m->applied < m->restored ? 0 : gf_engine_end(m->engine, err);
}

int gf_method_exchange(struct gf_method *m, size_t step, struct gf_error *err)
{
	int rc;

	if (m->late.used)
		return gf_method_late_exchange(m, err);
	if (m->ahead)
		return exchange_ahead(m, step, err);
	m->skip = false;
	m->due = m->timed = is_due(m, step);
	if (!m->due) {
		no_times(m);
		return 0;
	}
	m->age = m->begun - m->applied - 1;
	rc = gf_method_await(m, m->applied + 1, err);
	return rc || !m->env.params ? rc : gf_method_judge(m, step, err);
}

/* The step that is due. */
static void apply(struct gf_method *m, double lr)
{
	const size_t slot = gf_method_slot(m, m->applied);
	const uint32_t *flag =
		m->ahead ? gf_device_flag(&m->ahead->flags, m->applied) : NULL;
	struct gf_select_sums sums;
	struct gf_error err = {""};
	int rc = gf_select_sums(&m->select, slot, &sums, &err);

	gf_method_keep(m, rc, &err);
	if (rc)
		return;
	gf_update_sums(
		&m->updater, lr, &sums,
		gf_selection_has(&m->env.plan->selection, GF_SELECT_PIECES),
		flag);
	if (!m->ahead)
		gf_select_adopt(&m->select, slot);
}

/* The verdict on what was applied goes to the host. */
static void send_verdict(struct gf_method *m)
{
	struct gf_gpu *gpu = m->env.gpu;
	struct gf_error err = {""};
	int rc = 0;

	mark(m, GF_MARK_UPDATED); /* before what gf_method_learn waits for */
	if (m->due)
		rc = gf_device_flag_send(&m->ahead->flags, m->env.stream,
					 m->applied, &err);
	rc = rc ? rc : gpu->ops->check(gpu, &err);
	gf_method_keep(m, rc, &err);
}

void gf_method_update(struct gf_method *m, size_t step, double lr)
{
	if (m->late.used) {
		gf_method_late_update(m, step, lr);
		return;
	}
	if (m->due && m->env.params && !m->skip && !m->rc)
		apply(m, lr);
	if (m->ahead)
		send_verdict(m);
	m->applied += m->due;
}

/* --- what is known of it -------------------------------------------------- */

uint64_t gf_method_sent_bytes(struct gf_method *m)
{
	const uint64_t before = m->told_bytes;

	m->told_bytes = gf_engine_waited_bytes(m->engine);
	return m->told_bytes - before;
}

const struct gf_device_durations *gf_method_durations(const struct gf_method *m)
{
	return m->ahead && m->ahead->has_durations ? &m->ahead->durations
						   : NULL;
}
