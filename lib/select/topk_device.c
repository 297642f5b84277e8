/* SPDX-License-Identifier: BSD-3-Clause */
#include "select/topk_device.h"

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
	struct gf_sparse_device_slot *slots;
	size_t npinned; /* their sets */
	struct part *parts;
	struct gf_sparse_returns *returns; /* nmessages */
	size_t nreturns;                   /* of all messages */
	void *residual;
	/* What was not sent: the gradients where one step is under way at a
	 * time, else memory of its own (`left`). */
	void *left;
	void *sets; /* the device's, laid out as a slot's of the host */
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
		const struct gf_sparse_message *m = &d->slots[0].messages[i];

		d->parts[i] = (struct part){
			.first = d->k.firsts[i],
			.returns = d->nreturns,
			.room = gf_sparse_returns_room(
				m, gf_density_count(d->k.density, m->count_elems)),
		};
		d->nreturns += d->parts[i].room;
	}
}

static void give_returns(struct gf_sparse_device *d)
{
	uint32_t *index = d->host_returns;
	float *value = index ? (float *)(void *)(index + d->nreturns) : NULL;
	size_t i, slot;

	for (i = 0; i < d->k.nmessages; i++) {
		for (slot = 0; slot < d->k.depth; slot++)
			d->slots[slot].messages[i].returns = &d->returns[i];
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
		if (d->slots[0].messages[i].count_elems > most)
			most = d->slots[0].messages[i].count_elems;
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
	if (!rc && d->k.depth > 1)
		rc = ops->alloc(gpu, bytes, &d->left, err);
	rc = rc ? rc : ops->alloc(gpu, d->k.sets_bytes, &d->sets, err);
	rc = rc ? rc
		: ops->alloc(gpu, gpu->kernels->topk_work_bytes(most_elems(d)),
			     &d->work, err);
	if (!rc && returns_bytes)
		rc = ops->alloc(gpu, returns_bytes, &d->device_returns, err);
	if (!rc && returns_bytes)
		rc = ops->host_alloc(gpu, returns_bytes, &d->host_returns, err);
	for (; !rc && d->npinned < d->k.depth; d->npinned += !rc)
		rc = ops->host_pin(gpu, d->slots[d->npinned].sets,
				   d->k.sets_bytes, err);
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
	d->slots = gf_xmemdup(config->slots, config->depth * sizeof(*d->slots));
	d->k.slots = d->slots;
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
	while (d->npinned > 0)
		ops->host_unpin(d->k.gpu, d->slots[--d->npinned].sets);
	ops->host_free(d->k.gpu, d->host_returns);
	ops->free(d->k.gpu, d->device_returns);
	ops->free(d->k.gpu, d->work);
	ops->free(d->k.gpu, d->sets);
	ops->free(d->k.gpu, d->left);
	ops->free(d->k.gpu, d->residual);
	free(d->returns);
	free(d->parts);
	free(d->slots);
	free(d);
}

/* --- a step --------------------------------------------------------------- */

/* Where a message's sets lie on the device: slots use it one behind the other,
 * and nothing stays there. */
static char *sets_of(const struct gf_sparse_device *d, size_t slot, size_t i)
{
	const struct gf_sparse_device_slot *s = &d->slots[slot];

	return (char *)d->sets +
	       ((char *)s->messages[i].sets - (char *)s->sets);
}

static float *left(const struct gf_sparse_device *d)
{
	return d->left ? d->left : d->k.grads;
}

int gf_sparse_device_take(struct gf_sparse_device *d, size_t slot, size_t i,
			  struct gf_gpu_stream *s, struct gf_error *err)
{
	const struct gf_sparse_message *m = &d->slots[slot].messages[i];
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	const struct gf_gpu_kernels *kernels = d->k.gpu->kernels;
	const size_t bytes = gf_sparse_set_bytes(m->k);
	const size_t at = gf_sparse_own_place(m, d->k.rank) * bytes;
	uint32_t *index = (uint32_t *)(void *)(sets_of(d, slot, i) + at);
	struct gf_gpu_topk top = {
		.values = d->k.grads + d->parts[i].first,
		.add = (float *)d->residual + d->parts[i].first,
		.count = m->count_elems,
		.k = m->k,
		.index = index,
		.work = d->work,
	};
	int rc;

	d->taking = s;
	kernels->topk_f32(s, &top);
	kernels->take_f32(s, (float *)(void *)(index + m->k), top.values, index,
			  m->k);
	rc = ops->copy(d->k.gpu, s, (char *)m->sets + at, index, bytes,
		       GF_GPU_TO_HOST, err);
	if (!rc && d->left)
		rc = ops->copy(d->k.gpu, s, left(d) + d->parts[i].first,
			       top.values, m->count_elems * sizeof(float),
			       GF_GPU_WITHIN, err);
	return rc;
}

static int upload(struct gf_sparse_device *d, struct gf_gpu_stream *s, void *to,
		  const void *from, size_t size_bytes, struct gf_error *err)
{
	return d->k.gpu->ops->copy(d->k.gpu, s, to, from, size_bytes,
				   GF_GPU_TO_DEVICE, err);
}

/* Lists may name an element more than once: they go one behind the other. */
static int add_returns(struct gf_sparse_device *d, size_t i,
		       struct gf_gpu_stream *s, struct gf_error *err)
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
	rc = upload(d, s, index, r->index, count * sizeof(*index), err);
	rc = rc ? rc
		: upload(d, s, value, r->value, count * sizeof(*value), err);
	for (l = 0; !rc && l < r->nlists; at = r->end[l++])
		if (r->end[l] > at)
			d->k.gpu->kernels->scatter_add_f32(
				s, left(d) + d->parts[i].first, value + at,
				index + at, r->end[l] - at);
	return rc;
}

int gf_sparse_device_commit(struct gf_sparse_device *d, struct gf_gpu_stream *s,
			    struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < d->k.nmessages && !rc; i++)
		rc = add_returns(d, i, s, err);
	return rc ? rc
		  : d->k.gpu->ops->copy(d->k.gpu, s, d->residual, left(d),
					d->k.count_elems * sizeof(float),
					GF_GPU_WITHIN, err);
}

/* In the order of ranks, as everywhere. */
static int add_sets(struct gf_sparse_device *d, size_t slot, size_t i,
		    struct gf_error *err)
{
	const struct gf_sparse_message *m = &d->slots[slot].messages[i];
	const size_t bytes = gf_sparse_set_bytes(m->k);
	const size_t n = gf_sparse_common(m);
	char *at = sets_of(d, slot, i);
	int rc = upload(d, d->k.compute, at, m->sets, n * bytes, err);
	size_t r;

	for (r = 0; !rc && r < n; r++, at += bytes) {
		uint32_t *index = (uint32_t *)(void *)at;

		d->k.gpu->kernels->scatter_add_f32(
			d->k.compute, d->k.grads + d->parts[i].first,
			(float *)(void *)(index + m->k), index, m->k);
	}
	return rc;
}

int gf_sparse_device_apply(struct gf_sparse_device *d, size_t slot,
			   struct gf_error *err)
{
	size_t i;
	int rc = d->k.gpu->ops->zero(d->k.gpu, d->k.compute, d->k.grads,
				     d->k.count_elems * sizeof(float), err);

	for (i = 0; i < d->k.nmessages && !rc; i++)
		rc = add_sets(d, slot, i, err);
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
