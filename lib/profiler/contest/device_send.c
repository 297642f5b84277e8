/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/device_send.h"

#include "base/heap.h"
#include "compressors/sets_gpu.h"
#include "base/array.h"
#include "documents/selections/select_density.h"
#include "documents/library_tuning.h"
#include "runtime/engine/engine.h"

/* An engine whose NCCL is told something. */
struct told_engine {
	struct gf_tuning tuning;
	struct gf_engine *engine;
};

struct gf_contest_gpu {
	struct gf_contest_device device;
	struct gf_comm *comm;
	struct gf_gpu_stream *stream;
	struct gf_gpu_event *begun, *ended;
	void *source, *work;
	size_t room_bytes;        /* in each */
	struct gf_pool layout;    /* one tensor, of no memory */
	struct gf_engine *engine; /* NULL: messages go by the host */
	int lanes;
	/* Those whose NCCL is told something, each made once. */
	struct told_engine *told;
	size_t ntold, told_capacity;
};

/* --- memory --------------------------------------------------------------- */

int gf_contest_gpu_move(struct gf_contest_gpu *d, enum gf_contest_move what, void *host,
			size_t bytes, struct gf_error *err)
{
	const struct {
		void *to;
		const void *from;
		enum gf_gpu_copy kind;
	} moves[] = {
		[GF_MOVE_INPUTS] = {d->source, host, GF_GPU_TO_DEVICE},
		[GF_MOVE_IN_PLACE] = {d->work, d->source, GF_GPU_WITHIN},
		[GF_MOVE_DOWN] = {host, d->work, GF_GPU_TO_HOST},
		[GF_MOVE_UP] = {d->work, host, GF_GPU_TO_DEVICE},
	};
	struct gf_gpu *g = d->device.gpu;
	int rc = g->ops->copy(g, d->stream, moves[what].to, moves[what].from, bytes,
			      moves[what].kind, err);

	return rc ?: g->ops->stream_sync(g, d->stream, err);
}

/* --- opening -------------------------------------------------------------- */

static int zeros(struct gf_contest_gpu *d, size_t bytes, void **p, struct gf_error *err)
{
	struct gf_gpu *g = d->device.gpu;
	int rc;

	g->ops->free(g, *p);
	*p = NULL;
	rc = g->ops->alloc(g, bytes, p, err);
	rc = rc ?: g->ops->zero(g, d->stream, *p, bytes, err);
	return rc ?: g->ops->stream_sync(g, d->stream, err);
}

int gf_contest_gpu_reserve(struct gf_contest_gpu *d, size_t bytes, struct gf_error *err)
{
	int rc;

	if (bytes <= d->room_bytes)
		return 0;
	d->room_bytes = 0;
	rc = zeros(d, bytes, &d->source, err);
	rc = rc ?: zeros(d, bytes, &d->work, err);
	rc = gf_comm_agree(d->comm, rc, err);
	if (rc == 0)
		d->room_bytes = bytes;
	return rc;
}

/* NULL: NCCL is told nothing, and has as many blocks as in training. */
static int open_engine(struct gf_contest_gpu *d, struct gf_nccl_tuning *told,
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

int gf_contest_gpu_open(const struct gf_contest_device *device, struct gf_comm *comm, int lanes,
			size_t bytes, struct gf_contest_gpu **bench, struct gf_error *err)
{
	struct gf_contest_gpu *d = gf_xcalloc(1, sizeof(*d));
	struct gf_gpu *g = device->gpu;
	int rc;

	d->device = *device;
	d->comm = comm;
	d->layout.ntensors = 1;
	d->lanes = lanes;
	rc = g->ops->stream_new(g, true, &d->stream, err);
	rc = rc ?: g->ops->event_new(g, true, &d->begun, err);
	rc = rc ?: g->ops->event_new(g, true, &d->ended, err);
	rc = gf_comm_agree(comm, rc, err) ?: gf_contest_gpu_reserve(d, bytes, err);
	if (rc == 0 && device->nccl)
		rc = open_engine(d, NULL, &d->engine, err);
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
 * Engines whose NCCL is told how its all-reduce goes (documents/library_tuning.h). NCCL refuses
 * what it cannot do only in the first call (ncclGetAlgoInfo of its src/enqueue.cc), so a message of
 * one element is sent first.
 */
static int send_one(struct gf_contest_gpu *d, struct gf_engine *engine, struct gf_error *err)
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

	rc = rc ?: gf_burst_send(burst, d->work, err);
	rc = rc ?: gf_engine_settle(engine, err);
	rc = gf_comm_agree(d->comm, rc, err);
	gf_burst_free(burst);
	return rc;
}

/* The one that is told that; no dialect: d->engine. It has sent a message. Collective. -EIO: NCCL
 * cannot do that here. */
static int engine_told(struct gf_contest_gpu *d, const struct gf_tuning *tuning,
		       struct gf_engine **engine, struct gf_error *err)
{
	struct gf_nccl_tuning told = {
		.algorithm = tuning->algorithm ? tuning->algorithm->name : NULL,
		.protocol = tuning->protocol ? tuning->protocol->name : NULL,
		.channels = tuning->channels,
	};
	struct gf_engine *made = NULL;
	int rc;

	*engine = d->engine;
	if (!tuning->dialect)
		return 0;
	for (size_t i = 0; i < d->ntold; i++)
		if (gf_tuning_same(&d->told[i].tuning, tuning)) {
			*engine = d->told[i].engine;
			return 0;
		}
	rc = open_engine(d, &told, &made, err);
	rc = rc ?: send_one(d, made, err);
	if (rc) {
		gf_engine_free(made);
		return rc;
	}
	*gf_array_push(&d->told, &d->ntold, &d->told_capacity) =
		(struct told_engine){*tuning, made};
	*engine = made;
	return 0;
}

struct gf_contest_send {
	struct gf_contest_gpu *d;
	struct gf_engine *engine; /* d's */
	struct gf_burst *burst;
	struct gf_gpu_hold *hold; /* of what is loaded, or NULL */
	size_t n, bytes, wire_bytes;
	bool gathers; /* this rank brings its part of each message */
	/* With a density: the k largest values of the only message go, on top of a residual of
	 * zeros, which a word that is never 0 keeps so. */
	struct gf_sparse_gpu *sparse; /* or NULL */
	void *residual, *never;
	size_t k;
};

/* The inputs put in place, enqueued alone. */
static int refill_memory(const struct gf_contest_send *s, struct gf_error *err)
{
	const struct gf_contest_gpu *d = s->d;
	const size_t each = s->bytes / s->n;
	struct gf_gpu *g = d->device.gpu;
	struct gf_range part = {.count = s->bytes};
	int rc = 0;

	for (size_t i = 0; i < (s->gathers ? s->n : 1) && !rc; i++) {
		if (s->gathers)
			part = gf_range_part(gf_data(i * each, each), d->comm->ranks,
					     d->comm->rank);
		rc = g->ops->copy(g, d->stream, (char *)d->work + part.first,
				  (char *)d->source + part.first, part.count, GF_GPU_WITHIN, err);
	}
	return rc;
}

/* --- messages ------------------------------------------------------------- */

/* Also adds what this rank sends to *wire_bytes, but for sets. */
static int check(const struct gf_burst_message *m, const struct gf_comm *comm, size_t *wire_bytes,
		 struct gf_error *err)
{
	struct gf_coll_args args = gf_way_args(&m->way, comm->ranks);
	GF_RELEASED(gf_lane_program_release) struct gf_lane_program p = {0};
	int rc = 0;

	args.count_elems = m->count_elems;
	args.elem_bytes = sizeof(float);
	args.half = m->half;
	args.owners = m->owners;
	if (m->element.dtype != GF_F32 || m->element.op != GF_OP_SUM)
		rc = gf_error_set(err, -ENOTSUP, "between GPUs this build adds f32, got %s of %s",
				  gf_op_names[m->element.op], gf_dtype_names[m->element.dtype]);
	if (rc == 0 && m->way.density > 0 && m->element.codec)
		rc = gf_error_set(err, -EINVAL, "%s: want values as they are, got %s",
				  m->way.algorithm->name, m->element.codec->name);
	if (rc == 0 && !(m->way.density > 0))
		rc = gf_lane_program_new(m->way.algorithm, &args, comm->rank, m->element.codec, &p,
					 err);
	if (rc == 0)
		*wire_bytes += gf_lane_program_sent(&p);
	return rc;
}

int gf_contest_send_check(const struct gf_burst_message *m, const struct gf_comm *comm,
			  struct gf_error *err)
{
	size_t ignored = 0;

	return check(m, comm, &ignored, err);
}

/* The only message becomes one of sets. */
static int select_from(struct gf_contest_send *s, struct gf_burst_message *m, struct gf_error *err)
{
	static const uint32_t one = 1;
	struct gf_contest_gpu *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	struct gf_work w;
	int rc = g->ops->alloc(g, s->bytes, &s->residual, err);

	s->k = gf_density_count(m->way.density, m->count_elems);
	rc = rc ?: g->ops->alloc(g, sizeof(one), &s->never, err);
	rc = rc ?: g->ops->zero(g, d->stream, s->residual, s->bytes, err);
	rc = rc ?: g->ops->copy(g, d->stream, s->never, &one, sizeof(one), GF_GPU_TO_DEVICE, err);
	rc = rc ?: g->ops->stream_sync(g, d->stream, err);
	rc = rc ? rc
		: gf_sparse_gpu_new(
			  &(struct gf_sparse_gpu_config){
				  .gpu = g,
				  .residual = s->residual,
				  .count_elems = m->count_elems,
				  .merges = m->way.algorithm == gf_sparse_find("gtopk"),
				  .ranks = d->comm->ranks,
				  .rank = d->comm->rank,
				  .most_k = s->k,
			  },
			  &s->sparse, err);
	if (rc)
		return rc;
	gf_sparse_gpu_work(s->sparse, &w);
	m->half = w.half;
	m->sets = w.sets;
	m->data = w.data;
	m->count_elems = w.count_elems;
	s->wire_bytes = gf_lane_program_sent(gf_sparse_gpu_program(s->sparse));
	return 0;
}

/* With a rank's own part done: rc. */
static int open_burst(struct gf_contest_send *s, int rc, const struct gf_burst_message *messages,
		      size_t n, int lanes, struct gf_contest_send **send, struct gf_error *err)
{
	struct gf_contest_gpu *d = s->d;

	s->n = n;
	rc = gf_comm_agree(d->comm, rc, err);
	rc = rc ?: engine_told(d, &messages[0].way.tuning, &s->engine, err);
	if (rc == 0)
		rc = gf_burst_new(
			&(struct gf_burst_config){
				.comm = d->comm,
				.messages = messages,
				.nmessages = n,
				.lanes = lanes < d->lanes ? lanes : d->lanes,
				.engine = s->engine,
			},
			&s->burst, err);
	if (rc)
		gf_contest_send_free(s);
	else
		*send = s;
	return rc;
}

int gf_contest_send_new(struct gf_contest_gpu *d, const struct gf_burst_message *messages, size_t n,
			int lanes, struct gf_contest_send **send, struct gf_error *err)
{
	struct gf_contest_send *s = gf_xcalloc(1, sizeof(*s));
	struct gf_burst_message only = messages[0];
	int rc = 0;

	s->d = d;
	s->gathers = only.half == GF_COLL_ALL_GATHER;
	for (size_t i = 0; i < n && rc == 0; i++) {
		s->bytes += messages[i].count_elems * sizeof(float);
		rc = check(&messages[i], d->comm, &s->wire_bytes, err);
	}
	if (rc == 0 && only.way.density > 0)
		rc = select_from(s, &only, err);
	return open_burst(s, rc, s->sparse ? &only : messages, n, lanes, send, err);
}

int gf_contest_send_steps(struct gf_contest_gpu *d, const struct gf_schedule *schedule, int n,
			  struct gf_contest_send **send, struct gf_error *err)
{
	struct gf_contest_send *s = gf_xcalloc(1, sizeof(*s));
	GF_FREED struct gf_burst_message *messages = gf_xcalloc((size_t)n, sizeof(*messages));

	s->d = d;
	for (int i = 0; i < n; i++)
		messages[i] = (struct gf_burst_message){
			.schedule = schedule,
			.element = gf_element_number(GF_F32, GF_OP_SUM),
			.count_elems = schedule->count_elems,
			.simultaneous = n > 1,
		};
	return open_burst(s, 0, messages, (size_t)n, d->lanes, send, err);
}

void gf_contest_send_free(struct gf_contest_send *s)
{
	struct gf_gpu *g;

	if (!s)
		return;
	g = s->d->device.gpu;
	g->ops->release(g, s->hold);
	gf_burst_free(s->burst);
	gf_sparse_gpu_free(s->sparse);
	g->ops->free(g, s->residual);
	g->ops->free(g, s->never);
	free(s);
}

/* --- sending -------------------------------------------------------------- */

/* Enqueues everything. Sets, too, end as sums where the values were. */
static int enqueue(struct gf_contest_send *s, struct gf_error *err)
{
	struct gf_contest_gpu *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	int rc = 0;

	if (s->sparse)
		rc = gf_sparse_gpu_prepare(s->sparse, d->work, s->k, d->stream, err);
	rc = rc ?: gf_burst_send(s->burst, d->work, err);
	if (rc == 0 && s->sparse)
		rc = gf_sparse_gpu_finish(s->sparse, d->stream, err);
	if (rc == 0 && s->sparse)
		rc = gf_sparse_gpu_apply(s->sparse, d->stream, s->never, err);
	return rc ?: g->ops->record(g, d->ended, d->stream, err);
}

static int finish(struct gf_contest_send *s, struct gf_error *err)
{
	struct gf_contest_gpu *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	return gf_engine_settle(s->engine, err) ?: g->ops->stream_sync(g, d->stream, err);
}

int gf_contest_send_load(struct gf_contest_send *s, bool refill, struct gf_error *err)
{
	struct gf_contest_gpu *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	int rc = g->ops->hold(g, d->stream, &s->hold, err);

	rc = rc ?: g->ops->record(g, d->begun, d->stream, err);
	if (rc == 0 && refill)
		rc = refill_memory(s, err);
	return rc ?: enqueue(s, err);
}

int gf_contest_send_go(struct gf_contest_send *s, double *time_s, struct gf_error *err)
{
	struct gf_contest_gpu *d = s->d;
	struct gf_gpu *g = d->device.gpu;

	g->ops->release(g, s->hold);
	s->hold = NULL;
	return finish(s, err) ?: g->ops->event_s(g, d->begun, d->ended, time_s, err);
}

int gf_contest_send_begin(struct gf_contest_send *s, struct gf_gpu_event *after,
			  struct gf_error *err)
{
	struct gf_contest_gpu *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	int rc = g->ops->wait(g, d->stream, after, err);

	rc = rc ?: g->ops->record(g, d->begun, d->stream, err);
	return rc ?: enqueue(s, err);
}

/* All messages became ready when the stream had waited for `from`: their times count from then. */
int gf_contest_send_end(struct gf_contest_send *s, struct gf_gpu_event *from, double *ends_s,
			struct gf_error *err)
{
	struct gf_contest_gpu *d = s->d;
	struct gf_gpu *g = d->device.gpu;
	const struct gf_message_times *times;
	double begun_s = 0;
	int rc = finish(s, err);

	if (rc || !from)
		return rc;
	rc = g->ops->event_s(g, from, d->begun, &begun_s, err);
	times = gf_engine_times(s->engine);
	rc = rc ?: gf_engine_check(s->engine, err);
	for (size_t i = 0; i < s->n && rc == 0; i++)
		ends_s[i] = begun_s + times[i].end_s - times[0].ready_s;
	return rc;
}

struct gf_burst *gf_contest_send_burst(const struct gf_contest_send *s)
{
	return s->burst;
}

size_t gf_contest_send_wire_bytes(const struct gf_contest_send *s)
{
	return s->wire_bytes;
}
