/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure/selection_costs.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "cost/fit.h"
#include "cost/stat.h"
#include "doc/selection.h"
#include "coll/runnable.h"
#include "exchange/exchange.h"
#include "measure/chain.h"
#include "select/select.h"

/* One message is one square matrix: some selections look at the shape. */
static const size_t sides[] = {32, 128, 512, 1024};
enum { SIZES = GF_ARRAY_LENGTH(sides), FEWEST_SIZES = 3 };
enum { UNCOUNTED = 2, FEWEST = 3, MOST = 15 };
/* After the warm-up of any selection. */
static const size_t first_step = (size_t)1 << 40;
static const double momentum = 0.9;
/* All ranks get the same bits by it, on any number of ranks. */
static const char algorithm[] = "ring";

struct bench {
	const struct gf_measure_selections *config;
	struct gf_plan plan;
	struct gf_shape shape;
	struct gf_exchange *exchange;
	float *memory; /* the caller's; NULL: gradients are made in the pool */
	struct gf_rng rng;
};

static bool nothing_asked(const void *ctx, const char *option)
{
	(void)ctx;
	(void)option;
	return false;
}

static void make_model(struct bench *b, size_t side)
{
	struct gf_model_profile *m = gf_xcalloc(1, sizeof(*m));

	b->shape = (struct gf_shape){.rank = 2, .dims = {side, side}};
	m->name = gf_xstrdup("selection");
	m->device = gf_xstrdup("cpu");
	m->overlap_slowdown = 1;
	m->ntensors = 1;
	m->tensors = gf_xcalloc(1, sizeof(*m->tensors));
	m->tensors->name = gf_xstrdup("matrix");
	m->tensors->count_elems = side * side;
	m->tensors->need_s = NAN;
	gf_tensor_set_shape(m->tensors, b->shape.dims, b->shape.rank);
	b->plan.model = m;
}

static int make_plan(struct bench *b, const char *name, size_t side,
		     struct gf_error *err)
{
	const struct gf_select_plan *select = gf_select_plan_find(name);
	struct gf_plan *p = &b->plan;
	struct gf_text notes = {0};
	int rc = 0;

	p->producer = gf_xstrdup("gf-profile " GF_VERSION);
	p->system = gf_xstrdup("measure");
	p->policy = gf_xstrdup("single");
	p->ranks = b->config->comm->ranks;
	p->lanes = 1;
	p->staleness = 1;
	make_model(b, side);
	p->threshold_bytes = gf_model_profile_bytes(p->model);
	p->nmessages = 1;
	p->messages = gf_xcalloc(1, sizeof(*p->messages));
	p->messages->algorithm = gf_xstrdup(algorithm);
	p->messages->codec = gf_xstrdup("f32");
	p->selection = gf_selection_new(select, select->defaults);
	if (select->fit)
		rc = select->fit(p->selection.params, p->model, nothing_asked,
				 NULL, &notes, err);
	gf_text_release(&notes);
	gf_plan_set_types(p);
	return rc;
}

static int open_exchange(struct bench *b, struct gf_error *err)
{
	const enum gf_dtype f32 = GF_F32;
	const bool callers = b->config->callers_memory;

	if (callers)
		b->memory = gf_xcalloc(b->plan.model->tensors->count_elems,
				       sizeof(*b->memory));
	return gf_exchange_open(&b->exchange,
				&(struct gf_exchange_env){
					.comm = b->config->comm,
					.plan = &b->plan,
					.shapes = &b->shape,
					.momentum = momentum,
					.timeout_s = b->config->timeout_s,
					.threads = b->config->threads,
					.dtypes = callers ? &f32 : NULL,
				},
				err);
}

static void close_bench(struct bench *b)
{
	gf_exchange_close(b->exchange);
	gf_plan_release(&b->plan);
	gf_measure_memory_free(b->config->comm, b->memory);
}

static void fill(struct bench *b)
{
	float *to = b->memory ? b->memory : gf_exchange_pool(b->exchange);
	size_t i;

	for (i = 0; i < b->plan.model->tensors->count_elems; i++)
		to[i] = (float)gf_rng_normal(&b->rng);
}

/* Seconds of the thread that moves messages, apart from moving them. */
static double handled_s(struct bench *b)
{
	struct gf_engine_totals t =
		gf_engine_totals(gf_exchange_engine(b->exchange));

	return t.hooks_s + t.coding_s;
}

/* What came, for the optimiser; a caller's memory has it. */
static int take(struct bench *b, struct gf_error *err)
{
	struct gf_select_sums sums;
	int rc = b->memory ? 0 : gf_exchange_sums(b->exchange, &sums, err);

	if (rc == 0 && !b->memory)
		gf_exchange_adopt(b->exchange);
	return rc ? rc : gf_exchange_take(b->exchange, err);
}

static int run_step(struct bench *b, size_t step, double *cost_s,
		    struct gf_error *err)
{
	struct gf_exchange *x = b->exchange;
	double before_s = handled_s(b), own_s, from_s;
	int rc;

	fill(b);
	rc = gf_engine_barrier(gf_exchange_engine(x), err);
	if (rc)
		return rc;
	from_s = gf_clock_s();
	(void)gf_exchange_begin(x, step, 1);
	own_s = gf_clock_s() - from_s;
	if (b->memory)
		gf_exchange_post(x, 0, b->memory);
	gf_exchange_ready(x, &(size_t){0}, 1);
	gf_exchange_backward_end(x);
	rc = gf_exchange_wait_all(x, err);
	from_s = gf_clock_s();
	rc = rc ? rc : take(b, err);
	*cost_s = own_s + gf_clock_s() - from_s + handled_s(b) - before_s;
	return rc;
}

static int slowest_rank(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	return gf_measure_slowest(comm, ctx, 1, err);
}

/* How many fit into the time, by the slowest rank's clock. */
static int repeats_of(struct bench *b, double began_s, int *repeats,
		      struct gf_error *err)
{
	double step_s = (gf_clock_s() - began_s) / UNCOUNTED;
	int rc = gf_exchange_call(b->exchange, slowest_rank, &step_s, err);

	*repeats = (int)fmin(MOST, fmax(FEWEST, b->config->time_s / step_s));
	return rc;
}

/* The median cost of a message. */
static int measure_size(struct bench *b, double *median_s, struct gf_error *err)
{
	double costs[MOST], began_s;
	size_t step = first_step;
	int repeats = 0, i, rc = 0;

	gf_rng_init(&b->rng, 1, (uint64_t)b->config->comm->rank);
	began_s = gf_clock_s();
	for (i = 0; i < UNCOUNTED && rc == 0; i++)
		rc = run_step(b, step++, &costs[0], err);
	rc = rc ? rc : repeats_of(b, began_s, &repeats, err);
	for (i = 0; i < repeats && rc == 0; i++)
		rc = run_step(b, step++, &costs[i], err);
	if (rc == 0)
		*median_s = gf_stat_median(costs, (size_t)repeats);
	return rc;
}

/* *runs: the plan can be run here, which all ranks find alike. */
static int sit(const struct gf_measure_selections *c, const char *name,
	       size_t side, double *median_s, bool *runs, struct gf_error *err)
{
	struct bench b = {.config = c};
	struct gf_error why;
	int rc = make_plan(&b, name, side, err);

	*runs = rc == 0 && gf_select_check(&b.plan, &why) == 0 &&
		gf_plan_runnable(&b.plan, &why) == 0;
	if (*runs) {
		rc = open_exchange(&b, err);
		rc = rc ? rc : measure_size(&b, median_s, err);
	}
	close_bench(&b);
	if (rc == 0 && *runs)
		rc = gf_measure_slowest(c->comm, median_s, 1, err);
	return rc;
}

static size_t bytes_of(size_t size)
{
	return sides[size] * sides[size] * sizeof(float);
}

static void add(struct gf_processing *out, const char *name,
		const struct gf_linear_fit *f, const double *times, size_t n)
{
	struct gf_selection_cost *c;
	size_t i;

	out->selections =
		gf_xreallocarray(out->selections, out->nselections + 1,
				 sizeof(*out->selections));
	c = &out->selections[out->nselections++];
	*c = (struct gf_selection_cost){
		.of = {.name = gf_xstrdup(name),
		       .device = gf_xstrdup("cpu"),
		       .fit = {.r_squared = f->r_squared,
			       .residual_rms = f->residual_rms,
			       .residual_max = f->residual_max,
			       .npoints = n,
			       .size_bytes = gf_xcalloc(n, sizeof(size_t)),
			       .time_s = gf_xmemdup(times,
						    SIZES * sizeof(*times))}},
		.alpha_s = f->startup_s,
		.beta_s_per_byte = f->per_byte_s,
	};
	for (i = 0; i < n; i++)
		c->of.fit.size_bytes[i] = bytes_of(i);
}

static int measure(const struct gf_measure_selections *c, const char *name,
		   struct gf_processing *out, struct gf_error *err)
{
	double times[SIZES], bytes[SIZES];
	struct gf_linear_fit f;
	bool runs = true;
	size_t n = 0;
	int rc = 0;

	while (n < SIZES && rc == 0 && runs &&
	       (n < FEWEST_SIZES || bytes_of(n) <= c->max_bytes)) {
		bytes[n] = (double)bytes_of(n);
		rc = sit(c, name, sides[n], &times[n], &runs, err);
		n++;
	}
	if (rc == 0 && runs)
		rc = gf_fit_linear(bytes, times, n, &f, err);
	if (rc == 0 && runs)
		add(out, name, &f, times, n);
	if (rc)
		gf_error_prefix(err, "selection %s", name);
	return rc;
}

int gf_measure_selections(const struct gf_measure_selections *c,
			  struct gf_processing *out, struct gf_error *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; gf_selections[i].name && rc == 0; i++) {
		const char *name = gf_selections[i].name;

		if (gf_selections[i].ops &&
		    !(gf_select_plan_find(name)->traits & GF_SELECT_LOSSLESS))
			rc = measure(c, name, out, err);
	}
	return rc;
}
