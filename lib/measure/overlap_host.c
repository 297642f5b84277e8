/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/overlap_parts.h"

#include <stdlib.h>

#include "base/heap.h"
#include "measure/exchange.h"

/* Messages between hosts, through training's engine and its thread. */
static int open_load(const struct gf_bench_overlap *c,
		     const struct gf_bench_sitting *s, void **load,
		     struct gf_error *err)
{
	const struct gf_bench_exchange_config config = {
		.comm = c->comm,
		.algorithm = c->cost->algorithm,
		.count_elems = s->bytes / sizeof(float),
		.messages = s->messages,
		.lanes = s->lanes,
		.timeout_s = c->timeout_s,
	};
	struct gf_bench_exchange *x = gf_xcalloc(1, sizeof(*x));
	int rc = gf_bench_exchange_open(x, &config, err);

	if (rc)
		free(x);
	else
		*load = x;
	return rc;
}

static void close_load(void *load)
{
	gf_bench_exchange_close(load);
	free(load);
}

static int alone(void *load, const struct gf_bench_budget *budget,
		 struct gf_bench_samples *samples, struct gf_error *err)
{
	return gf_bench_exchange_measure(load, budget, samples, err);
}

static int meet(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	(void)ctx;
	return gf_comm_barrier(comm, err);
}

static int once(void *load, struct gf_bench_pass *pass, double alone_s,
		double *slowdown, struct gf_error *err)
{
	struct gf_bench_exchange *x = load;
	double without_s, with_s;
	size_t i;
	int rc = gf_engine_call(x->engine, meet, NULL, err);

	if (rc)
		return rc;
	gf_bench_pass_forward(pass);
	gf_bench_pass_settle(pass);
	gf_bench_pass_begin(pass);
	without_s = gf_bench_pass_backward(pass);
	rc = gf_engine_call(x->engine, meet, NULL, err);
	if (rc)
		return rc;
	gf_bench_pass_forward(pass);
	gf_bench_pass_settle(pass);
	gf_engine_begin(x->engine);
	for (i = 0; i < x->plan.nmessages; i++)
		gf_engine_ready(x->engine, i);
	gf_bench_pass_begin(pass);
	with_s = gf_bench_pass_backward(pass);
	gf_engine_backward_end(x->engine);
	rc = gf_engine_wait(x->engine, err);
	if (rc == 0)
		*slowdown = gf_bench_slowdown(
			with_s - without_s,
			alone_s *
				gf_bench_share_done(gf_engine_times(x->engine),
						    x->plan.nmessages,
						    pass->start_s + with_s));
	return rc;
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

static int gather(void *load, const void *mine, size_t bytes, void *all,
		  struct gf_error *err)
{
	struct gf_bench_exchange *x = load;
	struct everywhere e = {mine, bytes, all};

	return gf_engine_call(x->engine, gather_there, &e, err);
}

const struct gf_bench_load gf_bench_load_host = {
	.open = open_load,
	.alone = alone,
	.once = once,
	.gather = gather,
	.close = close_load,
};
