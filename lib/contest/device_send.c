/* SPDX-License-Identifier: BSD-3-Clause */
#include "contest/device_send.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "contest/device_parts.h"
#include "comm/backoff.h"
#include "select/sets_gpu.h"

struct message {
	const struct gf_device_program *program; /* own, or of sparse */
	struct gf_device_program own;
	/* With a density: its k largest values go, on top of a residual of
	 * zeros, which a word that is never 0 keeps so. */
	struct gf_sparse_gpu *sparse;
	void *residual, *never;
	size_t k, count_elems;
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

static const struct gf_gpu_ops *ops_of(const struct gf_device_bench *d)
{
	return d->device.gpu->ops;
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
	if (rc == 0 && m->way.density > 0 && m->element.codec)
		rc = gf_error_set(
			err, -EINVAL, "%s: want values as they are, got %s",
			m->way.algorithm->name, m->element.codec->name);
	if (rc == 0 && !(m->way.density > 0))
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

/* Room for n messages, one after the other in the memory. */
static struct gf_device_send *new_send(struct gf_device_bench *d, size_t n)
{
	struct gf_device_send *s = gf_xcalloc(1, sizeof(*s));

	s->d = d;
	s->n = n;
	s->messages = gf_xcalloc(n + 1, sizeof(*s->messages));
	return s;
}

/* Message i, as far as a selection goes; it has its place. */
static int select_from(struct gf_device_send *s, size_t i,
		       const struct gf_way *way, struct gf_error *err)
{
	static const uint32_t one = 1;
	struct gf_device_bench *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	struct message *m = &s->messages[i];
	const size_t bytes = m->count_elems * sizeof(float);
	int rc = g->ops->alloc(g, bytes, &m->residual, err);

	m->k = gf_density_count(way->density, m->count_elems);
	rc = rc ? rc : g->ops->alloc(g, sizeof(one), &m->never, err);
	rc = rc ? rc : g->ops->zero(g, d->stream, m->residual, bytes, err);
	rc = rc ? rc
		: g->ops->copy(g, d->stream, m->never, &one, sizeof(one),
			       GF_GPU_TO_DEVICE, err);
	rc = rc ? rc : g->ops->stream_sync(g, d->stream, err);
	if (rc)
		return rc;
	rc = gf_sparse_gpu_new(
		&(struct gf_sparse_gpu_config){
			.gpu = g,
			.residual = m->residual,
			.count_elems = m->count_elems,
			.merges = way->algorithm == gf_sparse_find("gtopk"),
			.ranks = d->comm->ranks,
			.rank = d->comm->rank,
			.most_k = m->k,
		},
		&m->sparse, err);
	if (rc == 0)
		m->program = gf_sparse_gpu_program(m->sparse);
	return rc;
}

/* The next of them. */
static int place(struct gf_device_send *s, size_t i, int lane,
		 bool simultaneous, struct gf_error *err)
{
	struct gf_device_bench *d = s->d;
	struct message *m = &s->messages[i];

	m->data = (float *)d->work + s->bytes / sizeof(float);
	m->program = &m->own;
	m->simultaneous = simultaneous;
	m->lane = lane;
	s->bytes += m->count_elems * sizeof(float);
	return ops_of(d)->event_new(d->device.gpu, true, &m->ended, err);
}

/* Communicators and memory of its programs. Frees it if that fails. */
static int prepare(struct gf_device_send *s, int rc,
		   struct gf_device_send **send, struct gf_error *err)
{
	struct gf_device_bench *d = s->d;
	size_t i;
	int l;

	for (i = 0; i < s->n && rc == 0; i++)
		rc = gf_comm_agree(
			d->comm,
			gf_device_lane_prepare(&d->lanes[s->messages[i].lane],
					       s->messages[i].program, err),
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

int gf_device_send_new(struct gf_device_bench *d,
		       const struct gf_burst_message *messages, size_t n,
		       int lanes, struct gf_device_send **send,
		       struct gf_error *err)
{
	struct gf_device_send *s = new_send(d, n);
	size_t i;
	int rc = 0;

	if (lanes > d->nlanes)
		lanes = d->nlanes;
	for (i = 0; i < n && rc == 0; i++) {
		const struct gf_burst_message *m = &messages[i];

		s->messages[i].count_elems = m->count_elems;
		rc = make_program(m, d->comm, &s->messages[i].own, err);
		if (rc == 0)
			rc = place(s, i,
				   m->simultaneous ? (int)(i % (size_t)lanes)
						   : 0,
				   m->simultaneous, err);
		if (rc == 0 && m->way.density > 0)
			rc = select_from(s, i, &m->way, err);
		rc = gf_comm_agree(d->comm, rc, err);
	}
	return prepare(s, rc, send, err);
}

int gf_device_send_steps(struct gf_device_bench *d,
			 const struct gf_schedule *schedule, int n,
			 struct gf_device_send **send, struct gf_error *err)
{
	struct gf_device_send *s = new_send(d, (size_t)n);
	int i, rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		s->messages[i].count_elems = schedule->count_elems;
		gf_device_program_of(schedule, NULL, &s->messages[i].own);
		rc = place(s, (size_t)i, i % d->nlanes, n > 1, err);
	}
	return prepare(s, gf_comm_agree(d->comm, rc, err), send, err);
}

void gf_device_send_free(struct gf_device_send *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->n; i++) {
		struct message *m = &s->messages[i];
		struct gf_gpu *g = s->d->device.gpu;

		gf_sparse_gpu_free(m->sparse);
		g->ops->free(g, m->residual);
		g->ops->free(g, m->never);
		gf_device_program_release(&m->own);
		g->ops->event_free(g, m->ended);
	}
	free(s->messages);
	free(s);
}

/* A message that goes alone waits for all messages before it, and all later
 * messages wait for it. The stream of a lane orders the rest. */
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

/* Sets, too, end as sums where the values were. */
static int send_one(struct gf_device_bench *d, struct message *m,
		    struct gf_error *err)
{
	struct gf_device_lane *lane = &d->lanes[m->lane];
	int rc;

	if (!m->sparse)
		return gf_device_lane_run(lane, m->program, m->data, err);
	rc = gf_sparse_gpu_run(m->sparse, lane, m->data, m->k, err);
	return rc ? rc
		  : gf_sparse_gpu_apply(m->sparse, lane->stream, m->never, err);
}

/* After the event. */
static int enqueue(struct gf_device_send *s, struct gf_gpu_event *after,
		   struct gf_error *err)
{
	struct gf_device_bench *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	size_t i;
	int l, rc = 0;

	for (l = 0; l < d->nlanes && rc == 0; l++)
		rc = g->ops->wait(g, d->lanes[l].stream, after, err);
	for (i = 0; i < s->n && rc == 0; i++) {
		struct message *m = &s->messages[i];
		struct gf_device_lane *lane = &d->lanes[m->lane];

		rc = wait_for_turn(s, i, err);
		if (rc == 0)
			rc = send_one(d, m, err);
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
			rc = gf_device_bench_on_wait(d->comm, err);
		if (rc)
			return rc;
		gf_backoff_wait(&backoff);
	}
	return rc < 0 ? rc : 0;
}

/* After a failure the lanes are given up: nothing goes on them any more. */
static int conclude(struct gf_device_bench *d, int rc)
{
	int l;

	for (l = 0; l < d->nlanes && rc && !d->failed; l++)
		gf_device_lane_abort(&d->lanes[l]);
	d->failed |= rc != 0;
	return rc;
}

int gf_device_send_run(struct gf_device_send *s, bool refill, double *time_s,
		       struct gf_error *err)
{
	struct gf_device_bench *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	int rc = g->ops->record(g, d->begun, d->stream, err);

	if (rc == 0 && refill)
		rc = gf_device_bench_refill(d, s->bytes, err);
	if (rc == 0)
		rc = g->ops->record(g, d->loaded, d->stream, err);
	if (rc == 0)
		rc = enqueue(s, d->loaded, err);
	if (rc == 0)
		rc = finish(d, err);
	if (rc == 0)
		rc = g->ops->event_s(g, d->begun, d->ended, time_s, err);
	return conclude(d, rc);
}

int gf_device_send_begin(struct gf_device_send *s, struct gf_gpu_event *after,
			 struct gf_error *err)
{
	return conclude(s->d, enqueue(s, after, err));
}

int gf_device_send_end(struct gf_device_send *s, struct gf_gpu_event *from,
		       double *ends_s, struct gf_error *err)
{
	struct gf_gpu *g = s->d->device.gpu;
	size_t i;
	int rc = finish(s->d, err);

	for (i = 0; from && i < s->n && rc == 0; i++)
		rc = g->ops->event_s(g, from, s->messages[i].ended, &ends_s[i],
				     err);
	return conclude(s->d, rc);
}

size_t gf_device_send_wire_bytes(const struct gf_device_send *s)
{
	size_t bytes = 0, i;

	for (i = 0; i < s->n; i++)
		bytes += gf_device_program_sent(s->messages[i].program);
	return bytes;
}
