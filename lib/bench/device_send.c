/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/device_send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "comm/backoff.h"
#include "comm/device_lane.h"

struct gf_device_bench {
	struct gf_bench_device device;
	struct gf_comm *comm;
	struct gf_gpu_stream *stream;
	struct gf_gpu_event *begun, *loaded, *ended;
	void *source, *work;
	size_t room_bytes; /* in each */
	struct gf_device_lane *lanes;
	int nlanes;
	bool failed; /* lanes were given up */
};

struct message {
	struct gf_device_program program;
	float *data;
	int lane;
	bool simultaneous;
	struct gf_gpu_event *ended;
};

struct gf_device_send {
	struct gf_device_bench *d;
	struct message *messages;
	size_t n, bytes;
};

/* --- memory --------------------------------------------------------------- */

static const struct gf_gpu_ops *ops_of(const struct gf_device_bench *d)
{
	return d->device.gpu->ops;
}

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

int gf_device_bench_restore(struct gf_device_bench *d, size_t bytes,
			    struct gf_error *err)
{
	return copy(d, d->work, d->source, bytes, GF_GPU_WITHIN, err);
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

static int on_wait(void *ctx, struct gf_error *err)
{
	struct gf_comm *c = ctx;

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
		.on_wait = on_wait,
		.on_wait_ctx = c,
	};
	rc = gf_device_lane_open(l, id, c->ranks, c->rank, blocks(d->nlanes),
				 err);
	return gf_comm_agree(c, rc, err);
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

/* --- messages ------------------------------------------------------------- */

static int check_element(const struct gf_element *e, struct gf_error *err)
{
	if (e->dtype == GF_F32 && e->op == GF_OP_SUM)
		return 0;
	return gf_error_set(err, -ENOTSUP,
			    "between GPUs this build adds f32, got %s of %s",
			    gf_op_names[e->op], gf_dtype_names[e->dtype]);
}

static int make_program(const struct gf_burst_message *m,
			const struct gf_comm *comm, struct gf_device_program *p,
			struct gf_error *err)
{
	struct gf_coll_args args = gf_way_args(&m->way, comm->ranks);
	int rc = check_element(&m->element, err);

	args.count_elems = m->count_elems;
	args.elem_bytes = sizeof(float);
	if (rc == 0 && m->way.density > 0)
		rc = gf_error_set(
			err, -ENOTSUP,
			"%s: between GPUs this build sends all values",
			m->way.algorithm->name);
	if (rc == 0)
		rc = gf_device_program_new(m->way.algorithm, &args, comm->rank,
					   m->element.codec, p, err);
	return rc;
}

int gf_device_send_check(const struct gf_burst_message *m,
			 const struct gf_comm *comm, struct gf_error *err)
{
	struct gf_device_program p = {0};
	int rc = make_program(m, comm, &p, err);

	if (rc == 0)
		gf_device_program_release(&p);
	return rc;
}

static int make_message(struct gf_device_send *s, size_t i, int lanes,
			const struct gf_burst_message *from,
			struct gf_error *err)
{
	struct gf_device_bench *d = s->d;
	struct message *m = &s->messages[i];
	int rc = make_program(from, d->comm, &m->program, err);

	m->data = (float *)d->work + s->bytes / sizeof(float);
	m->simultaneous = from->simultaneous;
	m->lane = from->simultaneous ? (int)(i % (size_t)lanes) : 0;
	s->bytes += from->count_elems * sizeof(float);
	if (rc == 0)
		rc = ops_of(d)->event_new(d->device.gpu, true, &m->ended, err);
	return gf_comm_agree(d->comm, rc, err);
}

int gf_device_send_new(struct gf_device_bench *d,
		       const struct gf_burst_message *messages, size_t n,
		       int lanes, struct gf_device_send **send,
		       struct gf_error *err)
{
	struct gf_device_send *s = gf_xcalloc(1, sizeof(*s));
	size_t i;
	int rc = 0, l;

	s->d = d;
	s->n = n;
	s->messages = gf_xcalloc(n + 1, sizeof(*s->messages));
	if (lanes > d->nlanes)
		lanes = d->nlanes;
	for (i = 0; i < n && rc == 0; i++)
		rc = make_message(s, i, lanes, &messages[i], err);
	for (i = 0; i < n && rc == 0; i++)
		rc = gf_comm_agree(
			d->comm,
			gf_device_lane_prepare(&d->lanes[s->messages[i].lane],
					       &s->messages[i].program, err),
			err);
	for (l = 0; l < d->nlanes && rc == 0; l++)
		rc = gf_comm_agree(d->comm,
				   gf_device_lane_reserve(&d->lanes[l], err),
				   err);
	if (rc)
		gf_device_send_free(s);
	else
		*send = s;
	return rc;
}

void gf_device_send_free(struct gf_device_send *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->n; i++) {
		gf_device_program_release(&s->messages[i].program);
		ops_of(s->d)->event_free(s->d->device.gpu,
					 s->messages[i].ended);
	}
	free(s->messages);
	free(s);
}

/* What goes alone waits for everything before it, and everything after it
 * waits for that; the stream of a lane orders the rest. */
static int wait_for_turn(struct gf_device_send *s, size_t i,
			 struct gf_error *err)
{
	struct gf_gpu *g = s->d->device.gpu;
	struct gf_gpu_stream *stream = s->d->lanes[s->messages[i].lane].stream;
	size_t k;
	int rc = 0;

	for (k = 0; k < i && rc == 0; k++)
		if (!s->messages[i].simultaneous ||
		    !s->messages[k].simultaneous)
			rc = g->ops->wait(g, stream, s->messages[k].ended, err);
	return rc;
}

static int enqueue(struct gf_device_send *s, struct gf_error *err)
{
	struct gf_device_bench *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	size_t i;
	int l, rc = 0;

	for (l = 0; l < d->nlanes && rc == 0; l++)
		rc = g->ops->wait(g, d->lanes[l].stream, d->loaded, err);
	for (i = 0; i < s->n && rc == 0; i++) {
		struct message *m = &s->messages[i];
		struct gf_device_lane *lane = &d->lanes[m->lane];

		rc = wait_for_turn(s, i, err);
		if (rc == 0)
			rc = gf_device_lane_run(lane, &m->program, m->data,
						err);
		if (rc == 0)
			rc = g->ops->record(g, m->ended, lane->stream, err);
		if (rc == 0)
			rc = g->ops->wait(g, d->stream, m->ended, err);
	}
	return rc ? rc : g->ops->record(g, d->ended, d->stream, err);
}

static int finish(struct gf_device_bench *d, struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;
	struct gf_backoff backoff = {0};
	int rc, l;

	d->comm->waits++;
	while ((rc = g->ops->query(g, d->ended, err)) == 0) {
		for (l = 0; l < d->nlanes && rc == 0; l++)
			rc = gf_device_lane_check(&d->lanes[l], err);
		if (rc == 0)
			rc = on_wait(d->comm, err);
		if (rc)
			return rc;
		gf_backoff_wait(&backoff);
	}
	return rc < 0 ? rc : 0;
}

int gf_device_send_run(struct gf_device_send *s, bool refill, double *time_s,
		       struct gf_error *err)
{
	struct gf_device_bench *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	int rc = g->ops->record(g, d->begun, d->stream, err), l;

	if (rc == 0 && refill)
		rc = g->ops->copy(g, d->stream, d->work, d->source, s->bytes,
				  GF_GPU_WITHIN, err);
	if (rc == 0)
		rc = g->ops->record(g, d->loaded, d->stream, err);
	if (rc == 0)
		rc = enqueue(s, err);
	if (rc == 0)
		rc = finish(d, err);
	if (rc == 0)
		rc = g->ops->event_s(g, d->begun, d->ended, time_s, err);
	for (l = 0; l < d->nlanes && rc && !d->failed; l++)
		gf_device_lane_abort(&d->lanes[l]);
	d->failed |= rc != 0;
	return rc;
}

size_t gf_device_send_wire_bytes(const struct gf_device_send *s)
{
	size_t bytes = 0, i;

	for (i = 0; i < s->n; i++)
		bytes += gf_device_program_sent(&s->messages[i].program);
	return bytes;
}
