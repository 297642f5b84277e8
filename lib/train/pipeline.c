/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline of whole steps: a selection's messages are moved by an engine,
 * and what comes is applied by the update rule. */

#include "train/method_parts.h"

static void mark(struct gf_method *m, enum gf_device_mark what)
{
	struct gf_error err = {""};

	if (m->ahead)
		gf_exchange_keep(&m->exchange,
				 gf_device_mark(&m->ahead->marks,
						m->exchange.begun - 1, what,
						&err),
				 &err);
}

/* Ahead of a GPU messages are listed when the first gradient is there, since
 * what they are may depend on how the step before has ended. */
static void list(struct gf_method *m)
{
	gf_exchange_list(&m->exchange, gf_loss_scale_now(&m->scale));
}

float *gf_method_begin(struct gf_method *m, size_t step)
{
	float *grads = gf_exchange_begin(&m->exchange, step,
					 gf_loss_scale_now(&m->scale));

	mark(m, GF_MARK_BEGUN);
	return grads;
}

void gf_method_forward_end(struct gf_method *m)
{
	mark(m, GF_MARK_FORWARD);
}

void gf_method_ready(struct gf_method *m, size_t tensor)
{
	if (m->ahead) {
		if (m->env.scale.used || m->exchange.select.ops->adopt)
			gf_method_learn(m);
		if (m->exchange.rc)
			return;
		list(m);
	}
	gf_engine_ready(m->exchange.engine, tensor);
}

void gf_method_backward_end(struct gf_method *m)
{
	mark(m, GF_MARK_BACKWARD);
	if (m->ahead && m->exchange.rc > 0)
		return;
	list(m);
	gf_engine_backward_end(m->exchange.engine);
}

int gf_method_take(void *method, struct gf_gpu_stream *s, size_t tensor,
		   struct gf_error *err)
{
	struct gf_method *m = method;

	return gf_select_ready(&m->exchange.select, tensor, s, err);
}

int gf_method_may_take(void *method, bool wait, bool *now, struct gf_error *err)
{
	struct gf_method *m = method;

	return gf_engine_earlier_ended(m->exchange.engine, wait, now, err);
}

/* Has the step a gradient to apply? Yes if enough steps have begun since the
 * last one that was applied. */
static bool is_due(const struct gf_method *m, size_t step)
{
	const bool warm = step > m->env.plan->pipeline_warmup_steps;

	return m->exchange.begun - m->exchange.taken >=
	       (warm ? gf_exchange_depth(&m->exchange) : 1);
}

/* Takes the times of the step before, and of the messages of the gradient
 * applied there. */
static void take_times_before(struct gf_method *m)
{
	struct gf_method_ahead *a = m->ahead;
	const size_t last = m->exchange.taken - 1;
	struct gf_error err = {""};

	gf_exchange_no_times(&m->exchange);
	m->timed = false;
	if (!a->was_due)
		return;
	gf_exchange_keep(&m->exchange,
			 gf_device_marks_read(&a->marks, m->exchange.begun - 2,
					      &a->durations, &err),
			 &err);
	a->has_durations = true;
	if (last < m->exchange.restored)
		return;
	m->timed = true;
	m->age = m->exchange.begun - 1 - last;
	gf_exchange_take_times(&m->exchange, last, NULL);
}

/* The oldest gradient under way is waited for, by the device. */
static void join(struct gf_method *m)
{
	struct gf_exchange *x = &m->exchange;
	struct gf_error err = {""};

	if (!x->rc)
		gf_exchange_keep(x, gf_exchange_join(x, m->due, &err), &err);
	if (!x->rc)
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
	if (m->exchange.rc)
		return gf_exchange_kept(&m->exchange, err);
	mark(m, GF_MARK_JOINED);
	take_times_before(m);
	if (!m->due)
		return 0;
	m->ahead->step = step - (m->exchange.begun - 1 - m->exchange.taken);
	m->ahead->scale = m->exchange.select.scale[gf_exchange_slot(
		&m->exchange, m->exchange.taken)];
	return m->exchange.taken < m->exchange.restored
		       ? 0
		       : gf_engine_end(m->exchange.engine, err);
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
		gf_exchange_no_times(&m->exchange);
		return 0;
	}
	m->age = m->exchange.begun - m->exchange.taken - 1;
	rc = gf_exchange_await(&m->exchange, m->exchange.taken + 1, err);
	return rc || !m->env.params ? rc : gf_method_judge(m, step, err);
}

/* The step that is due. */
static void apply(struct gf_method *m, double lr)
{
	const size_t slot = gf_exchange_slot(&m->exchange, m->exchange.taken);
	const uint32_t *flag =
		m->ahead ? gf_device_flag(&m->exchange.flags, m->exchange.taken)
			 : NULL;
	struct gf_select_sums sums;
	struct gf_error err = {""};
	int rc = gf_select_sums(&m->exchange.select, slot, &sums, &err);

	gf_exchange_keep(&m->exchange, rc, &err);
	if (rc)
		return;
	gf_update_sums(
		&m->updater, lr, &sums,
		gf_selection_has(&m->env.plan->selection, GF_SELECT_PIECES),
		flag);
	if (!m->ahead)
		gf_select_adopt(&m->exchange.select, slot);
}

/* The verdict on what was applied goes to the host. */
static void send_verdict(struct gf_method *m)
{
	struct gf_gpu *gpu = m->env.gpu;
	struct gf_error err = {""};
	int rc = 0;

	mark(m, GF_MARK_UPDATED); /* before what gf_method_learn waits for */
	if (m->due)
		rc = gf_device_flag_send(&m->exchange.flags, m->env.stream,
					 m->exchange.taken, &err);
	rc = rc ? rc : gpu->ops->check(gpu, &err);
	gf_exchange_keep(&m->exchange, rc, &err);
}

void gf_method_update(struct gf_method *m, size_t step, double lr)
{
	if (m->late.used) {
		gf_method_late_update(m, step, lr);
		return;
	}
	if (m->due && m->env.params && !m->skip && !m->exchange.rc)
		apply(m, lr);
	if (m->ahead)
		send_verdict(m);
	m->exchange.taken += m->due;
}

/* --- what is known of it -------------------------------------------------- */

uint64_t gf_method_sent_bytes(struct gf_method *m)
{
	const uint64_t before = m->told_bytes;

	m->told_bytes = gf_engine_waited_bytes(m->exchange.engine);
	return m->told_bytes - before;
}

const struct gf_device_durations *gf_method_durations(const struct gf_method *m)
{
	return m->ahead && m->ahead->has_durations ? &m->ahead->durations
						   : NULL;
}
