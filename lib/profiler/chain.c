/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/chain.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "gf_kernels.h"

/* Connections and caches are warm after one repeat; a short one may still find threads asleep. */
static const double short_repeat_s = 0.02;

int gf_measure_uncounted(double repeat_s)
{
	return repeat_s < short_repeat_s ? 2 : 1;
}

static void make_plan(struct gf_measure_exchange *x)
{
	struct gf_plan *p = &x->plan;

	p->producer = gf_xstrdup("gf-profile " GF_VERSION);
	p->system = gf_xstrdup("measure");
	p->policy = gf_xstrdup("wfbp");
	p->ranks = x->config.comm->ranks;
	p->lanes = x->config.lanes;
	p->staleness = 1;
	p->nmessages = (size_t)x->config.messages;
	p->model = gf_model_profile_untimed("exchange", p->nmessages);
	p->messages = gf_xcalloc(p->nmessages, sizeof(*p->messages));
	for (int i = 0; i < x->config.messages; i++) {
		struct gf_tensor *t = &p->model->tensors[i];
		struct gf_message *m = &p->messages[i];

		t->name = gf_xasprintf("t%d", i);
		t->count_elems = x->config.count_elems;
		m->first = m->last = (size_t)i;
		m->mode = x->config.lanes > 1 ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
		m->algorithm = gf_xstrdup(x->config.by->algorithm);
		m->codec = gf_xstrdup(x->config.codec ? x->config.codec : "f32");
		m->nstages = x->config.by->nstages;
		m->stages = gf_stages_copy(x->config.by->stages, m->nstages);
	}
	gf_plan_set_types(p);
}

static size_t elems_of(const struct gf_measure_exchange_config *c)
{
	return (size_t)c->messages * c->count_elems;
}

static int open_exchange(struct gf_measure_exchange *x, struct gf_error *err)
{
	const struct gf_measure_exchange_config *config = &x->config;
	GF_FREED enum gf_dtype *dtypes = NULL; /* f32 */
	int rc;

	if (config->callers_memory) {
		dtypes = gf_xcalloc(x->plan.nmessages, sizeof(*dtypes));
		x->memory = gf_xcalloc(elems_of(config), sizeof(*x->memory));
	}
	rc = gf_exchange_open(&x->exchange,
			      &(struct gf_exchange_env){
				      .comm = config->comm,
				      .plan = &x->plan,
				      .timeout_s = config->timeout_s,
				      .threads = config->compute_threads,
				      .dtypes = dtypes,
			      },
			      err);
	if (rc < 0)
		return rc;
	x->engine = gf_exchange_engine(x->exchange);
	x->grads = gf_exchange_pool(x->exchange)->data;
	return 0;
}

static int open_halves(struct gf_measure_exchange *x, struct gf_error *err)
{
	const struct gf_measure_exchange_config *c = &x->config;
	const size_t n = x->plan.nmessages;
	size_t *counts = gf_xcalloc(n, sizeof(*counts)), i;
	int rc;

	for (i = 0; i < n; i++)
		counts[i] = c->count_elems;
	rc = gf_comm_agree(c->comm, gf_pool_init(&x->pool, c->comm, counts, n, err), err);
	free(counts);
	if (rc == 0)
		rc = gf_engine_new(
			&(struct gf_engine_config){
				.comm = c->comm,
				.plan = &x->plan,
				.pool = &x->pool,
				.timeout_s = c->timeout_s,
				.compute_threads = c->compute_threads,
			},
			&x->engine, err);
	if (rc < 0)
		return rc;
	x->grads = x->pool.data;
	x->work = gf_xcalloc(n, sizeof(*x->work));
	gf_work_of_plan(&x->plan, &x->pool, x->work);
	for (i = 0; i < n; i++)
		x->work[i].half = c->half;
	return gf_engine_agree(x->engine, gf_engine_expect(x->engine, x->work, n, err), err);
}

size_t gf_measure_others_bytes(size_t gradient_bytes)
{
	static const size_t most = (size_t)256 << 20;

	return 2 * (gradient_bytes < most / 2 ? gradient_bytes : most / 2);
}

/* As a pass of compute and an update. */
static void compute(struct gf_measure_exchange *x)
{
	const size_t n = x->config.others_bytes / sizeof(*x->others) / 2;

	if (!x->others)
		return;
	gf_kernels()->axpby_f32(0.5f, x->others, 0.5f, x->others + n, n);
	memset(x->memory ? x->memory : x->grads, 0, elems_of(&x->config) * sizeof(*x->grads));
}

int gf_measure_exchange_open(struct gf_measure_exchange *x,
			     const struct gf_measure_exchange_config *config, struct gf_error *err)
{
	int rc;

	memset(x, 0, sizeof(*x));
	x->config = *config;
	make_plan(x);
	rc = (config->half == GF_COLL_WHOLE ? open_exchange : open_halves)(x, err);
	if (rc < 0) {
		gf_measure_exchange_close(x);
		return rc;
	}
	if (config->others_bytes) {
		/* written: what only reads sees the system's one page of zeros */
		x->others = gf_xcalloc(1, config->others_bytes);
		memset(x->others, 1, config->others_bytes);
	}
	/* zeros: sums of sums would grow out of range */
	memset(x->grads, 0, elems_of(config) * sizeof(*x->grads));
	return 0;
}

void gf_measure_exchange_close(struct gf_measure_exchange *x)
{
	gf_exchange_close(x->exchange);
	if (!x->exchange) {
		gf_engine_free(x->engine);
		if (!x->config.comm->broken)
			gf_pool_release(&x->pool);
		free(x->work);
	}
	gf_plan_release(&x->plan);
	free(x->others);
	/* else a rank may yet fetch a lost message */
	if (!x->config.comm->broken)
		free(x->memory);
	memset(x, 0, sizeof(*x));
}

void gf_measure_exchange_begin(struct gf_measure_exchange *x)
{
	if (!x->exchange)
		gf_engine_begin_work(x->engine, x->work, x->plan.nmessages);
	else
		x->step = gf_exchange_begin(x->exchange, x->step ? x->step->number + 1 : 1, 1, 0);
}

void gf_measure_exchange_ready(struct gf_measure_exchange *x, size_t message)
{
	if (x->memory)
		gf_exchange_post(x->step, message, x->memory + message * x->config.count_elems);
	gf_engine_ready_all(x->engine, &message, 1);
}

int gf_measure_exchange_wait(struct gf_measure_exchange *x, struct gf_error *err)
{
	struct gf_exchange_step *step;
	int rc = x->exchange ? gf_exchange_next(x->exchange, true, &step, err)
			     : gf_engine_wait(x->engine, err);

	return rc || !x->exchange || !step ? rc : gf_exchange_take(step, true, err);
}

int gf_measure_exchange_go(struct gf_measure_exchange *x, struct gf_error *err)
{
	gf_measure_exchange_begin(x);
	for (size_t i = 0; i < x->plan.nmessages; i++)
		gf_measure_exchange_ready(x, i);
	gf_engine_backward_end(x->engine);
	return gf_measure_exchange_wait(x, err);
}

/* Ranks meet, then all messages go; *elapsed_s until the last has come. */
static int exchange_once(struct gf_measure_exchange *x, double *elapsed_s, struct gf_error *err)
{
	double start;
	int rc;

	compute(x);
	rc = gf_engine_barrier(x->engine, err);
	start = gf_clock_s();
	if (rc < 0)
		return rc;
	rc = gf_measure_exchange_go(x, err);
	*elapsed_s = gf_clock_s() - start;
	return rc;
}

int gf_measure_slowest(struct gf_comm *comm, double *values, size_t count, struct gf_error *err)
{
	GF_FREED double *all = gf_xcalloc((size_t)comm->ranks * count + 1, sizeof(*all));
	int rc = gf_comm_allgather(comm, values, count * sizeof(*values), all, err);

	for (size_t r = 0; rc == 0 && r < (size_t)comm->ranks; r++)
		for (size_t i = 0; i < count; i++)
			values[i] = fmax(values[i], all[r * count + i]);
	return rc;
}

struct times {
	double *values;
	size_t count;
};

static int slowest_rank(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	struct times *t = ctx;

	return gf_measure_slowest(comm, t->values, t->count, err);
}

static int run(void *ctx, double *times, int repeats, struct gf_error *err)
{
	struct gf_measure_exchange *x = ctx;
	struct times slowest = {times, (size_t)repeats};
	int i, rc = 0;

	for (i = 0; i < repeats && rc == 0; i++)
		rc = exchange_once(x, &times[i], err);
	return rc ?: gf_engine_call(x->engine, slowest_rank, &slowest, err);
}

void gf_measure_samples_add(struct gf_measure_samples *s, double value)
{
	*gf_array_push(&s->values, &s->count, &s->capacity) = value;
}

void gf_measure_samples_release(struct gf_measure_samples *s)
{
	free(s->values);
	memset(s, 0, sizeof(*s));
}

static int run_slowest(struct gf_comm *comm, gf_measure_run *once, void *ctx, double *times,
		       int repeats, struct gf_error *err)
{
	int rc = once(ctx, times, repeats, err);

	if (rc == 0 && comm)
		rc = gf_measure_slowest(comm, times, (size_t)repeats, err);
	return rc;
}

int gf_measure_repeat(struct gf_comm *comm, gf_measure_run *once, void *ctx,
		      const struct gf_measure_budget *budget, struct gf_measure_samples *samples,
		      struct gf_error *err)
{
	double last = 0, *times;
	int rc = run_slowest(comm, once, ctx, &last, 1, err), repeats, i;

	if (rc == 0 && gf_measure_uncounted(last) > 1)
		rc = run_slowest(comm, once, ctx, &last, 1, err);
	if (rc)
		return rc;
	/* the same on all ranks, since last is */
	repeats = (int)fmin(budget->high, fmax(budget->low, budget->budget_s / last));
	times = gf_xcalloc((size_t)repeats, sizeof(*times));
	rc = run_slowest(comm, once, ctx, times, repeats, err);
	for (i = 0; i < repeats && rc == 0; i++)
		gf_measure_samples_add(samples, times[i]);
	free(times);
	return rc;
}

int gf_measure_exchange_measure(struct gf_measure_exchange *x,
				const struct gf_measure_budget *budget,
				struct gf_measure_samples *samples, struct gf_error *err)
{
	return gf_measure_repeat(NULL, run, x, budget, samples, err);
}

int gf_measure_exchange_sitting(const struct gf_measure_exchange_config *config,
				const struct gf_measure_budget *budget,
				struct gf_measure_samples *samples, struct gf_error *err)
{
	struct gf_measure_exchange x;
	int rc = gf_measure_exchange_open(&x, config, err);

	if (rc < 0)
		return rc;
	rc = gf_measure_exchange_measure(&x, budget, samples, err);
	gf_measure_exchange_close(&x);
	return rc;
}
