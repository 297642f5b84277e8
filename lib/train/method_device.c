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
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "codec/codec.h"
#include "rt/sparse.h"
#include "train/device_flags.h"
#include "train/device_marks.h"
#include "train/device_update.h"
#include "train/method.h"

struct device {
	struct gf_device_update update;
	size_t *offsets, count_elems; /* of the plan's tensors */
	struct gf_device_flags flags; /* which gradients are bad */
	double scale[GF_FLAGS];
	size_t enqueued, learnt; /* steps of this process */
	size_t step;             /* the last one, over the whole run */
	struct gf_device_marks marks;
	struct gf_device_durations durations;
	bool has_durations;
	double begun_s[2]; /* the step before, and this one: the host */
	uint64_t step_bytes, step_dense_bytes;
	/* topk, gtopk: what was not sent; on the device, and as it was last
	 * fetched. NULL: all gradients go */
	void *residual;
	float *host_residual;
	uint64_t sent_bytes; /* so far */
	int rc;              /* of what gives nothing back: the first failure */
	struct gf_error reason;
};

/* What NCCL moves nobody tells: counted as a ring's. */
static void count_bytes(struct device *d, const struct gf_plan *plan)
{
	const double share = 2.0 * (plan->ranks - 1) / plan->ranks;
	size_t i;

	for (i = 0; i < plan->nmessages; i++) {
		size_t n = gf_plan_message_elems(plan, i);
		const struct gf_codec *codec =
			gf_codec_find(plan->messages[i].codec);

		d->step_bytes += (uint64_t)(share * (double)gf_codec_wire_bytes(
							    codec, n));
		d->step_dense_bytes +=
			(uint64_t)(share * (double)(n * sizeof(float)));
	}
}

/* --- selections -----------------------------------------------------------
 */

static int open_residual(struct gf_method *m, struct gf_error *err)
{
	struct device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	const size_t bytes = d->count_elems * sizeof(float);
	int rc;

	if (m->env.plan->selection.method == GF_SELECT_DENSE)
		return 0;
	d->host_residual = gf_xcalloc(d->count_elems, sizeof(float));
	rc = gpu->ops->alloc(gpu, bytes, &d->residual, err);
	if (rc)
		gf_error_prefix(err, "residual");
	return rc ? rc
		  : gpu->ops->zero(gpu, m->env.stream, d->residual, bytes, err);
}

/* Between steps. */
static int copy_residual(struct gf_method *m, enum gf_gpu_copy kind,
			 struct gf_error *err)
{
	const struct device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	const bool down = kind == GF_GPU_TO_HOST;
	int rc;

	if (!d->residual)
		return 0;
	rc = gpu->ops->copy(gpu, m->env.stream,
			    down ? d->host_residual : d->residual,
			    down ? d->residual : d->host_residual,
			    d->count_elems * sizeof(float), kind, err);
	return rc ? rc : gpu->ops->stream_sync(gpu, m->env.stream, err);
}

static void state(struct gf_method *m, struct gf_state *s)
{
	const struct device *d = m->priv;
	const struct gf_shape shape = {1, {d->count_elems}};

	if (d->residual)
		gf_state_add(s, GF_STATE_OWN, gf_xstrdup("sparse.residual"),
			     &shape, d->host_residual)
			->rule = GF_STATE_SUM;
}

/* Is this step's sum bad? Gradients become it, if not. */
static int conclude(struct gf_method *m, struct gf_error *err)
{
	struct device *d = m->priv;
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

/* --- opening and closing -------------------------------------------------- */

static int open_own(struct gf_method *m, struct gf_error *err)
{
	const struct gf_model_profile *model = m->env.plan->model;
	struct device *d = m->priv;
	size_t i;
	int rc;

	d->offsets = gf_xcalloc(model->ntensors + 1, sizeof(*d->offsets));
	for (i = 0; i < model->ntensors; i++)
		d->offsets[i + 1] =
			d->offsets[i] + model->tensors[i].count_elems;
	d->count_elems = d->offsets[model->ntensors];
	count_bytes(d, m->env.plan);
	m->updater = (struct gf_update){
		.params = m->env.params,
		.offsets = d->offsets,
		.plan = m->env.plan,
		.shapes = m->env.shapes,
	};
	rc = gf_update_open(&m->updater, m->env.optim, err);
	if (rc)
		return rc;
	d->update = (struct gf_device_update){
		.gpu = m->env.gpu,
		.stream = m->env.stream,
		.host = &m->updater.optimizer,
	};
	rc = gf_device_update_open(&d->update, err);
	d->marks = (struct gf_device_marks){.gpu = m->env.gpu,
					    .stream = m->env.stream};
	rc = rc ? rc : gf_device_marks_open(&d->marks, err);
	rc = rc ? rc : open_residual(m, err);
	d->flags = (struct gf_device_flags){.gpu = m->env.gpu,
					    .stream = m->env.stream};
	return rc ? rc : gf_device_flags_open(&d->flags, err);
}

static int open_device(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *k = &m->env;
	size_t i;
	int rc;

	m->priv = gf_xcalloc(1, sizeof(struct device));
	for (i = 0; i < k->plan->nmessages; i++)
		m->times[i] = (struct gf_message_times){NAN, NAN, NAN};
	rc = gf_comm_agree(k->comm, open_own(m, err), err);
	if (rc)
		return rc;
	return gf_device_engine_new(
		&(struct gf_device_engine_config){
			.comm = k->comm,
			.gpu = k->gpu,
			.compute = k->stream,
			.nccl = k->nccl,
			.plan = k->plan,
			.data = k->device_grads,
			.residual = ((struct device *)m->priv)->residual,
			.timeout_s = k->timeout_s,
		},
		&m->device, err);
}

static void close_device(struct gf_method *m)
{
	struct device *d = m->priv;
	const struct gf_gpu_ops *ops = m->env.gpu->ops;
	struct gf_error ignored;

	gf_device_engine_free(m->device);
	(void)ops->stream_sync(m->env.gpu, m->env.stream, &ignored);
	gf_device_update_close(&d->update);
	gf_update_close(&m->updater);
	gf_device_marks_close(&d->marks);
	gf_device_flags_close(&d->flags);
	ops->free(m->env.gpu, d->residual);
	free(d->host_residual);
	free(d->offsets);
	free(d);
}

/* --- a step --------------------------------------------------------------- */

static void keep_failure(struct device *d, int rc, const struct gf_error *err)
{
	if (d->rc || !rc)
		return;
	d->rc = rc;
	d->reason = *err;
}

static void mark(struct gf_method *m, enum gf_device_mark what)
{
	struct device *d = m->priv;
	struct gf_error err = {""};

	keep_failure(d, gf_device_mark(&d->marks, d->enqueued, what, &err),
		     &err);
}

/* What became of the step before, which the device is done with. */
static void learn(struct gf_method *m)
{
	struct device *d = m->priv;
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
	struct device *d = m->priv;
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
	struct device *d = m->priv;
	struct gf_error err = {""};
	size_t first = d->offsets[tensor];

	if (m->env.scale.used) {
		learn(m);
		multiply(m, m->env.device_grads + first,
			 d->offsets[tensor + 1] - first,
			 m->scale.now / m->env.plan->ranks);
	}
	if (!d->rc)
		keep_failure(d, gf_device_engine_ready(m->device, tensor, &err),
			     &err);
}

static void backward_end(struct gf_method *m)
{
	struct device *d = m->priv;
	struct gf_error err = {""};

	mark(m, GF_MARK_BACKWARD);
	if (d->rc <= 0)
		keep_failure(d, gf_device_engine_backward_end(m->device, &err),
			     &err);
}

/* Of the step before, which has ended: its own clock, set to the host's. */
static void take_times(struct gf_method *m)
{
	struct device *d = m->priv;
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

/* A run that is to end has told nobody of this step's messages, or of all: the
 * same on all ranks. */
static int exchange(struct gf_method *m, size_t step, struct gf_error *err)
{
	struct device *d = m->priv;
	struct gf_error own = {""};

	if (!d->rc) {
		keep_failure(d, gf_device_engine_join(m->device, &own), &own);
		if (!d->rc)
			learn(m);
	}
	if (d->rc) {
		*err = d->reason;
		return d->rc;
	}
	mark(m, GF_MARK_JOINED);
	take_times(m);
	d->step = step;
	if (d->residual)
		d->step_bytes = gf_device_engine_sent_bytes(m->device);
	d->sent_bytes += d->step_bytes;
	return conclude(m, err);
}

static void update(struct gf_method *m, size_t step, double lr)
{
	struct device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	struct gf_error err = {""};
	const double scale =
		m->env.scale.used ? 1 / m->scale.now : 1.0 / m->env.plan->ranks;
	int rc;

	(void)step;
	gf_device_update_step(&d->update, lr, (float)scale,
			      gf_device_flag(&d->flags, d->enqueued),
			      m->env.device_grads, m->env.device_params);
	mark(m, GF_MARK_UPDATED); /* before what learn waits for */
	rc = gf_device_flag_send(&d->flags, d->enqueued, &err);
	rc = rc ? rc : gpu->ops->check(gpu, &err);
	keep_failure(d, rc, &err);
	d->scale[d->enqueued % GF_FLAGS] = m->scale.now;
	d->enqueued++;
}

/* --- what is known of it -------------------------------------------------- */

static uint64_t sent_bytes(struct gf_method *m)
{
	return ((const struct device *)m->priv)->step_bytes;
}

static const struct gf_message_times *times(const struct gf_method *m)
{
	return m->times;
}

static const struct gf_device_durations *durations(const struct gf_method *m)
{
	const struct device *d = m->priv;

	return d->has_durations ? &d->durations : NULL;
}

static struct gf_engine_totals totals(const struct gf_method *m)
{
	const struct device *d = m->priv;

	return (struct gf_engine_totals){.sent_bytes = d->sent_bytes};
}

static uint64_t dense_bytes(const struct gf_method *m)
{
	return ((const struct device *)m->priv)->step_dense_bytes;
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

/* --- state ---------------------------------------------------------------- */

static int settle(struct gf_method *m, struct gf_error *err)
{
	struct device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	int rc;

	learn(m);
	if (d->rc) {
		*err = d->reason;
		return d->rc;
	}
	rc = gf_device_engine_sync(m->device, err);
	rc = rc ? rc
		: gpu->ops->copy(gpu, m->env.stream, m->env.params,
				 m->env.device_params,
				 d->count_elems * sizeof(float), GF_GPU_TO_HOST,
				 err);
	rc = rc ? rc : copy_residual(m, GF_GPU_TO_HOST, err);
	return rc ? rc : gf_device_update_fetch(&d->update, err);
}

/* The parameters are the net's to send. */
static int restore(struct gf_method *m, struct gf_error *err)
{
	struct device *d = m->priv;
	int rc = copy_residual(m, GF_GPU_TO_DEVICE, err);

	return rc ? rc : gf_device_update_send(&d->update, err);
}

const struct gf_method_ops gf_method_device = {
	.name = "device",
	.open = open_device,
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
	.state = state,
	.settle = settle,
	.restore = restore,
	.close = close_device,
};
