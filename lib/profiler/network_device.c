/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/network_parts.h"

#include "base/array.h"
#include "base/heap.h"
#include "profiler/contest/device_send.h"
#include "profiler/curve.h"
#include "profiler/overlap.h"
#include "profiler/profile_parts.h"
#include "transport/watch.h"

struct gf_network_device {
	struct gf_comm *comm;
	struct gf_watch watch;
	struct gf_contest_gpu *bench;
};

int gf_network_device_open(const struct gf_measure_network *c, struct gf_network_device **device,
			   struct gf_error *err)
{
	struct gf_network_device *d = gf_xcalloc(1, sizeof(*d));
	struct gf_contest_device place = *c->device;
	int rc;

	d->comm = c->comm;
	gf_watch_init(&d->watch, c->comm, c->timeout_s);
	d->watch.self.phase = GF_PHASE_CALL;
	place.watch = &d->watch;
	rc = gf_contest_gpu_open(&place, c->comm, (int)c->lanes, c->max_bytes, &d->bench, err);
	if (rc)
		gf_network_device_close(d);
	else
		*device = d;
	return rc;
}

void gf_network_device_close(struct gf_network_device *d)
{
	if (!d)
		return;
	gf_contest_gpu_close(d->bench);
	gf_watch_release(&d->watch);
	free(d);
}

/* After what they did together: rc, and if that is a failure, which some rank may never come back
 * from, the others hear of it. */
static int conclude(struct gf_network_device *d, int rc, struct gf_error *err)
{
	if (rc)
		gf_watch_leave(&d->watch, rc, err);
	return rc;
}

/* Collective: the ranks come together, before what they do at the same time. */
static int meet(struct gf_network_device *d, struct gf_error *err)
{
	int rc;

	d->watch.self.calls++;
	rc = gf_comm_barrier(d->comm, err);
	return conclude(d, rc, err);
}

struct repeated {
	struct gf_network_device *device;
	struct gf_contest_send *send;
};

/* Each rank's own times. */
static int run(void *ctx, double *times, int repeats, struct gf_error *err)
{
	struct gf_network_device *d = ((struct repeated *)ctx)->device;
	struct gf_contest_send *send = ((struct repeated *)ctx)->send;
	int i, rc = 0;

	for (i = 0; i < repeats && rc == 0; i++) {
		rc = gf_contest_send_load(send, false, err);
		if (rc)
			break;
		rc = meet(d, err);
		if (rc)
			return rc;
		rc = gf_contest_send_go(send, &times[i], err);
	}
	return conclude(d, rc, err);
}

static int load_messages(struct gf_network_device *d, const struct gf_allreduce_cost *cost,
			 const struct gf_measure_sitting *s, struct gf_contest_send **send,
			 struct gf_error *err)
{
	size_t n = (size_t)s->messages, i;
	GF_FREED struct gf_burst_message *messages = gf_xcalloc(n, sizeof(*messages));
	struct gf_way way;
	int rc = gf_way_of(cost->algorithm, cost->stages, cost->nstages, &way, err);

	for (i = 0; i < n && rc == 0; i++)
		messages[i] = (struct gf_burst_message){
			.way = way,
			.element = gf_element_number(GF_F32, GF_OP_SUM),
			.half = cost->collective,
			.count_elems = s->bytes / sizeof(float),
			.simultaneous = s->lanes > 1,
		};
	rc = rc ?: gf_contest_gpu_reserve(d->bench, n * s->bytes, err);
	return rc ?: gf_contest_send_new(d->bench, messages, n, s->lanes, send, err);
}

static int repeat_messages(struct gf_network_device *d, struct gf_contest_send *send,
			   const struct gf_measure_budget *b, struct gf_measure_samples *samples,
			   struct gf_error *err)
{
	return gf_measure_repeat(d->comm, run, &(struct repeated){d, send}, b, samples, err);
}

int gf_network_device_sit(struct gf_network_device *d, const struct gf_allreduce_cost *cost,
			  const struct gf_measure_sitting *s, struct gf_measure_samples *samples,
			  struct gf_error *err)
{
	struct gf_contest_send *send = NULL;
	int rc = load_messages(d, cost, s, &send, err);

	rc = rc ?: repeat_messages(d, send, &s->budget, samples, err);
	gf_contest_send_free(send);
	return rc;
}

static int move(void *ctx, const struct gf_measure_hop *hop, double *times_s, int repeats,
		struct gf_error *err)
{
	struct gf_network_device *d = ctx;
	GF_RELEASED(gf_schedule_release) struct gf_schedule schedule = {0};
	struct gf_contest_send *send = NULL;
	int rc;

	gf_measure_hop_schedule(hop, d->comm->rank, d->comm->ranks, &schedule);
	rc = gf_contest_gpu_reserve(
		d->bench, (size_t)hop->messages * schedule.count_elems * sizeof(float), err);
	rc = rc ?: gf_contest_send_steps(d->bench, &schedule, hop->messages, &send, err);
	if (rc == 0)
		rc = run(&(struct repeated){d, send}, times_s, repeats, err);
	gf_contest_send_free(send);
	return rc;
}

struct gf_measure_mover gf_network_device_mover(struct gf_network_device *d)
{
	return (struct gf_measure_mover){.comm = d->comm, .run = move, .ctx = d};
}

/* --- beside backward ------------------------------------------------------ */

/* Messages by NCCL, on a lane beside the stream that computes. */
struct load {
	struct gf_network_device *device;
	struct gf_contest_send *send;
	struct gf_comm *comm;
	size_t n;
	double *ends_s;                 /* from backward's begin */
	struct gf_message_times *times; /* likewise */
};

static void close_load(void *load)
{
	GF_FREED struct load *l = load;

	gf_contest_send_free(l->send);
	gf_network_device_close(l->device);
	free(l->ends_s);
	free(l->times);
}

static int open_load(const struct gf_measure_overlap *c, const struct gf_measure_sitting *s,
		     void **load, struct gf_error *err)
{
	const struct gf_measure_network network = {
		.comm = c->comm,
		.device = c->device,
		.lanes = (size_t)s->lanes,
		.max_bytes = s->bytes * (size_t)s->messages,
		.timeout_s = c->timeout_s,
	};
	struct load *l = gf_xcalloc(1, sizeof(*l));
	int rc;

	l->comm = c->comm;
	l->n = (size_t)s->messages;
	l->ends_s = gf_xcalloc(l->n, sizeof(*l->ends_s));
	l->times = gf_xcalloc(l->n, sizeof(*l->times));
	rc = gf_network_device_open(&network, &l->device, err);
	rc = rc ?: load_messages(l->device, c->cost, s, &l->send, err);
	if (rc)
		close_load(l);
	else
		*load = l;
	return rc;
}

static int alone(void *load, const struct gf_measure_budget *budget,
		 struct gf_measure_samples *samples, struct gf_error *err)
{
	struct load *l = load;

	return repeat_messages(l->device, l->send, budget, samples, err);
}

/* Messages of a lane follow each other. */
static double busy_s(struct load *l, double alone_s, double until_s)
{
	for (size_t i = 0; i < l->n; i++) {
		l->times[i].start_s = i ? l->ends_s[i - 1] : 0;
		l->times[i].end_s = l->ends_s[i];
	}
	return alone_s * gf_measure_share_done(l->times, l->n, until_s);
}

/* Forward begins when the messages are enqueued, too: so nothing of what the host does is between
 * their begin and backward's. */
static int beside(struct load *l, struct gf_measure_pass *pass, double *with_s,
		  struct gf_error *err)
{
	int rc;

	gf_measure_pass_hold(pass);
	gf_measure_pass_forward(pass);
	gf_measure_pass_begin(pass);
	rc = gf_contest_send_begin(l->send, pass->begun, err);
	*with_s = gf_measure_pass_backward(pass);
	return rc ?: gf_contest_send_end(l->send, pass->rc ? NULL : pass->begun, l->ends_s, err);
}

static int once(void *load, struct gf_measure_pass *pass, double alone_s,
		struct gf_measure_mutual *mutual, struct gf_error *err)
{
	struct load *l = load;
	double without_s, with_s = 0;
	int rc = meet(l->device, err);

	if (rc)
		return rc;
	gf_measure_pass_hold(pass);
	gf_measure_pass_forward(pass);
	gf_measure_pass_begin(pass);
	without_s = gf_measure_pass_backward(pass);
	rc = meet(l->device, err);
	if (rc)
		return rc;
	rc = beside(l, pass, &with_s, err);
	if (rc == 0)
		mutual->overlap_slowdown =
			gf_measure_slowdown(with_s - without_s, busy_s(l, alone_s, with_s));
	return conclude(l->device, rc, err);
}

static int gather(void *load, const void *mine, size_t bytes, void *all, struct gf_error *err)
{
	const struct load *l = load;

	return gf_comm_allgather(l->comm, mine, bytes, all, err);
}

const struct gf_measure_traffic gf_measure_traffic_device = {
	.backwards = 0.5, /* all of them end within it */
	.open = open_load,
	.alone = alone,
	.once = once,
	.gather = gather,
	.close = close_load,
};

/* --- copies -------------------------------------------------------------- */

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
static int copy_chain(struct link *l, double *time_s, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = l->gpu->ops;
	void *to = l->kind == GF_GPU_TO_HOST ? l->host : l->device[0];
	const void *from = l->kind == GF_GPU_TO_DEVICE ? l->host
			   : l->kind == GF_GPU_TO_HOST ? l->device[0]
						       : l->device[1];
	struct gf_gpu_hold *hold = NULL;
	int i, rc = ops->hold(l->gpu, l->stream, &hold, err);

	rc = rc ?: ops->record(l->gpu, l->begun, l->stream, err);
	for (i = 0; i < l->sitting->messages && rc == 0; i++)
		rc = ops->copy(l->gpu, l->stream, to, from, l->sitting->bytes, l->kind, err);
	rc = rc ?: ops->record(l->gpu, l->ended, l->stream, err);
	ops->release(l->gpu, hold);
	rc = rc ?: ops->stream_sync(l->gpu, l->stream, err);
	return rc ?: ops->event_s(l->gpu, l->begun, l->ended, time_s, err);
}

/* The ranks meet before each repeat, failed or not. */
static int copy_chains(void *ctx, double *times, int repeats, struct gf_error *err)
{
	struct link *l = ctx;
	int i, rc = 0, met = 0;

	for (i = 0; i < repeats && met == 0; i++) {
		met = gf_comm_barrier(l->comm, rc ? NULL : err);
		if (met == 0 && rc == 0)
			rc = copy_chain(l, &times[i], err);
	}
	return met ? met : gf_comm_agree(l->comm, rc, err);
}

static int sit(void *ctx, const struct gf_measure_sitting *s, struct gf_measure_samples *samples,
	       struct gf_error *err)
{
	struct link *l = ctx;

	l->sitting = s;
	return gf_measure_repeat(l->comm, copy_chains, l, &s->budget, samples, err);
}

static int open_link(struct link *l, size_t bytes, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = l->gpu->ops;
	int rc = ops->stream_new(l->gpu, true, &l->stream, err);

	rc = rc ?: ops->event_new(l->gpu, true, &l->begun, err);
	rc = rc ?: ops->event_new(l->gpu, true, &l->ended, err);
	rc = rc ?: ops->host_alloc(l->gpu, bytes, &l->host, err);
	rc = rc ?: ops->alloc(l->gpu, bytes, &l->device[0], err);
	rc = rc ?: ops->alloc(l->gpu, bytes, &l->device[1], err);
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

static const size_t least_bytes = 1024;

/* Whole f32, and as far from the least as a curve wants. */
static size_t most_bytes(const struct gf_measure_device_copies *c)
{
	return c->max_bytes < 32 * least_bytes ? 32 * least_bytes : (c->max_bytes + 3) / 4 * 4;
}

static int measure(const struct gf_measure_device_copies *c, struct link *l, const char *name,
		   struct gf_copy_cost *cost, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_curve_config config = {
		.comm = c->comm,
		.limits = {.min_bytes = least_bytes,
			   .max_bytes = most_bytes(c),
			   .budget_s = c->budget_s / GF_ARRAY_LENGTH(kinds),
			   .point = {c->time_s, 5, 100}},
		.lanes = 1,
		.lines = 1,
	};
	struct gf_measure_subject subject = {name, sit, l};
	struct gf_allreduce_cost curve = {0};
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
	int rc = open_link(&l, most_bytes(c), err);

	p->copies = gf_xcalloc(GF_ARRAY_LENGTH(kinds), sizeof(*p->copies));
	for (size_t i = 0; i < GF_ARRAY_LENGTH(kinds) && rc == 0; i++) {
		l.kind = kinds[i].kind;
		rc = measure(c, &l, kinds[i].name, &p->copies[i], remarks, err);
		p->ncopies += rc == 0;
	}
	close_link(&l);
	return rc;
}
