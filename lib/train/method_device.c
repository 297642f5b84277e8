/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The method of gradients that stay on GPUs: the device engine moves them,
 * kernels update, and a flag that the device sets decides there whether a step
 * is skipped. All sums are the same on all ranks, so all come to the same flag.
 *
 * The host is a step ahead: what became of step t it learns in step t + 1, once
 * there is work enqueued for the device to go on with (before the first message
 * if gradients are scaled, since the scale depends on it, else at the end).
 * That is in time for everything: no later step has been applied by then.
 */
#include "train/method_device.h"

#include "base/clock.h"
#include "rt/sparse.h"

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

	keep_failure(d, gf_device_mark(&d->marks, d->enqueued, what, &err),
		     &err);
}

void gf_method_device_learn(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	struct gf_error err = {""};
	bool bad = false, overflow;
	int rc;

	if (d->rc || d->learnt == d->enqueued)
		return;
	rc = gf_device_flag_read(&d->flags, d->learnt, &bad, &err);
	/* what was aborted ends, too, with any numbers */
	rc = rc ? rc : gf_device_engine_check(m->device, &err);
	keep_failure(d, rc, &err);
	if (rc)
		return;
	overflow = gf_loss_scale_note(&m->scale, d->scale[d->learnt % GF_FLAGS],
				      bad);
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
	struct gf_method_device *d = m->priv;
	struct gf_error err = {""};

	m->due = true;
	if (d->residual && m->env.epoch_steps)
		gf_device_engine_density(
			m->device,
			gf_sparse_density(&m->env.plan->selection,
					  (step - 1) / m->env.epoch_steps));
	d->begun_s[0] = d->begun_s[1];
	d->begun_s[1] = gf_clock_s();
	keep_failure(d, gf_device_engine_begin(m->device, &err), &err);
	mark(m, GF_MARK_BEGUN);
	return m->env.device_grads;
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
	struct gf_error err = {""};
	size_t first = d->offsets[tensor];

	if (m->env.scale.used) {
		gf_method_device_learn(m);
		multiply(m, m->env.device_grads + first,
			 d->offsets[tensor + 1] - first,
			 gf_loss_scale_now(&m->scale) / m->env.plan->ranks);
	}
	if (!d->rc)
		keep_failure(d, gf_device_engine_ready(m->device, tensor, &err),
			     &err);
}

static void backward_end(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	struct gf_error err = {""};

	mark(m, GF_MARK_BACKWARD);
	if (d->rc <= 0)
		keep_failure(d, gf_device_engine_backward_end(m->device, &err),
			     &err);
}

/* Of the step before, which has ended: its own clock, set to the host's. */
static void take_times(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	struct gf_error err = {""};
	size_t i;

	m->age = d->enqueued > 0;
	if (!m->age)
		return;
	keep_failure(d,
		     gf_device_marks_read(&d->marks, d->enqueued - 1,
					  &d->durations, &err),
		     &err);
	d->has_durations = true;
	keep_failure(d,
		     gf_device_engine_times_before(m->device, m->times, &err),
		     &err);
	for (i = 0; i < m->env.plan->nmessages; i++) {
		m->times[i].ready_s += d->begun_s[0];
		m->times[i].start_s += d->begun_s[0];
		m->times[i].end_s += d->begun_s[0];
	}
}

/* Is this step's sum bad? Gradients become it, if not. */
static int conclude(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	int rc;

	if (!d->residual)
		return gf_device_flag_set(&d->flags, d->enqueued,
					  m->env.device_grads, d->count_elems,
					  err);
	rc = gf_device_flag_clear(&d->flags, d->enqueued, err);
	if (rc)
		return rc;
	gf_device_engine_look(m->device,
			      gf_device_flag(&d->flags, d->enqueued));
	return gf_device_engine_apply(
		m->device, gf_device_flag(&d->flags, d->enqueued), err);
}

/* A run that is to end has told nobody of this step's messages, or of all: the
 * same on all ranks. */
static int exchange(struct gf_method *m, size_t step, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	struct gf_error own = {""};

	if (!d->rc) {
		keep_failure(d, gf_device_engine_join(m->device, &own), &own);
		if (!d->rc)
			gf_method_device_learn(m);
	}
	if (d->rc) {
		*err = d->reason;
		return d->rc;
	}
	mark(m, GF_MARK_JOINED);
	take_times(m);
	d->step = step;
	d->sent_bytes += gf_device_engine_sent_bytes(m->device);
	return conclude(m, err);
}

static void update(struct gf_method *m, size_t step, double lr)
{
	struct gf_method_device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	struct gf_error err = {""};
	const double scale = m->env.scale.used
				     ? 1 / gf_loss_scale_now(&m->scale)
				     : 1.0 / m->env.plan->ranks;
	int rc;

	(void)step;
	gf_device_update_step(&d->update, lr, (float)scale,
			      gf_device_flag(&d->flags, d->enqueued),
			      m->env.device_grads, m->env.device_params);
	mark(m, GF_MARK_UPDATED); /* before what learn waits for */
	rc = gf_device_flag_send(&d->flags, d->enqueued, &err);
	rc = rc ? rc : gpu->ops->check(gpu, &err);
	keep_failure(d, rc, &err);
	d->scale[d->enqueued % GF_FLAGS] = gf_loss_scale_now(&m->scale);
	d->enqueued++;
}

/* --- what is known of it -------------------------------------------------- */

static uint64_t sent_bytes(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	uint64_t before = d->told_bytes;

	d->told_bytes = d->sent_bytes;
	return d->told_bytes - before;
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
	const struct gf_method_device *d = m->priv;

	return (struct gf_engine_totals){.sent_bytes = d->sent_bytes};
}

static uint64_t dense_bytes(const struct gf_method *m)
{
	return gf_device_engine_dense_bytes(m->device);
}

static double handling_s(const struct gf_method *m)
{
	(void)m;
	return 0;
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
