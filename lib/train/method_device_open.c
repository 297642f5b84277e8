/* SPDX-License-Identifier: BSD-3-Clause */
/* What a method on devices stands on, and what of it a checkpoint holds. */
#include "train/method_device.h"

#include <math.h>
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
	const struct gf_method_device *d = m->priv;
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

void gf_method_device_state(struct gf_method *m, struct gf_state *s)
{
	const struct gf_method_device *d = m->priv;
	const struct gf_shape shape = {1, {d->count_elems}};

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
	d->flags = (struct gf_device_flags){.gpu = m->env.gpu,
					    .stream = m->env.stream};
	return rc ? rc : gf_device_flags_open(&d->flags, err);
}

int gf_method_device_open(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_env *k = &m->env;
	size_t i;
	int rc;

	m->priv = gf_xcalloc(1, sizeof(struct gf_method_device));
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
			.residual =
				((struct gf_method_device *)m->priv)->residual,
			.timeout_s = k->timeout_s,
		},
		&m->device, err);
}

void gf_method_device_close(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
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

/* --- state ---------------------------------------------------------------- */

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
int gf_method_device_restore(struct gf_method *m, struct gf_error *err)
{
	struct gf_method_device *d = m->priv;
	int rc = copy_residual(m, GF_GPU_TO_DEVICE, err);

	return rc ? rc : gf_device_update_send(&d->update, err);
}
