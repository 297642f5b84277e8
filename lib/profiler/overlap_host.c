/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/overlap_parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"
#include "profiler/chain.h"

/* Messages between hosts, through training's engine and its thread. */
static int open_load(const struct gf_measure_overlap *c, const struct gf_measure_sitting *s,
		     void **load, struct gf_error *err)
{
	const struct gf_measure_exchange_config config = {
		.comm = c->comm,
		.algorithm = c->cost->algorithm,
		.stages = c->cost->stages,
		.nstages = c->cost->nstages,
		.compute_threads = c->threads,
		.callers_memory = c->callers_memory,
		.count_elems = s->bytes / sizeof(float),
		.messages = s->messages,
		.lanes = s->lanes,
		.timeout_s = c->timeout_s,
	};
	struct gf_measure_exchange *x = gf_xcalloc(1, sizeof(*x));
	int rc = gf_measure_exchange_open(x, &config, err);

	if (rc)
		free(x);
	else
		*load = x;
	return rc;
}

static void close_load(void *load)
{
	gf_measure_exchange_close(load);
	free(load);
}

static int alone(void *load, const struct gf_measure_budget *budget,
		 struct gf_measure_samples *samples, struct gf_error *err)
{
	return gf_measure_exchange_measure(load, budget, samples, err);
}

/* Backward with nothing beside it, all ranks at once. */
static int without_messages(struct gf_measure_exchange *x, struct gf_measure_pass *pass,
			    double *took_s, struct gf_error *err)
{
	int rc = gf_engine_barrier(x->engine, err);

	if (rc)
		return rc;
	gf_measure_pass_forward(pass);
	gf_measure_pass_settle(pass);
	gf_measure_pass_begin(pass);
	*took_s = gf_measure_pass_backward(pass);
	rc = gf_engine_barrier(x->engine, err);
	gf_measure_pass_forward(pass);
	gf_measure_pass_settle(pass);
	gf_measure_exchange_begin(x);
	return rc;
}

static struct gf_measure_mutual weigh(const struct gf_measure_exchange *x, double begin_s,
				      double without_s, double with_s, double alone_s)
{
	const struct gf_message_times *times = gf_engine_times(x->engine);
	size_t n = x->plan.nmessages;
	double end_s = begin_s + with_s, last_s = begin_s, flown_s, carried_s;
	size_t i;

	for (i = 0; i < n; i++)
		last_s = fmax(last_s, times[i].end_s);
	flown_s = fmin(end_s, last_s) - begin_s;
	carried_s = alone_s * (gf_measure_share_done(times, n, end_s) -
			       gf_measure_share_done(times, n, begin_s));
	return (struct gf_measure_mutual){
		.overlap_slowdown = gf_measure_slowdown(with_s - without_s, carried_s),
		.compute = gf_measure_slowdown(with_s - without_s, flown_s),
		.message = gf_measure_slowdown(flown_s - carried_s, flown_s),
	};
}

static int once(void *load, struct gf_measure_pass *pass, double alone_s,
		struct gf_measure_mutual *mutual, struct gf_error *err)
{
	struct gf_measure_exchange *x = load;
	double without_s = 0, with_s, begin_s;
	size_t i;
	int rc = without_messages(x, pass, &without_s, err);

	for (i = 0; i < x->plan.nmessages; i++)
		gf_measure_exchange_ready(x, i);
	/* now a link has spent what it had saved in the pause */
	rc = rc ? rc : gf_engine_wait_message(x->engine, 0, err);
	gf_measure_pass_begin(pass);
	begin_s = gf_clock_s();
	with_s = gf_measure_pass_backward(pass);
	gf_engine_backward_end(x->engine);
	rc = rc ? rc : gf_measure_exchange_wait(x, err);
	if (rc == 0)
		*mutual = weigh(x, begin_s, without_s, with_s, alone_s);
	return rc;
}

static void issue(void *ctx, size_t tensor)
{
	struct gf_measure_exchange *x = ctx;

	if (tensor < x->plan.nmessages)
		gf_measure_exchange_ready(x, tensor);
}

int gf_measure_traffic_issue(void *load, struct gf_measure_pass *pass, double *lost_s,
			     double *takes_s, struct gf_error *err)
{
	struct gf_measure_exchange *x = load;
	const struct gf_message_times *times;
	double without_s = 0, with_s, end_s;
	size_t i;
	int rc = without_messages(x, pass, &without_s, err);

	pass->on_grad = issue;
	pass->on_grad_ctx = x;
	gf_measure_pass_begin(pass);
	with_s = gf_measure_pass_backward(pass);
	end_s = gf_clock_s();
	pass->on_grad = NULL;
	gf_engine_backward_end(x->engine);
	rc = rc ? rc : gf_measure_exchange_wait(x, err);
	if (rc)
		return rc;
	*lost_s = with_s - without_s;
	times = gf_engine_times(x->engine);
	for (i = 0; i < x->plan.nmessages; i++)
		takes_s[i] = times[i].end_s > end_s ? NAN : times[i].end_s - times[i].start_s;
	return 0;
}

struct everywhere {
	const void *mine;
	size_t bytes;
	void *all;
};

static int gather_there(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	const struct everywhere *e = ctx;

	return gf_comm_allgather(comm, e->mine, e->bytes, e->all, err);
}

static int gather(void *load, const void *mine, size_t bytes, void *all, struct gf_error *err)
{
	struct gf_measure_exchange *x = load;
	struct everywhere e = {mine, bytes, all};

	return gf_engine_call(x->engine, gather_there, &e, err);
}

const struct gf_measure_traffic gf_measure_traffic_host = {
	.backwards = 1.5, /* some are in flight until it ends */
	.open = open_load,
	.alone = alone,
	.once = once,
	.gather = gather,
	.close = close_load,
};
