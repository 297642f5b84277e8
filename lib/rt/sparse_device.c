/* SPDX-License-Identifier: BSD-3-Clause */
#include "rt/sparse_device.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/heap.h"

/* Memory of one message within the whole. */
struct part {
	size_t first;         /* in grads and the residual */
	size_t returns, room; /* its entries of the returns */
};

struct gf_sparse_device {
	struct gf_sparse_device_config k;
	struct part *parts;
	struct gf_sparse_returns *returns; /* nmessages */
	size_t nreturns;                   /* of all messages */
	bool pinned;
	void *residual;
	void *sets; /* the device's, laid out as the host's */
	void *work; /* of one selection; they come one behind the other */
	/* indices of all messages, then values */
	void *host_returns, *device_returns;
	struct gf_gpu_stream *taking; /* where selections went last */
};

/* --- memory --------------------------------------------------------------- */

static void lay_out(struct gf_sparse_device *d)
{
	size_t i;

	for (i = 0; i < d->k.nmessages; i++) {
		struct gf_sparse_message *m = &d->k.messages[i];

		d->parts[i] = (struct part){
			.first = d->k.firsts[i],
			.returns = d->nreturns,
			.room = gf_sparse_returns_room(
				m, gf_sparse_k(d->k.density, m->count_elems)),
		};
		d->nreturns += d->parts[i].room;
	}
}

static void give_returns(struct gf_sparse_device *d)
{
	uint32_t *index = d->host_returns;
	float *value = index ? (float *)(void *)(index + d->nreturns) : NULL;
	size_t i;

	for (i = 0; i < d->k.nmessages; i++) {
		d->k.messages[i].returns = &d->returns[i];
		if (!d->parts[i].room)
			continue;
		d->returns[i].index = index + d->parts[i].returns;
		d->returns[i].value = value + d->parts[i].returns;
	}
}

static size_t most_elems(const struct gf_sparse_device *d)
{
	size_t most = 0, i;

	for (i = 0; i < d->k.nmessages; i++)
		if (d->k.messages[i].count_elems > most)
			most = d->k.messages[i].count_elems;
	return most;
}

static int allocate(struct gf_sparse_device *d, struct gf_error *err)
{
	struct gf_gpu *gpu = d->k.gpu;
	const struct gf_gpu_ops *ops = gpu->ops;
	const size_t bytes = d->k.count_elems * sizeof(float);
	const size_t returns_bytes =
		d->nreturns * (sizeof(uint32_t) + sizeof(float));
	int rc;

	rc = ops->alloc(gpu, bytes, &d->residual, err);
	rc = rc ? rc : ops->alloc(gpu, d->k.sets_bytes, &d->sets, err);
	rc = rc ? rc
		: ops->alloc(gpu, gpu->kernels->topk_work_bytes(most_elems(d)),
			     &d->work, err);
	if (!rc && returns_bytes)
		rc = ops->alloc(gpu, returns_bytes, &d->device_returns, err);
	if (!rc && returns_bytes)
		rc = ops->host_alloc(gpu, returns_bytes, &d->host_returns, err);
	rc = rc ? rc : ops->host_pin(gpu, d->k.sets, d->k.sets_bytes, err);
	d->pinned = !rc;
	/* before the first selection, on whichever stream */
	rc = rc ? rc : ops->zero(gpu, d->k.compute, d->residual, bytes, err);
	return rc ? rc : ops->stream_sync(gpu, d->k.compute, err);
}

int gf_sparse_device_new(const struct gf_sparse_device_config *config,
			 struct gf_sparse_device **device, struct gf_error *err)
{
	struct gf_sparse_device *d = gf_xcalloc(1, sizeof(*d));
	int rc;

	d->k = *config;
	d->parts = gf_xcalloc(config->nmessages + 1, sizeof(*d->parts));
	d->returns = gf_xcalloc(config->nmessages + 1, sizeof(*d->returns));
	lay_out(d);
	d->k.firsts = NULL;
	rc = allocate(d, err);
	if (rc) {
		gf_error_prefix(err, "selection");
		gf_sparse_device_free(d);
		return rc;
	}
	give_returns(d);
	*device = d;
	return 0;
}

void gf_sparse_device_free(struct gf_sparse_device *d)
{
	const struct gf_gpu_ops *ops;
	struct gf_error ignored;

	if (!d)
		return;
	ops = d->k.gpu->ops;
	if (d->taking)
		(void)ops->stream_sync(d->k.gpu, d->taking, &ignored);
	(void)ops->stream_sync(d->k.gpu, d->k.compute, &ignored);
	if (d->pinned)
		ops->host_unpin(d->k.gpu, d->k.sets);
	ops->host_free(d->k.gpu, d->host_returns);
	ops->free(d->k.gpu, d->device_returns);
	ops->free(d->k.gpu, d->work);
	ops->free(d->k.gpu, d->sets);
	ops->free(d->k.gpu, d->residual);
	free(d->returns);
	free(d->parts);
	free(d);
}

/* --- a step --------------------------------------------------------------- */

/* Where a message's sets lie on the device. */
static char *sets_of(const struct gf_sparse_device *d,
		     const struct gf_sparse_message *m)
{
	return (char *)d->sets + ((char *)m->sets - (char *)d->k.sets);
}

int gf_sparse_device_take(struct gf_sparse_device *d, size_t i,
			  struct gf_gpu_stream *s, struct gf_error *err)
{
	const struct gf_sparse_message *m = &d->k.messages[i];
	const struct gf_gpu_kernels *kernels = d->k.gpu->kernels;
	const size_t bytes = gf_sparse_set_bytes(m->k);
	const size_t at = gf_sparse_own_place(m, d->k.rank) * bytes;
	uint32_t *index = (uint32_t *)(void *)(sets_of(d, m) + at);
	struct gf_gpu_topk top = {
		.values = d->k.grads + d->parts[i].first,
		.add = (float *)d->residual + d->parts[i].first,
		.count = m->count_elems,
		.k = m->k,
		.index = index,
		.work = d->work,
	};

	d->taking = s;
	kernels->topk_f32(s, &top);
	kernels->take_f32(s, (float *)(void *)(index + m->k), top.values, index,
			  m->k);
	return d->k.gpu->ops->copy(d->k.gpu, s, (char *)m->sets + at, index,
				   bytes, GF_GPU_TO_HOST, err);
}

static int upload(struct gf_sparse_device *d, void *to, const void *from,
		  size_t size_bytes, struct gf_error *err)
{
	return d->k.gpu->ops->copy(d->k.gpu, d->k.compute, to, from, size_bytes,
				   GF_GPU_TO_DEVICE, err);
}

/* Lists may name an element more than once: they go one behind the other. */
static int add_returns(struct gf_sparse_device *d, size_t i,
		       struct gf_error *err)
{
	const struct gf_sparse_returns *r = &d->returns[i];
	const size_t count = r->nlists ? r->end[r->nlists - 1] : 0;
	uint32_t *index = (uint32_t *)d->device_returns + d->parts[i].returns;
	float *value =
		(float *)(void *)((uint32_t *)d->device_returns + d->nreturns) +
		d->parts[i].returns;
	size_t l, at = 0;
	int rc;

	if (!count)
		return 0;
	rc = upload(d, index, r->index, count * sizeof(*index), err);
	rc = rc ? rc : upload(d, value, r->value, count * sizeof(*value), err);
	for (l = 0; !rc && l < r->nlists; at = r->end[l++])
		if (r->end[l] > at)
			d->k.gpu->kernels->scatter_add_f32(
				d->k.compute, d->k.grads + d->parts[i].first,
				value + at, index + at, r->end[l] - at);
	return rc;
}

/* In the order of ranks, as everywhere. */
static int add_sets(struct gf_sparse_device *d, size_t i, struct gf_error *err)
{
	const struct gf_sparse_message *m = &d->k.messages[i];
	const size_t bytes = gf_sparse_set_bytes(m->k);
	const size_t n = gf_sparse_common(m);
	char *at = sets_of(d, m);
	int rc = upload(d, at, m->sets, n * bytes, err);
	size_t r;

	for (r = 0; !rc && r < n; r++, at += bytes) {
		uint32_t *index = (uint32_t *)(void *)at;

		d->k.gpu->kernels->scatter_add_f32(
			d->k.compute, d->k.grads + d->parts[i].first,
			(float *)(void *)(index + m->k), index, m->k);
	}
	return rc;
}

int gf_sparse_device_apply(struct gf_sparse_device *d, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	const size_t bytes = d->k.count_elems * sizeof(float);
	size_t i;
	int rc = 0;

	for (i = 0; i < d->k.nmessages && !rc; i++)
		rc = add_returns(d, i, err);
	rc = rc ? rc
		: ops->copy(d->k.gpu, d->k.compute, d->residual, d->k.grads,
			    bytes, GF_GPU_WITHIN, err);
	rc = rc ? rc
		: ops->zero(d->k.gpu, d->k.compute, d->k.grads, bytes, err);
	for (i = 0; i < d->k.nmessages && !rc; i++)
		rc = add_sets(d, i, err);
	return rc;
}

/* --- checkpoints ---------------------------------------------------------- */

static int copy(struct gf_sparse_device *d, void *to, const void *from,
		enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	int rc = ops->copy(d->k.gpu, d->k.compute, to, from,
			   d->k.count_elems * sizeof(float), kind, err);

	return rc ? rc : ops->stream_sync(d->k.gpu, d->k.compute, err);
}

int gf_sparse_device_fetch(struct gf_sparse_device *d, float *residual,
			   struct gf_error *err)
{
	return copy(d, residual, d->residual, GF_GPU_TO_HOST, err);
}

int gf_sparse_device_send(struct gf_sparse_device *d, const float *residual,
			  struct gf_error *err)
{
	return copy(d, d->residual, residual, GF_GPU_TO_DEVICE, err);
}
