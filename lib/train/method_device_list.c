/* SPDX-License-Identifier: BSD-3-Clause */
/* What a step sends between GPUs: its list of messages, and what is done for
 * each of them on the way. */
#include <stdlib.h>

#include "base/heap.h"
#include "doc/select_topk.h"
#include "train/method_device.h"

/* --- hooks ---------------------------------------------------------------- */

static int prepare(void *method, size_t slot, size_t message,
		   struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_method *m = method;
	const struct gf_method_device *d = m->priv;
	const struct gf_pool *pool = &d->pools[slot];
	const size_t first = m->env.plan->messages[message].first;
	const size_t last = m->env.plan->messages[message].last;

	return gf_sparse_nccl_prepare(
		d->sparse[message], pool->data + pool->offsets[first],
		gf_density_count(d->density,
			      pool->offsets[last + 1] - pool->offsets[first]),
		q, err);
}

static int finish(void *method, size_t slot, size_t message,
		  struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_method *m = method;
	const struct gf_method_device *d = m->priv;

	(void)slot;
	return gf_sparse_nccl_finish(d->sparse[message], q, err);
}

static int prepare_chunks(void *method, size_t slot, size_t message,
			  struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_method *m = method;
	const struct gf_method_device *d = m->priv;

	(void)slot;
	return gf_csc_nccl_prepare(d->csc->nccl, message, q, err);
}

static int finish_chunks(void *method, size_t slot, size_t message,
			 struct gf_gpu_stream *q, struct gf_error *err)
{
	const struct gf_method *m = method;
	const struct gf_method_device *d = m->priv;

	(void)slot;
	return gf_csc_nccl_finish(d->csc->nccl, message, q, err);
}

static int end_sparse(struct gf_method *m, struct gf_gpu_stream *q,
		      uint32_t *flag, struct gf_error *err)
{
	const struct gf_method_device *d = m->priv;
	size_t i;
	int rc = 0;

	for (i = 0; i < m->env.plan->nmessages; i++)
		gf_sparse_nccl_look(d->sparse[i], q, flag);
	for (i = 0; i < m->env.plan->nmessages && !rc; i++)
		rc = gf_sparse_nccl_apply(d->sparse[i], q, flag, err);
	return rc;
}

/* Is this step's sum bad? Gradients become it, if not. */
static int end(void *method, size_t slot, struct gf_gpu_stream *q,
	       struct gf_error *err)
{
	struct gf_method *m = method;
	struct gf_method_device *d = m->priv;
	const size_t index = (size_t)d->ended++ + m->restored;
	int rc;

	if (!d->sparse && !d->csc)
		return gf_device_flag_set(&d->flags, q, index,
					  gf_method_device_grads(m, index),
					  d->count_elems, err);
	rc = gf_device_flag_clear(&d->flags, q, index, err);
	if (rc)
		return rc;
	if (d->csc)
		return gf_csc_nccl_end(d->csc->nccl, slot, q,
				       gf_device_flag(&d->flags, index), err);
	return end_sparse(m, q, gf_device_flag(&d->flags, index), err);
}

struct gf_engine_hooks gf_method_device_hooks(struct gf_method *m)
{
	const struct gf_method_device *d = m->priv;
	struct gf_engine_hooks hooks = {.end = end, .ctx = m};

	if (d->sparse) {
		hooks.prepare = prepare;
		hooks.finish = finish;
	} else if (d->csc) {
		hooks.prepare = prepare_chunks;
		hooks.finish = finish_chunks;
	}
	hooks.serial = d->sparse || d->csc;
	return hooks;
}

/* --- lists ---------------------------------------------------------------- */

static int open_sparse(struct gf_method *m, size_t i, struct gf_error *err)
{
	const struct gf_plan *plan = m->env.plan;
	const struct gf_topk_params *params = gf_topk_params(&plan->selection);
	struct gf_method_device *d = m->priv;
	const size_t first = d->offsets[plan->messages[i].first];
	const size_t count = d->offsets[plan->messages[i].last + 1] - first;
	const struct gf_sparse_nccl_config config = {
		.gpu = m->env.gpu,
		.residual = (float *)d->residual + first,
		.count_elems = count,
		.merges = gf_topk_merges(&plan->selection),
		.putback = params->putback,
		.ranks = plan->ranks,
		.rank = m->env.comm->rank,
		.most_k =
			gf_density_count(gf_topk_greatest_density(params), count),
	};
	int rc = gf_sparse_nccl_new(&config, &d->sparse[i], err);

	if (rc)
		gf_error_prefix(err, "message %zu", i);
	return rc;
}

int gf_method_device_open_lists(struct gf_method *m, struct gf_error *err)
{
	const struct gf_plan *plan = m->env.plan;
	struct gf_method_device *d = m->priv;
	const size_t depth = gf_method_depth(m), n = plan->nmessages;
	size_t slot, i;
	int rc = 0;

	d->pools = gf_xcalloc(depth, sizeof(*d->pools));
	d->lists = gf_xcalloc(depth * n + 1, sizeof(*d->lists));
	if (d->residual)
		d->sparse = gf_xcalloc(n + 1, sizeof(struct gf_sparse_nccl *));
	for (i = 0; i < n && d->sparse && !rc; i++)
		rc = open_sparse(m, i, err);
	for (slot = 0; slot < depth && !rc; slot++) {
		d->pools[slot] = (struct gf_pool){
			.data = m->env.device_grads +
				slot * m->env.device_stride,
			.offsets = d->offsets,
			.count_elems = d->count_elems,
			.ntensors = plan->model->ntensors,
		};
		gf_work_of_plan(plan, &d->pools[slot], d->lists + slot * n);
		for (i = 0; i < n && d->sparse; i++)
			gf_sparse_nccl_work(d->sparse[i],
					    &d->lists[slot * n + i]);
	}
	return rc;
}

void gf_method_device_close_lists(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	size_t i;

	for (i = 0; d->sparse && i < m->env.plan->nmessages; i++)
		gf_sparse_nccl_free(d->sparse[i]);
	free(d->sparse);
	free(d->pools);
	free(d->lists);
}

int gf_method_device_expect(struct gf_method *m, struct gf_error *err)
{
	const struct gf_method_device *d = m->priv;

	if (d->csc)
		return gf_method_csc_expect(m, NULL, err);
	return gf_engine_expect(m->engine, d->lists, m->env.plan->nmessages,
				err);
}

void gf_method_device_list(struct gf_method *m)
{
	struct gf_method_device *d = m->priv;
	const size_t slot = gf_method_slot(m, m->begun - 1);
	const size_t n = m->env.plan->nmessages;

	if (d->listed == m->begun)
		return;
	d->listed = m->begun;
	if (d->csc)
		gf_method_csc_begin(m, slot);
	else
		gf_engine_list(m->engine, d->lists + slot * n, n);
}
