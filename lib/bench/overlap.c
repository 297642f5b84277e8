/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/overlap.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"
#include "bench/stat.h"

enum { MOST_MESSAGES = 64 };
static const size_t largest_message = (size_t)4 << 20;
/* Messages for this share of backward: all of them end within it. */
static const double load = 0.5;

double gf_bench_slowdown(double lost_s, double busy_s)
{
	static const double most = 100;

	if (!(lost_s > 0) || !(busy_s > 0))
		return 1;
	if (lost_s >= busy_s * (1 - 1 / most))
		return most;
	return 1 / (1 - lost_s / busy_s);
}

/* The part of all messages that had been transferred at a point of time. */
static double share_done(const struct gf_message_times *times, size_t count,
			 double at_s)
{
	double done = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		double span = times[i].end_s - times[i].start_s;

		if (times[i].end_s <= at_s)
			done += 1;
		else if (times[i].start_s < at_s && span > 0)
			done += (at_s - times[i].start_s) / span;
	}
	return done / (double)count;
}

static int backward(struct gf_bench_step *step, float *grads, double *elapsed_s,
		    struct gf_error *err)
{
	int rc = gf_bench_step_forward(step, err);
	double start = gf_clock_s();

	if (rc == 0)
		rc = gf_bench_step_backward(step, grads, NULL, NULL, err);
	*elapsed_s = gf_clock_s() - start;
	return rc;
}

static int meet(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	(void)ctx;
	return gf_comm_barrier(comm, err);
}

/* Backward alone, then again with every message handed over at its start. */
static int once(struct gf_bench_exchange *x, struct gf_bench_step *step,
		float *grads, double alone_s, double *slowdown,
		struct gf_error *err)
{
	double without, with, start;
	size_t i;
	int rc, computed;

	rc = gf_engine_call(x->engine, meet, NULL, err);
	if (rc < 0)
		return rc;
	computed = backward(step, grads, &without, err);
	rc = gf_engine_call(x->engine, meet, NULL, computed < 0 ? NULL : err);
	if (rc < 0)
		return rc;
	if (computed == 0)
		computed = gf_bench_step_forward(step, err);
	gf_engine_begin(x->engine);
	for (i = 0; i < x->plan.nmessages; i++)
		gf_engine_ready(x->engine, i);
	start = gf_clock_s();
	if (computed == 0)
		computed = gf_bench_step_backward(step, grads, NULL, NULL, err);
	with = gf_clock_s() - start;
	gf_engine_backward_end(x->engine);
	rc = gf_engine_wait(x->engine, computed < 0 ? NULL : err);
	if (rc == 0)
		*slowdown = gf_bench_slowdown(
			with - without,
			alone_s * share_done(gf_engine_times(x->engine),
					     x->plan.nmessages, start + with));
	return rc < 0 ? rc : computed;
}

struct everywhere {
	double *all;
	const double *mine;
	size_t count;
};

static int gather(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct everywhere *e = ctx;

	e->all = gf_xcalloc((size_t)comm->ranks * e->count, sizeof(*e->all));
	return gf_comm_allgather(comm, e->mine, e->count * sizeof(*e->mine),
				 e->all, err);
}

/* The median over repeats and ranks. */
static int repeat(struct gf_bench_exchange *x, struct gf_bench_step *step,
		  int repeats, double alone_s, double *slowdown,
		  struct gf_error *err)
{
	double *mine = gf_xcalloc((size_t)repeats, sizeof(*mine));
	float *grads =
		gf_xcalloc(step->offsets[step->ntensors], sizeof(*grads));
	struct everywhere e = {.mine = mine, .count = (size_t)repeats};
	int i, rc = 0;

	for (i = 0; i < repeats && rc == 0; i++)
		rc = once(x, step, grads, alone_s, &mine[i], err);
	if (rc == 0)
		rc = gf_engine_call(x->engine, gather, &e, err);
	if (rc == 0)
		*slowdown = gf_stat_median(
			e.all, e.count * (size_t)x->config.comm->ranks);
	free(e.all);
	free(mine);
	free(grads);
	return rc;
}

static int message_count(const struct gf_bench_overlap *c, size_t bytes)
{
	double one = c->cost->startup_s + c->cost->per_byte_s * (double)bytes;

	if (!(one > 0))
		return MOST_MESSAGES;
	return (int)fmin(MOST_MESSAGES, fmax(1, load * c->backward_s / one));
}

int gf_bench_overlap(const struct gf_bench_overlap *c,
		     struct gf_bench_step *step, double *slowdown,
		     struct gf_error *err)
{
	size_t bytes = step->offsets[step->ntensors] * sizeof(float);
	struct gf_bench_budget budget = {0.2, 5, 50};
	struct gf_bench_exchange_config config;
	struct gf_bench_exchange x;
	struct gf_bench_samples alone = {0};
	int rc;

	if (bytes > largest_message)
		bytes = largest_message;
	config = (struct gf_bench_exchange_config){
		.comm = c->comm,
		.algorithm = c->cost->algorithm,
		.count_elems = bytes / sizeof(float),
		.messages = message_count(c, bytes),
		.lanes = 1,
		.timeout_s = c->timeout_s,
	};
	rc = gf_bench_exchange_open(&x, &config, err);
	if (rc < 0)
		return rc;
	rc = gf_bench_exchange_measure(&x, &budget, &alone, err);
	if (rc == 0)
		rc = repeat(&x, step, c->repeats,
			    gf_stat_median(alone.values, alone.count), slowdown,
			    err);
	gf_bench_samples_release(&alone);
	gf_bench_exchange_close(&x);
	return rc;
}
