/* SPDX-License-Identifier: BSD-3-Clause */
#include "contest/device_parts.h"

#include <stdlib.h>

#include "base/heap.h"
#include "base/array.h"

/* --- memory --------------------------------------------------------------- */

static int copy(struct gf_contest_gpu *d, void *to, const void *from,
		size_t bytes, enum gf_gpu_copy kind, struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;
	int rc = g->ops->copy(g, d->stream, to, from, bytes, kind, err);

	return rc ? rc : g->ops->stream_sync(g, d->stream, err);
}

int gf_contest_gpu_load(struct gf_contest_gpu *d, const void *from,
			size_t bytes, struct gf_error *err)
{
	return copy(d, d->source, from, bytes, GF_GPU_TO_DEVICE, err);
}

int gf_contest_gpu_refill(struct gf_contest_gpu *d, size_t bytes,
			  struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;

	return g->ops->copy(g, d->stream, d->work, d->source, bytes,
			    GF_GPU_WITHIN, err);
}

int gf_contest_gpu_restore(struct gf_contest_gpu *d, size_t bytes,
			   struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;
	int rc = gf_contest_gpu_refill(d, bytes, err);

	return rc ? rc : g->ops->stream_sync(g, d->stream, err);
}

int gf_contest_gpu_down(struct gf_contest_gpu *d, void *to, size_t bytes,
			struct gf_error *err)
{
	return copy(d, to, d->work, bytes, GF_GPU_TO_HOST, err);
}

int gf_contest_gpu_up(struct gf_contest_gpu *d, const void *from, size_t bytes,
		      struct gf_error *err)
{
	return copy(d, d->work, from, bytes, GF_GPU_TO_DEVICE, err);
}

/* --- opening -------------------------------------------------------------- */

static int zeros(struct gf_contest_gpu *d, size_t bytes, void **p,
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

int gf_contest_gpu_reserve(struct gf_contest_gpu *d, size_t bytes,
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

static int open_memory(struct gf_contest_gpu *d, size_t bytes,
		       struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;
	int rc = g->ops->stream_new(g, true, &d->stream, err);

	if (rc == 0)
		rc = g->ops->event_new(g, true, &d->begun, err);
	if (rc == 0)
		rc = g->ops->event_new(g, true, &d->ended, err);
	rc = gf_comm_agree(d->comm, rc, err);
	return rc ? rc : gf_contest_gpu_reserve(d, bytes, err);
}

int gf_contest_gpu_engine(struct gf_contest_gpu *d, struct gf_nccl_tuning *told,
			  struct gf_engine **engine, struct gf_error *err)
{
	return gf_engine_new(
		&(struct gf_engine_config){
			.comm = d->comm,
			.pool = &d->layout,
			.lanes = d->lanes,
			.watch = d->device.watch,
			.place = {.nccl = d->device.nccl,
				  .gpu = d->device.gpu,
				  .stream = d->stream,
				  .told = told,
				  .graphs = true},
		},
		engine, err);
}

int gf_contest_gpu_open(const struct gf_contest_device *device,
			struct gf_comm *comm, int lanes, size_t bytes,
			struct gf_contest_gpu **bench, struct gf_error *err)
{
	struct gf_contest_gpu *d = gf_xcalloc(1, sizeof(*d));
	int rc;

	d->device = *device;
	d->comm = comm;
	d->layout.ntensors = 1;
	d->lanes = lanes;
	rc = open_memory(d, bytes, err);
	if (rc == 0 && device->nccl)
		rc = gf_contest_gpu_engine(d, NULL, &d->engine, err);
	if (rc)
		gf_contest_gpu_close(d);
	else
		*bench = d;
	return rc;
}

void gf_contest_gpu_close(struct gf_contest_gpu *d)
{
	struct gf_gpu *g;

	if (!d)
		return;
	g = d->device.gpu;
	while (d->ntold > 0)
		gf_engine_free(d->told[--d->ntold].engine);
	free(d->told);
	gf_engine_free(d->engine);
	g->ops->free(g, d->source);
	g->ops->free(g, d->work);
	g->ops->event_free(g, d->begun);
	g->ops->event_free(g, d->ended);
	g->ops->stream_free(g, d->stream);
	free(d);
}

/*
 * Engines whose NCCL is told how its all-reduce goes (doc/dialect.h). NCCL
 * refuses what it cannot do only in the first call (ncclGetAlgoInfo of its
 * src/enqueue.cc), so a message of one element is sent first.
 */
static int send_one(struct gf_contest_gpu *d, struct gf_engine *engine,
		    struct gf_error *err)
{
	const struct gf_burst_message one = {
		.way = {.algorithm = gf_algorithm_find("library")},
		.element = gf_element_number(GF_F32, GF_OP_SUM),
		.count_elems = 1,
	};
	struct gf_burst *burst = NULL;
	int rc = gf_burst_new(
		&(struct gf_burst_config){
			.comm = d->comm,
			.messages = &one,
			.nmessages = 1,
			.lanes = 1,
			.engine = engine,
		},
		&burst, err);

	rc = rc ? rc : gf_burst_send(burst, d->work, err);
	rc = rc ? rc : gf_engine_settle(engine, err);
	rc = gf_comm_agree(d->comm, rc, err);
	gf_burst_free(burst);
	return rc;
}

int gf_contest_gpu_told(struct gf_contest_gpu *d,
			const struct gf_tuning *tuning,
			struct gf_engine **engine, struct gf_error *err)
{
	struct gf_nccl_tuning told = {
		.algorithm = tuning->algorithm ? tuning->algorithm->name : NULL,
		.protocol = tuning->protocol ? tuning->protocol->name : NULL,
		.channels = tuning->channels,
	};
	struct gf_engine *made = NULL;
	size_t i;
	int rc;

	*engine = d->engine;
	if (!tuning->dialect)
		return 0;
	for (i = 0; i < d->ntold; i++)
		if (gf_tuning_same(&d->told[i].tuning, tuning)) {
			*engine = d->told[i].engine;
			return 0;
		}
	rc = gf_contest_gpu_engine(d, &told, &made, err);
	rc = rc ? rc : send_one(d, made, err);
	if (rc) {
		gf_engine_free(made);
		return rc;
	}
	*gf_array_push(&d->told, &d->ntold, &d->told_capacity) =
		(struct gf_contest_told_engine){*tuning, made};
	*engine = made;
	return 0;
}
