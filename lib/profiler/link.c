/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/link.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"

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
	int k;

	gf_schedule_init(s, rank, ranks, 2 * n);
	for (k = 0; k < hop->rounds; k++) {
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

static void discard(struct gf_measure_link *l, const struct gf_measure_hop *hop, struct prepared *p)
{
	int i;

	for (i = 0; i < hop->messages; i++)
		gf_exec_run_free(p->runs[i]);
	free(p->runs);
	l->comm->ops->buffer_free(l->comm, p->data);
	gf_schedule_release(&p->schedule);
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
	if (rc == 0)
		rc = go(l, hop, p, err);
	*time_s = gf_clock_s() - start;
	if (rc < 0)
		gf_watch_give_up(&l->watch, rc, err);
	return rc;
}

static int run(void *ctx, const struct gf_measure_hop *hop, double *times_s, int repeats,
	       struct gf_error *err)
{
	struct gf_measure_link *l = ctx;
	struct prepared p = {0};
	int i, rc;

	l->watch.self.calls++;
	rc = gf_comm_agree(l->comm, prepare(l, hop, &p, err), err);
	for (i = 0; i < repeats && rc == 0; i++)
		rc = once(l, hop, &p, &times_s[i], err);
	discard(l, hop, &p);
	return rc;
}

static bool adds(void *ctx, int from)
{
	struct gf_comm *c = ((struct gf_measure_link *)ctx)->comm;

	return c->ops->reduces_from && c->ops->reduces_from(c, from);
}

struct gf_measure_mover gf_measure_link_mover(struct gf_measure_link *l)
{
	return (struct gf_measure_mover){.comm = l->comm, .run = run, .adds = adds, .ctx = l};
}
