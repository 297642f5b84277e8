/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/network_parts.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "cost/stat.h"

void gf_measure_level_peers(const struct gf_level *levels, size_t level, int rank, int *to,
			    int *from)
{
	int stride = 1, size = (int)levels[level].size, digit, first;

	for (size_t i = 0; i < level; i++)
		stride *= (int)levels[i].size;
	*to = *from = -1;
	if (size < 2 || rank % stride != 0)
		return;
	digit = rank / stride % size;
	first = rank - digit * stride;
	*to = first + (digit + 1) % size * stride;
	*from = first + (digit + size - 1) % size * stride;
}

/* A level, or adding up alone (both peers -1). */
struct subject {
	const struct gf_measure_mover *mover;
	int to, from;
	bool reduce;
	const struct gf_measure_sitting *sitting;
};

static int run(void *ctx, double *times, int repeats, struct gf_error *err)
{
	const struct subject *s = ctx;
	const struct gf_measure_sitting *sitting = s->sitting;
	bool together = sitting->lanes > 1;
	struct gf_measure_hop hop = {
		.to = s->to,
		.from = s->from,
		.bytes = sitting->bytes,
		.rounds = together ? 1 : sitting->messages,
		.messages = together ? sitting->messages : 1,
		.reduce = s->reduce,
	};

	return s->mover->run(s->mover->ctx, &hop, times, repeats, err);
}

static int sit(void *ctx, const struct gf_measure_sitting *sitting,
	       struct gf_measure_samples *samples, struct gf_error *err)
{
	struct subject *s = ctx;

	s->sitting = sitting;
	return gf_measure_repeat(s->mover->comm, run, s, &sitting->budget, samples, err);
}

/* Adding up, by itself or on top of a transfer, at a size that fills no cache more than a segment
 * does. */
static int measure_reduce(struct subject s, const struct gf_allreduce_cost *plain,
			  double *per_byte_s, struct gf_error *err)
{
	struct gf_measure_sitting sitting = {(size_t)1 << 20, 4, 1, {0.02, 5, 50}};
	struct gf_measure_subject subject = {"adding up", sit, &s};
	GF_RELEASED(gf_measure_samples_release) struct gf_measure_samples samples = {0};
	struct gf_cost_lines lines = {0};
	double time_s, bytes;
	int rc;

	s.reduce = true;
	if (!plain)
		s.to = s.from = -1;
	else
		lines = gf_allreduce_lines(plain);
	rc = subject.sit(&s, &sitting, &samples, err);
	if (rc == 0) {
		bytes = (double)sitting.bytes;
		time_s = gf_stat_median(samples.values, samples.count) / sitting.messages;
		if (plain)
			time_s -= gf_cost_lines_s(&lines, bytes);
		*per_byte_s = fmax(0, time_s / bytes);
	}
	return rc;
}

static int measure_level(const struct gf_measure_levels *c, size_t level,
			 struct gf_level_cost *cost, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_curve_config config = c->curve;
	struct subject s = {.mover = &c->mover};
	GF_FREED char *name = gf_xasprintf("level %s", c->levels[level].name);
	struct gf_measure_subject subject = {name, sit, &s};
	struct gf_allreduce_cost curve = {0};
	double fused; /* does any rank's receive on this level add without a buffer? */
	int rc;

	gf_measure_level_peers(c->levels, level, c->mover.comm->rank, &s.to, &s.from);
	rc = gf_measure_curve(&config, &subject, &curve, remarks, err);
	fused = s.from >= 0 && c->mover.adds && c->mover.adds(c->mover.ctx, s.from);
	rc = rc ?: gf_measure_slowest(c->mover.comm, &fused, 1, err);
	rc = rc ?: measure_reduce(s, fused > 0 ? &curve : NULL, &cost->reduce_s_per_byte, err);
	if (rc == 0) {
		cost->name = gf_xstrdup(c->levels[level].name);
		cost->alpha_s = curve.startup_s;
		cost->beta_s_per_byte = curve.per_byte_s;
		cost->larger = curve.larger;
		cost->nlarger = curve.nlarger;
		cost->contention = curve.contention;
		cost->fit = curve.fit;
	} else {
		gf_measure_curve_release(&curve);
		gf_error_prefix(err, "%s", name);
	}
	return rc;
}

int gf_measure_levels(const struct gf_measure_levels *c, struct gf_network *net,
		      struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_levels one = *c;
	int rc = 0;

	one.curve.limits.budget_s /= (double)(c->nlevels ? c->nlevels : 1);
	net->levels = gf_xcalloc(c->nlevels + 1, sizeof(*net->levels));
	for (size_t i = 0; i < c->nlevels && rc == 0; i++) {
		if (c->levels[i].size < 2)
			continue;
		rc = measure_level(&one, i, &net->levels[net->nlevels], remarks, err);
		net->nlevels += rc == 0;
	}
	return rc;
}

void gf_measure_link_open(struct gf_measure_link *l, struct gf_comm *comm, double timeout_s)
{
	*l = (struct gf_measure_link){.comm = comm, .exec = gf_exec_new(comm)};
	gf_watch_init(&l->watch, comm, timeout_s);
	l->watch.self.phase = GF_PHASE_CALL;
}

void gf_measure_link_close(struct gf_measure_link *l)
{
	gf_watch_release(&l->watch);
	gf_exec_free(l->exec);
	memset(l, 0, sizeof(*l));
}

/* Two halves: what is sent, and what comes. */
void gf_measure_hop_schedule(const struct gf_measure_hop *hop, int rank, int ranks,
			     struct gf_schedule *s)
{
	size_t n = hop->bytes / sizeof(float);
	struct gf_range half[2] = {gf_data(0, n), gf_data(n, n)};

	gf_schedule_init(s, rank, ranks, 2 * n);
	for (int k = 0; k < hop->rounds; k++) {
		if (hop->to >= 0)
			gf_schedule_send(s, hop->to, half[k % 2]);
		if (hop->from >= 0 && hop->reduce)
			gf_schedule_recv_reduce(s, hop->from, half[(k + 1) % 2]);
		else if (hop->from >= 0)
			gf_schedule_recv(s, hop->from, half[(k + 1) % 2]);
		if (hop->to < 0 && hop->from < 0 && hop->reduce)
			gf_schedule_reduce(s, half[0], half[1]);
	}
	/* the word that all has come */
	if (hop->to >= 0 && hop->from < 0)
		gf_schedule_recv(s, hop->to, gf_schedule_scratch(s, 1));
	if (hop->from >= 0 && hop->to < 0)
		gf_schedule_send(s, hop->from, gf_data(half[hop->rounds % 2].first, 1));
	gf_schedule_finish(s);
}

/* Everything that a run needs, made before the clock starts. */
struct prepared {
	struct gf_schedule schedule;
	struct gf_exec_run **runs;
	float *data; /* messages * 2 * count_elems */
	size_t count_elems;
};

static int prepare(struct gf_measure_link *l, const struct gf_measure_hop *hop, struct prepared *p,
		   struct gf_error *err)
{
	size_t n = (size_t)hop->messages;
	void *data = NULL;
	int i, rc;

	p->count_elems = 2 * (hop->bytes / sizeof(float));
	gf_measure_hop_schedule(hop, l->comm->rank, l->comm->ranks, &p->schedule);
	p->runs = gf_xcalloc(n, sizeof(*p->runs));
	rc = l->comm->ops->buffer_alloc(l->comm, n * p->count_elems * sizeof(float), &data, err);
	p->data = data;
	for (i = 0; i < hop->messages && rc == 0; i++) {
		struct gf_exec_config config = {
			.schedule = &p->schedule,
			.channel = (uint32_t)i,
		};

		rc = gf_exec_run_new(l->exec, &config, &p->runs[i], err);
	}
	return rc;
}

static int go(struct gf_measure_link *l, const struct gf_measure_hop *hop, struct prepared *p,
	      struct gf_error *err)
{
	int i, rc = 0;

	for (i = 0; i < hop->messages && rc == 0; i++)
		rc = gf_exec_start(p->runs[i], p->data + (size_t)i * p->count_elems, err);
	for (i = 0; i < hop->messages && rc == 0; i++) {
		l->comm->waits++; /* a wait of its own for the watch */
		rc = gf_exec_wait(l->exec, p->runs[i], 0, err);
	}
	return rc;
}

static int once(struct gf_measure_link *l, const struct gf_measure_hop *hop, struct prepared *p,
		double *time_s, struct gf_error *err)
{
	double start;
	int rc;

	l->watch.self.calls++;
	rc = gf_comm_barrier(l->comm, err);
	start = gf_clock_s();
	rc = rc ?: go(l, hop, p, err);
	*time_s = gf_clock_s() - start;
	if (rc < 0)
		gf_watch_give_up(&l->watch, rc, err);
	return rc;
}

static int run_hop(void *ctx, const struct gf_measure_hop *hop, double *times_s, int repeats,
		   struct gf_error *err)
{
	struct gf_measure_link *l = ctx;
	struct prepared p = {0};
	int i, rc;

	l->watch.self.calls++;
	rc = gf_comm_agree(l->comm, prepare(l, hop, &p, err), err);
	for (i = 0; i < repeats && rc == 0; i++)
		rc = once(l, hop, &p, &times_s[i], err);
	for (i = 0; i < hop->messages; i++)
		gf_exec_run_free(p.runs[i]);
	free(p.runs);
	l->comm->ops->buffer_free(l->comm, p.data);
	gf_schedule_release(&p.schedule);
	return rc;
}

static bool adds(void *ctx, int from)
{
	struct gf_comm *c = ((struct gf_measure_link *)ctx)->comm;

	return c->ops->reduces_from && c->ops->reduces_from(c, from);
}

struct gf_measure_mover gf_measure_link_mover(struct gf_measure_link *l)
{
	return (struct gf_measure_mover){.comm = l->comm, .run = run_hop, .adds = adds, .ctx = l};
}
