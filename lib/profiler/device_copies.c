/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/profile_parts.h"

#include "base/array.h"
#include "base/heap.h"
#include "profiler/curve.h"

static const struct {
	const char *name;
	enum gf_gpu_copy kind;
} kinds[] = {
	{"host-to-device", GF_GPU_TO_DEVICE},
	{"device-to-host", GF_GPU_TO_HOST},
	{"within-device", GF_GPU_WITHIN},
};

struct link {
	struct gf_comm *comm;
	struct gf_gpu *gpu;
	enum gf_gpu_copy kind;
	struct gf_gpu_stream *stream;
	struct gf_gpu_event *begun, *ended;
	void *host, *device[2];
	const struct gf_measure_sitting *sitting;
};

/* A chain of copies, one after the other, all of it enqueued before the first begins. */
static int once(struct link *l, double *time_s, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = l->gpu->ops;
	void *to = l->kind == GF_GPU_TO_HOST ? l->host : l->device[0];
	const void *from = l->kind == GF_GPU_TO_DEVICE ? l->host
			   : l->kind == GF_GPU_TO_HOST ? l->device[0]
						       : l->device[1];
	struct gf_gpu_hold *hold = NULL;
	int i, rc = ops->hold(l->gpu, l->stream, &hold, err);

	if (rc == 0)
		rc = ops->record(l->gpu, l->begun, l->stream, err);
	for (i = 0; i < l->sitting->messages && rc == 0; i++)
		rc = ops->copy(l->gpu, l->stream, to, from, l->sitting->bytes, l->kind, err);
	if (rc == 0)
		rc = ops->record(l->gpu, l->ended, l->stream, err);
	ops->release(l->gpu, hold);
	if (rc == 0)
		rc = ops->stream_sync(l->gpu, l->stream, err);
	if (rc == 0)
		rc = ops->event_s(l->gpu, l->begun, l->ended, time_s, err);
	return rc;
}

/* The ranks meet before each repeat, failed or not. */
static int run(void *ctx, double *times, int repeats, struct gf_error *err)
{
	struct link *l = ctx;
	int i, rc = 0, met = 0;

	for (i = 0; i < repeats && met == 0; i++) {
		met = gf_comm_barrier(l->comm, rc ? NULL : err);
		if (met == 0 && rc == 0)
			rc = once(l, &times[i], err);
	}
	return met ? met : gf_comm_agree(l->comm, rc, err);
}

static int sit(void *ctx, const struct gf_measure_sitting *s, struct gf_measure_samples *samples,
	       struct gf_error *err)
{
	struct link *l = ctx;

	l->sitting = s;
	return gf_measure_repeat(l->comm, run, l, &s->budget, samples, err);
}

static int open_link(struct link *l, size_t bytes, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = l->gpu->ops;
	int rc = ops->stream_new(l->gpu, true, &l->stream, err);

	if (rc == 0)
		rc = ops->event_new(l->gpu, true, &l->begun, err);
	if (rc == 0)
		rc = ops->event_new(l->gpu, true, &l->ended, err);
	if (rc == 0)
		rc = ops->host_alloc(l->gpu, bytes, &l->host, err);
	if (rc == 0)
		rc = ops->alloc(l->gpu, bytes, &l->device[0], err);
	if (rc == 0)
		rc = ops->alloc(l->gpu, bytes, &l->device[1], err);
	return gf_comm_agree(l->comm, rc, err);
}

static void close_link(struct link *l)
{
	const struct gf_gpu_ops *ops = l->gpu->ops;

	ops->host_free(l->gpu, l->host);
	ops->free(l->gpu, l->device[0]);
	ops->free(l->gpu, l->device[1]);
	ops->event_free(l->gpu, l->begun);
	ops->event_free(l->gpu, l->ended);
	ops->stream_free(l->gpu, l->stream);
}

static int measure(const struct gf_measure_device_copies *c, struct link *l, const char *name,
		   struct gf_copy_cost *cost, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_curve_config config = {
		.comm = c->comm,
		.limits = {.min_bytes = 1024,
			   .max_bytes = c->max_bytes,
			   .budget_s = c->budget_s / GF_ARRAY_LENGTH(kinds),
			   .point = {c->time_s, 5, 100}},
		.lanes = 1,
		.lines = 1,
	};
	struct gf_measure_subject subject = {name, sit, l};
	struct gf_measure_curve curve = {0};
	int rc = gf_measure_curve(&config, &subject, &curve, remarks, err);

	if (rc)
		return rc;
	cost->name = gf_xstrdup(name);
	cost->alpha_s = curve.startup_s;
	cost->beta_s_per_byte = curve.per_byte_s;
	cost->fit = curve.fit;
	return 0;
}

int gf_measure_device_copies(const struct gf_measure_device_copies *c, struct gf_profile *p,
			     struct gf_text *remarks, struct gf_error *err)
{
	struct link l = {.comm = c->comm, .gpu = c->gpu};
	size_t i;
	int rc = open_link(&l, c->max_bytes, err);

	p->copies = gf_xcalloc(GF_ARRAY_LENGTH(kinds), sizeof(*p->copies));
	for (i = 0; i < GF_ARRAY_LENGTH(kinds) && rc == 0; i++) {
		l.kind = kinds[i].kind;
		rc = measure(c, &l, kinds[i].name, &p->copies[i], remarks, err);
		p->ncopies += rc == 0;
	}
	close_link(&l);
	return rc;
}
