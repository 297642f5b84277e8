/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The method of gradients that stay on GPUs: the engine of streams moves them,
 * kernels update, and a flag that the device sets decides there whether a
 * gradient is skipped. All sums are the same on all ranks, so all come to the
 * same flag.
 *
 * The host is a step ahead: what became of the gradient that was applied in
 * step t it learns in step t + 1, once there is work enqueued for the device to
 * go on with (before the first message if gradients are scaled, since the scale
 * depends on it, else at the end). That is in time for everything: nothing
 * later has been applied by then.
 */
#include "train/method_device.h"

#include <math.h>

#include "doc/select_topk.h"
#include "select/sets.h"

/* --- a step --------------------------------------------------------------- */

static void keep_failure(struct gf_method_device *d, int rc,
			 const struct gf_error *err)
{
	if (d->rc || !rc)
		return;
	d->rc = rc;
	d->reason = *err;
}

static void mark(struct gf_method *m, enum gf_device_mark what)
{
	struct gf_method_device *d = m->priv;
	struct gf_error err = {""};

	keep_failure(d, gf_device_mark(&d->marks, m->begun - 1, what, &err),
		     &err);
}

void gf_method_device_learn(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	struct gf_error err = {""};
	bool bad = false, overflow;
	int rc;

	if (d->rc || d->learnt == m->applied)
		return;
	rc = gf_device_flag_read(&d->flags, d->learnt, &bad, &err);
	/* what was aborted ends, too, with any numbers */
	rc = rc ? rc : gf_engine_check(m->engine, &err);
	keep_failure(d, rc, &err);
	if (rc)
		return;
	overflow = gf_loss_scale_note(&m->scale, d->scale, bad);
	if (d->csc && !bad)
		gf_csc_nccl_adopt(d->csc->nccl, gf_method_slot(m, d->learnt));
	d->learnt++;
	m->skipped += bad;
	if (bad && !overflow && !m->env.skip_bad)
		keep_failure(d,
			     gf_error_set(&err, 1,
					  "a gradient is infinite or not a "
					  "number in step %zu: training has "
					  "diverged",
					  d->step),
			     &err);
}

static float *begin(struct gf_method *m, size_t step)
{
	const struct gf_topk_params *params =
		gf_topk_params(&m->env.plan->selection);
	struct gf_method_device *d = m->priv;

	m->begun++;
	if (d->csc)
		d->csc->number = step - 1;
	if (params)
		d->density = params->density;
	if (params && m->env.epoch_steps)
		d->density = gf_topk_density(params,
					     (step - 1) / m->env.epoch_steps);
	gf_method_device_slot(m, m->begun - 1)->scale =
		gf_loss_scale_now(&m->scale);
	gf_engine_begin_work(m->engine, NULL, 0);
	mark(m, GF_MARK_BEGUN);
	return gf_method_device_grads(m, m->begun - 1);
}

static void forward_end(struct gf_method *m)
{
	mark(m, GF_MARK_FORWARD);
}

/* y = by * y */
static void multiply(struct gf_method *m, float *y, size_t count, double by)
{
	m->env.gpu->kernels->axpby_f32(m->env.stream, (float)by, y, 0, y,
				       count);
}

static void ready(struct gf_method *m, size_t tensor)
{
	struct gf_method_device *d = m->priv;
	size_t first = d->offsets[tensor];

	if (m->env.scale.used || d->csc)
		gf_method_device_learn(m);
	if (m->env.scale.used)
		gf_method_device_slot(m, m->begun - 1)->scale =
			gf_loss_scale_now(&m->scale);
	if (m->env.scale.used && !d->csc)
		multiply(m, gf_method_device_grads(m, m->begun - 1) + first,
			 d->offsets[tensor + 1] - first,
			 gf_loss_scale_now(&m->scale) / m->env.plan->ranks);
	if (d->rc)
		return;
	gf_method_device_list(m);
	gf_engine_ready(m->engine, tensor);
}

static void backward_end(struct gf_method *m)
{
	const struct gf_method_device *d = m->priv;

	mark(m, GF_MARK_BACKWARD);
	if (d->rc > 0)
		return;
	gf_method_device_list(m);
	gf_engine_backward_end(m->engine);
}

/* A message of the plan has come with the one that brings its last tensor. */
static void take_message_times(struct gf_method *m, uint64_t step)
{
	const struct gf_plan *plan = m->env.plan;
	const struct gf_message_times *sent =
		gf_engine_times_of(m->engine, step);
	const struct gf_work *list;
	size_t n, i, at = 0;

	if (!sent)
		return;
	list = gf_engine_list_of(m->engine, step, &n);
	for (i = 0; i < plan->nmessages; i++) {
		while (at + 1 < n && list[at].last < plan->messages[i].last)
			at++;
		m->times[i] = sent[at];
	}
}

/* Of the step before, and of the messages of the gradient applied there. */
static void take_times(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	struct gf_error err = {""};
	const size_t last = m->applied - 1;
	size_t i;

	for (i = 0; i < m->env.plan->nmessages; i++)
		m->times[i] = (struct gf_message_times){NAN, NAN, NAN};
	m->due = false;
	if (!d->was_due)
		return;
	keep_failure(d,
		     gf_device_marks_read(&d->marks, m->begun - 2,
					  &d->durations, &err),
		     &err);
	d->has_durations = true;
	if (last < m->restored)
		return;
	m->due = true;
	m->age = m->begun - 1 - last;
	take_message_times(m, gf_method_device_step(m, last));
}

/* The oldest gradient under way is waited for; what was in a checkpoint came
 * with it. */
static void join(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	struct gf_error err = {""};

	if (!d->rc)
		keep_failure(d,
			     d->due && m->applied >= m->restored
				     ? gf_engine_wait(m->engine, &err)
				     : gf_engine_check(m->engine, &err),
			     &err);
	if (!d->rc)
		gf_method_device_learn(m);
}

/* A run that is to end has told nobody of this step's messages, or of all: the
 * same on all ranks. */
static int exchange(struct gf_method *m, size_t step, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;

	d->was_due = d->due;
	d->due = gf_method_is_due(m, step);
	join(m);
	if (d->rc) {
		*err = d->reason;
		return d->rc;
	}
	mark(m, GF_MARK_JOINED);
	take_times(m);
	if (!d->due)
		return 0;
	d->step = step - (m->begun - 1 - m->applied);
	if (m->applied < m->restored)
		return 0;
	return gf_engine_end(m->engine, err);
}

static void apply(struct gf_method *m, double lr)
{
	struct gf_method_device *d = m->priv;
	double scale;

	d->scale = gf_method_device_slot(m, m->applied)->scale;
	if (d->csc) {
		gf_method_csc_apply(m, lr);
		return;
	}
	scale = m->env.scale.used ? 1 / d->scale : 1.0 / m->env.plan->ranks;
	gf_device_update_step(&d->update, lr, (float)scale,
			      gf_device_flag(&d->flags, m->applied),
			      gf_method_device_grads(m, m->applied),
			      m->env.device_params);
}

static void update(struct gf_method *m, size_t step, double lr)
{
	struct gf_method_device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	struct gf_error err = {""};
	int rc = 0;

	(void)step;
	if (d->due)
		apply(m, lr);
	mark(m, GF_MARK_UPDATED); /* before what learn waits for */
	if (d->due)
		rc = gf_device_flag_send(&d->flags, m->env.stream, m->applied++,
					 &err);
	rc = rc ? rc : gpu->ops->check(gpu, &err);
	keep_failure(d, rc, &err);
}

/* --- what is known of it -------------------------------------------------- */

static uint64_t sent_bytes(struct gf_method *m)
{
	const uint64_t before = m->told_bytes;

	m->told_bytes = gf_engine_waited_bytes(m->engine);
	return m->told_bytes - before;
}

static const struct gf_message_times *times(const struct gf_method *m)
{
	return m->times;
}

static const struct gf_device_durations *durations(const struct gf_method *m)
{
	const struct gf_method_device *d = m->priv;

	return d->has_durations ? &d->durations : NULL;
}

static struct gf_engine_totals totals(const struct gf_method *m)
{
	return gf_engine_totals(m->engine);
}

static uint64_t dense_bytes(const struct gf_method *m)
{
	return gf_engine_dense_bytes(m->engine);
}

static double handling_s(const struct gf_method *m)
{
	return gf_engine_handling_s(m->engine);
}

static void count_from(struct gf_method *m, size_t steps)
{
	(void)m;
	(void)steps;
}

const struct gf_method_ops gf_method_device = {
	.name = "device",
	.open = gf_method_device_open,
	.begin = begin,
	.forward_end = forward_end,
	.ready = ready,
	.backward_end = backward_end,
	.exchange = exchange,
	.update = update,
	.sent_bytes = sent_bytes,
	.times = times,
	.durations = durations,
	.totals = totals,
	.dense_bytes = dense_bytes,
	.handling_s = handling_s,
	.count_from = count_from,
	.state = gf_method_device_state,
	.settle = gf_method_device_settle,
	.restore = gf_method_device_restore,
	.close = gf_method_device_close,
};
