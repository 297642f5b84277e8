/* SPDX-License-Identifier: BSD-3-Clause */
#include "contest/device_parts.h"

#include <stdlib.h>

#include "base/heap.h"

/* --- memory --------------------------------------------------------------- */

static int copy(struct gf_device_bench *d, void *to, const void *from,
		size_t bytes, enum gf_gpu_copy kind, struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;
	int rc = g->ops->copy(g, d->stream, to, from, bytes, kind, err);

	return rc ? rc : g->ops->stream_sync(g, d->stream, err);
}

int gf_device_bench_load(struct gf_device_bench *d, const void *from,
			 size_t bytes, struct gf_error *err)
{
	return copy(d, d->source, from, bytes, GF_GPU_TO_DEVICE, err);
}

int gf_device_bench_refill(struct gf_device_bench *d, size_t bytes,
			   struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;

	return g->ops->copy(g, d->stream, d->work, d->source, bytes,
			    GF_GPU_WITHIN, err);
}

int gf_device_bench_restore(struct gf_device_bench *d, size_t bytes,
			    struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;
	int rc = gf_device_bench_refill(d, bytes, err);

	return rc ? rc : g->ops->stream_sync(g, d->stream, err);
}

void *gf_device_bench_memory(struct gf_device_bench *d, struct gf_gpu **gpu,
			     struct gf_gpu_stream **stream)
{
	*gpu = d->device.gpu;
	*stream = d->stream;
	return d->work;
}

int gf_device_bench_down(struct gf_device_bench *d, void *to, size_t bytes,
			 struct gf_error *err)
{
	return copy(d, to, d->work, bytes, GF_GPU_TO_HOST, err);
}

int gf_device_bench_up(struct gf_device_bench *d, const void *from,
		       size_t bytes, struct gf_error *err)
{
	return copy(d, d->work, from, bytes, GF_GPU_TO_DEVICE, err);
}

/* --- opening -------------------------------------------------------------- */

int gf_device_bench_on_wait(void *comm, struct gf_error *err)
{
	struct gf_comm *c = comm;

	return c->on_wait ? c->on_wait(c->on_wait_ctx, err) : 0;
}

/* Kernels of all lanes shall fit on a GPU at once; with one lane NCCL has its
 * own way. */
static int blocks(int lanes)
{
	return lanes > 1 ? 64 / lanes + (64 < lanes) : 0;
}

static int open_lane(struct gf_device_bench *d, struct gf_device_lane *l,
		     struct gf_error *err)
{
	struct gf_comm *c = d->comm;
	unsigned char id[GF_NCCL_ID_BYTES] = {0};
	int rc = 0;

	if (c->rank == 0)
		rc = d->device.nccl->unique_id(id, err);
	rc = gf_comm_agree(c, rc, err);
	rc = rc ? rc : gf_comm_bcast(c, 0, id, sizeof(id), err);
	if (rc)
		return rc;
	*l = (struct gf_device_lane){
		.gpu = d->device.gpu,
		.nccl = d->device.nccl,
		.on_wait = gf_device_bench_on_wait,
		.on_wait_ctx = c,
	};
	rc = gf_device_lane_open(l, id, c->ranks, c->rank, blocks(d->nlanes),
				 err);
	rc = gf_comm_agree(c, rc, err);
	if (rc)
		return rc;
	return gf_comm_agree(c, gf_device_lane_meet(l, err), err);
}

static int zeros(struct gf_device_bench *d, size_t bytes, void **p,
		 struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;
	int rc;

	g->ops->free(g, *p);
	*p = NULL;
	rc = g->ops->alloc(g, bytes, p, err);
	if (rc == 0)
		rc = g->ops->zero(g, d->stream, *p, bytes, err);
	return rc ? rc : g->ops->stream_sync(g, d->stream, err);
}

int gf_device_bench_reserve(struct gf_device_bench *d, size_t bytes,
			    struct gf_error *err)
{
	int rc;

	if (bytes <= d->room_bytes)
		return 0;
	d->room_bytes = 0;
	rc = zeros(d, bytes, &d->source, err);
	if (rc == 0)
		rc = zeros(d, bytes, &d->work, err);
	rc = gf_comm_agree(d->comm, rc, err);
	if (rc == 0)
		d->room_bytes = bytes;
	return rc;
}

static int open_memory(struct gf_device_bench *d, size_t bytes,
		       struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;
	int rc = g->ops->stream_new(g, true, &d->stream, err);

	if (rc == 0)
		rc = g->ops->event_new(g, true, &d->begun, err);
	if (rc == 0)
		rc = g->ops->event_new(g, false, &d->loaded, err);
	if (rc == 0)
		rc = g->ops->event_new(g, true, &d->ended, err);
	rc = gf_comm_agree(d->comm, rc, err);
	return rc ? rc : gf_device_bench_reserve(d, bytes, err);
}

int gf_device_bench_open(const struct gf_bench_device *device,
			 struct gf_comm *comm, int lanes, size_t bytes,
			 struct gf_device_bench **bench, struct gf_error *err)
{
	struct gf_device_bench *d = gf_xcalloc(1, sizeof(*d));
	int i, rc;

	d->device = *device;
	d->comm = comm;
	d->nlanes = device->nccl ? lanes : 0;
	d->lanes = gf_xcalloc((size_t)d->nlanes + 1, sizeof(*d->lanes));
	rc = open_memory(d, bytes, err);
	for (i = 0; i < d->nlanes && rc == 0; i++)
		rc = open_lane(d, &d->lanes[i], err);
	if (rc) {
		d->failed = true;
		gf_device_bench_close(d);
		return rc;
	}
	*bench = d;
	return 0;
}

void gf_device_bench_close(struct gf_device_bench *d)
{
	struct gf_gpu *g;
	int i;

	if (!d)
		return;
	g = d->device.gpu;
	for (i = 0; i < d->nlanes; i++) {
		if (d->failed && d->lanes[i].all)
			gf_device_lane_abort(&d->lanes[i]);
		gf_device_lane_close(&d->lanes[i]);
	}
	g->ops->free(g, d->source);
	g->ops->free(g, d->work);
	g->ops->event_free(g, d->begun);
	g->ops->event_free(g, d->loaded);
	g->ops->event_free(g, d->ended);
	g->ops->stream_free(g, d->stream);
	free(d->lanes);
	free(d);
}
