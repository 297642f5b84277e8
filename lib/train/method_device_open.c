/* SPDX-License-Identifier: BSD-3-Clause */
/* What a method on devices stands on, and what of it a checkpoint holds. */
#include "train/method_device.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"

/* --- selections -----------------------------------------------------------
 */

static int open_residual(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	const size_t bytes = d->count_elems * sizeof(float);
	int rc;

	if (!gf_selection_has(&m->env.plan->selection, GF_SELECT_NCCL))
		return gf_error_set(err, -ENOTSUP,
				    "selection \"%s\" goes by the host",
				    gf_selection_name(&m->env.plan->selection));
	if (!gf_selection_has(&m->env.plan->selection, GF_SELECT_SETS))
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
	const struct gf_method_device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	const bool down = kind == GF_GPU_TO_HOST;
	int rc;

	if (d->csc)
		return down ? gf_csc_nccl_fetch(d->csc->nccl, err)
			    : gf_method_csc_send(m, err);
	if (!d->residual)
		return 0;
	rc = gpu->ops->copy(gpu, m->env.stream,
			    down ? d->host_residual : d->residual,
			    down ? d->residual : d->host_residual,
			    d->count_elems * sizeof(float), kind, err);
	return rc ? rc : gpu->ops->stream_sync(gpu, m->env.stream, err);
}

void gf_method_device_state(struct gf_method *m, struct gf_state *s)
{
	const struct gf_method_device *d = m->priv;
	const struct gf_shape shape = {1, {d->count_elems}};

	if (m->flight)
		gf_method_flight_state(m, s);
	if (d->csc)
		gf_method_csc_state(m, s);
	if (d->residual)
		gf_state_add(s, GF_STATE_OWN, gf_xstrdup("sparse.residual"),
			     &shape, d->host_residual)
			->rule = GF_STATE_SUM;
}

/* --- opening and closing -------------------------------------------------- */

static int open_own(struct gf_method *m, struct gf_error *err)
{
	const struct gf_model_profile *model = m->env.plan->model;
	struct gf_method_device *d = m->priv;
	size_t i;
	int rc;

	d->offsets = gf_xcalloc(model->ntensors + 1, sizeof(*d->offsets));
	for (i = 0; i < model->ntensors; i++)
		d->offsets[i + 1] =
			d->offsets[i] + model->tensors[i].count_elems;
	d->count_elems = d->offsets[model->ntensors];
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
	rc = rc ? rc : gf_method_csc_open(m, err);
	rc = rc ? rc : gf_method_device_open_lists(m, err);
	d->flags = (struct gf_device_flags){.gpu = m->env.gpu,
					    .count = gf_method_depth(m) + 1};
	rc = rc ? rc : gf_device_flags_open(&d->flags, err);
	d->slots = gf_xcalloc(gf_method_depth(m), sizeof(*d->slots));
	return rc ? rc : gf_method_flight_open(m, err);
}

int gf_method_device_open(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *k = &m->env;
	struct gf_method_device *d = gf_xcalloc(1, sizeof(*d));
	int rc;

	m->priv = d;
	rc = gf_comm_agree(k->comm, open_own(m, err), err);
	if (rc)
		return rc;
	rc = gf_engine_new(
		&(struct gf_engine_config){
			.comm = k->comm,
			.plan = k->plan,
			.pool = &d->pools[0],
			.timeout_s = k->timeout_s,
			.depth = gf_method_depth(m),
			.hooks = gf_method_device_hooks(m),
			.nccl = k->nccl,
			.gpu = k->gpu,
			.compute = k->stream,
			.memory = k->device_grads,
			.memory_bytes =
				((gf_method_depth(m) - 1) * k->device_stride +
				 d->count_elems) *
				sizeof(float),
		},
		&m->engine, err);
	return rc ? rc : gf_method_device_expect(m, err);
}

void gf_method_device_close(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	const struct gf_gpu_ops *ops = m->env.gpu->ops;
	struct gf_error ignored;

	gf_engine_free(m->engine);
	(void)ops->stream_sync(m->env.gpu, m->env.stream, &ignored);
	gf_method_device_close_lists(m);
	gf_method_csc_close(m);
	gf_device_update_close(&d->update);
	gf_update_close(&m->updater);
	gf_device_marks_close(&d->marks);
	gf_device_flags_close(&d->flags);
	ops->free(m->env.gpu, d->residual);
	free(d->host_residual);
	free(d->slots);
	free(d->offsets);
	free(d);
}

/* --- state ---------------------------------------------------------------- */

/* Values on the host times a power of two, as exact as the host's own. */
static void multiply(float *values, size_t count, double by)
{
	size_t i;

	for (i = 0; i < count; i++)
		values[i] *= (float)by;
}

/* Gradients in flight, one after another: they lie in a checkpoint as on the
 * host, divided by their scale. */
static int copy_flight(struct gf_method *m, size_t age, enum gf_gpu_copy kind,
		       struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	float *kept = m->flight + age * d->count_elems;
	float *grads = gf_method_device_grads(m, m->applied + age);
	const bool down = kind == GF_GPU_TO_HOST;
	const double scale =
		m->env.scale.used
			? gf_method_device_slot(m, m->applied + age)->scale
			: 1;
	int rc;

	if (!down)
		multiply(kept, d->count_elems, scale);
	rc = gpu->ops->copy(gpu, m->env.stream, down ? kept : grads,
			    down ? grads : kept, d->count_elems * sizeof(float),
			    kind, err);
	rc = rc ? rc : gpu->ops->stream_sync(gpu, m->env.stream, err);
	multiply(kept, d->count_elems, 1 / scale);
	return rc;
}

static int keep_flight(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	uint32_t *flags = gf_xcalloc(d->flags.count, sizeof(*flags));
	float *values;
	size_t age;
	int rc = gf_device_flags_copy(&d->flags, m->env.stream, flags,
				      GF_GPU_TO_HOST, err);

	for (age = 0; !rc && age + 1 < gf_method_depth(m); age++) {
		values = gf_method_flight_keep(m, age);
		if (age >= m->nflight)
			continue;
		m->flight_bad[age] =
			flags[(m->applied + age) % d->flags.count] != 0;
		m->flight_scale[age] =
			gf_method_device_slot(m, m->applied + age)->scale;
		rc = d->csc ? gf_method_csc_keep(m, age, values, err)
			    : copy_flight(m, age, GF_GPU_TO_HOST, err);
	}
	free(flags);
	return rc;
}

static int restore_flight(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	uint32_t *flags = gf_xcalloc(d->flags.count, sizeof(*flags));
	size_t age;
	int rc = gf_method_flight_restore(m, err);

	d->learnt = 0;
	for (age = 0; !rc && age < m->nflight; age++) {
		flags[age] = m->flight_bad[age] != 0;
		gf_method_device_slot(m, age)->scale = m->flight_scale[age];
		rc = d->csc ? gf_method_csc_restore(m, age, err)
			    : copy_flight(m, age, GF_GPU_TO_DEVICE, err);
	}
	rc = rc ? rc
		: gf_device_flags_copy(&d->flags, m->env.stream, flags,
				       GF_GPU_TO_DEVICE, err);
	free(flags);
	return rc;
}

int gf_method_device_settle(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	struct gf_gpu *gpu = m->env.gpu;
	int rc;

	gf_method_device_learn(m);
	if (d->rc) {
		*err = d->reason;
		return d->rc;
	}
	rc = gf_engine_settle(m->engine, err);
	rc = rc ? rc
		: gpu->ops->copy(gpu, m->env.stream, m->env.params,
				 m->env.device_params,
				 d->count_elems * sizeof(float), GF_GPU_TO_HOST,
				 err);
	rc = rc ? rc : copy_residual(m, GF_GPU_TO_HOST, err);
	rc = rc ? rc : gf_device_update_fetch(&d->update, err);
	return rc || !m->flight ? rc : keep_flight(m, err);
}

/* The parameters are the net's to send. */
int gf_method_device_restore(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	int rc = copy_residual(m, GF_GPU_TO_DEVICE, err);

	rc = rc ? rc : gf_device_update_send(&d->update, err);
	return rc || !m->flight ? rc : restore_flight(m, err);
}
