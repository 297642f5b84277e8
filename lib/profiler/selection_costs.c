/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/profile_parts.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "cost/fit.h"
#include "cost/stat.h"
#include "documents/selections/selection.h"
#include "collectives/codecs/codec.h"
#include "collectives/runnable.h"
#include "exchange/exchange.h"
#include "gf_kernels.h"
#include "profiler/chain.h"
#include "compressors/select.h"
#include "simulator/predict.h"

/* One message is one square matrix: some selections look at the shape. The last side is the model's
 * if that is more than the one before, up to 64 MiB. */
static const size_t sides[] = {32, 128, 512, 1024};
enum { SIZES = GF_ARRAY_LENGTH(sides), FEWEST_SIZES = 3, MOST_SIDE = 4096 };
/* Gradients repeat those drawn: making each anew takes longer than what is measured. Others for
 * each gradient: weights, momentum, activations. */
enum { DRAWN = 1 << 16, OTHERS = 3 };
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
	float *memory;         /* the caller's; NULL: gradients are made in the pool */
	float *drawn, *others; /* one piece of memory */
	struct gf_rng rng;
};

/* What is measured. */
struct seat {
	const char *name; /* of a selection */
	size_t side;
	bool other_share; /* of elements, than by default */
	bool scaled;
};

static bool nothing_asked(const void *ctx, const char *option)
{
	(void)ctx;
	(void)option;
	return false;
}

static void make_model(struct bench *b, size_t side)
{
	struct gf_model_profile *m = gf_model_profile_untimed("selection", 1);

	b->shape = (struct gf_shape){.rank = 2, .dims = {side, side}};
	m->tensors->name = gf_xstrdup("matrix");
	m->tensors->count_elems = side * side;
	gf_tensor_set_shape(m->tensors, b->shape.dims, b->shape.rank);
	b->plan.model = m;
}

/* The share of elements that goes out, in params; NULL: none is set. */
static double *share_of(const struct gf_selection *s)
{
	const struct gf_field *f = s->params ? gf_selection_plan(s)->record->fields : NULL;

	while (f && f->key && !f->share)
		f++;
	return f && f->key ? (double *)(void *)((char *)s->params + f->offset) : NULL;
}

static int make_plan(struct bench *b, const struct seat *seat, struct gf_error *err)
{
	const struct gf_select_plan *select = gf_select_plan_find(seat->name);
	struct gf_plan *p = &b->plan;
	GF_RELEASED(gf_text_release) struct gf_text notes = {0};
	double *share;
	int rc = 0;

	p->producer = gf_xstrdup("gf-profile " GF_VERSION);
	p->system = gf_xstrdup("measure");
	p->policy = gf_xstrdup("single");
	p->ranks = b->config->comm->ranks;
	p->lanes = p->staleness = 1;
	make_model(b, seat->side);
	p->threshold_bytes = gf_model_profile_bytes(p->model);
	p->nmessages = 1;
	p->messages = gf_xcalloc(1, sizeof(*p->messages));
	p->messages->algorithm = gf_xstrdup(algorithm);
	p->messages->codec = gf_xstrdup("f32");
	p->selection = gf_selection_new(select, select->defaults);
	share = share_of(&p->selection);
	if (share && seat->other_share)
		*share = sqrt(*share);
	if (select->fit)
		rc = select->fit(p->selection.params, p->model, nothing_asked, NULL, &notes, err);
	gf_plan_set_types(p);
	return rc;
}

static int open_exchange(struct bench *b, bool scaled, struct gf_error *err)
{
	const size_t elems = b->plan.model->tensors->count_elems;
	const enum gf_dtype f32 = GF_F32;
	const bool callers = b->config->callers_memory;

	if (callers)
		b->memory = gf_xcalloc(elems, sizeof(*b->memory));
	b->drawn = gf_xcalloc(DRAWN + OTHERS * elems, sizeof(*b->drawn));
	b->others = b->drawn + DRAWN;
	/* written: what only reads sees the system's one page of zeros */
	memset(b->others, 1, OTHERS * elems * sizeof(*b->others));
	gf_rng_init(&b->rng, 1, (uint64_t)b->config->comm->rank);
	for (size_t i = 0; i < DRAWN; i++)
		b->drawn[i] = (float)gf_rng_normal(&b->rng);
	return gf_exchange_open(&b->exchange,
				&(struct gf_exchange_env){
					.comm = b->config->comm,
					.plan = &b->plan,
					.shapes = &b->shape,
					.momentum = momentum,
					.scaled = scaled,
					.timeout_s = b->config->timeout_s,
					.threads = b->config->threads,
					.dtypes = callers ? &f32 : NULL,
				},
				err);
}

/* As a pass of compute would, and its gradients. Returns its seconds. */
static double compute(struct bench *b)
{
	const double from_s = gf_clock_s();
	float *to = b->memory ? b->memory : gf_exchange_pool(b->exchange)->data;
	const size_t elems = b->plan.model->tensors->count_elems;
	size_t at, n, from;

	gf_kernels()->axpby_f32(0.5f, b->others, 0.5f, b->others + elems, (OTHERS - 1) * elems);
	for (at = 0; at < elems; at += n) {
		from = (size_t)gf_rng_below(&b->rng, DRAWN);
		n = DRAWN - from < elems - at ? DRAWN - from : elems - at;
		memcpy(to + at, b->drawn + from, n * sizeof(*to));
	}
	return gf_clock_s() - from_s;
}

/* Seconds of the thread that moves messages, apart from moving them. */
static double handled_s(struct bench *b)
{
	struct gf_totals t = gf_exchange_totals(b->exchange);

	return t.hooks_s + t.coding_s;
}

static int run_step(struct bench *b, size_t number, double *cost_s, struct gf_error *err)
{
	struct gf_exchange *x = b->exchange;
	struct gf_exchange_step *step;
	struct gf_select_sums sums;
	double before_s = handled_s(b), own_s, from_s;
	int rc;

	/* the message before has left memory of its own in the caches */
	own_s = compute(b);
	own_s = fmax(0, own_s - compute(b));
	rc = gf_engine_barrier(gf_exchange_engine(x), err);
	if (rc)
		return rc;
	from_s = gf_clock_s();
	step = gf_exchange_begin(x, number, 1, 0);
	own_s += gf_clock_s() - from_s;
	if (b->memory)
		gf_exchange_post(step, 0, b->memory);
	gf_exchange_ready(step, &(size_t){0}, 1);
	gf_exchange_backward_end(step);
	rc = gf_exchange_next(x, true, &step, err);
	from_s = gf_clock_s();
	/* what came, for the optimiser; a caller's memory has it */
	if (!rc && !b->memory)
		rc = gf_exchange_sums(step, GF_EXCHANGE_WHOLE, &sums, NULL, err);
	rc = rc ?: gf_exchange_take(step, !b->memory, err);
	*cost_s = own_s + gf_clock_s() - from_s + handled_s(b) - before_s;
	return rc;
}

static int slowest_rank(struct gf_comm *comm, void *ctx, struct gf_error *err)
{
	return gf_measure_slowest(comm, ctx, 1, err);
}

/* The median cost of a message. */
static int measure_size(struct bench *b, double *median_s, struct gf_error *err)
{
	double costs[MOST], began_s, step_s;
	size_t step = first_step;
	int repeats, i, rc = 0;

	began_s = gf_clock_s();
	for (i = 0; i < UNCOUNTED && rc == 0; i++)
		rc = run_step(b, step++, &costs[0], err);
	/* how many fit into the time, by the slowest rank's clock */
	step_s = (gf_clock_s() - began_s) / UNCOUNTED;
	rc = rc ?: gf_exchange_call(b->exchange, slowest_rank, &step_s, err);
	repeats = (int)fmin(MOST, fmax(FEWEST, b->config->time_s / step_s));
	for (i = 0; i < repeats && rc == 0; i++)
		rc = run_step(b, step++, &costs[i], err);
	if (rc == 0)
		*median_s = gf_stat_median(costs, (size_t)repeats);
	return rc;
}

/* *runs: the plan can be run here, which all ranks find alike. */
static int sit(const struct gf_measure_selections *c, const struct seat *seat, double *median_s,
	       double *handled_bytes, bool *runs, struct gf_error *err)
{
	struct gf_wire wires[GF_WIRES_MOST];
	struct bench b = {.config = c};
	struct gf_error why;
	int rc = make_plan(&b, seat, err);

	*runs = rc == 0 && gf_select_check(&b.plan, &why) == 0 &&
		gf_plan_runnable(&b.plan, &why) == 0;
	if (*runs) {
		rc = open_exchange(&b, seat->scaled, err);
		rc = rc ?: measure_size(&b, median_s, err);
		gf_plan_wires(&b.plan, 0, 0, wires);
		*handled_bytes = gf_wire_handled_bytes(wires, b.plan.ranks);
	}
	gf_exchange_close(b.exchange);
	gf_plan_release(&b.plan);
	if (!c->comm->broken)
		free(b.memory);
	free(b.drawn);
	if (rc == 0 && *runs)
		rc = gf_measure_slowest(c->comm, median_s, 1, err);
	return rc;
}

static size_t side_of(const struct gf_measure_selections *c, size_t size)
{
	size_t side = (size_t)ceil(sqrt((double)c->model_bytes) / 2);

	if (size + 1 < SIZES || side <= sides[size - 1])
		return sides[size];
	return side < MOST_SIDE ? side : MOST_SIDE;
}

static double bytes_of(size_t side)
{
	return (double)(side * side * sizeof(float));
}

/* Of a selection: bytes of a message and of what is sent, and seconds. */
struct points {
	double bytes[SIZES], handled[SIZES], times[SIZES], sent_s_per_byte;
	size_t n;
};

static void add(const struct gf_measure_selections *c, struct gf_processing *out, const char *name,
		const struct gf_lines_fit *f, const struct points *p)
{
	struct gf_selection_cost *to;

	out->selections =
		gf_xreallocarray(out->selections, out->nselections + 1, sizeof(*out->selections));
	to = &out->selections[out->nselections++];
	*to = (struct gf_selection_cost){
		.of = {.name = gf_xstrdup(name),
		       .device = gf_xstrdup("cpu"),
		       .backward_share = c->backward_share,
		       .fit = {.r_squared = f->r_squared,
			       .residual_rms = f->residual_rms,
			       .residual_max = f->residual_max,
			       .npoints = p->n,
			       .size_bytes = gf_xcalloc(p->n, sizeof(size_t)),
			       .time_s = gf_xmemdup(p->times, p->n * sizeof(double))}},
		.alpha_s = f->lines->startup_s,
		.beta_s_per_byte = f->lines->per_byte_s,
		.sent_s_per_byte = p->sent_s_per_byte,
	};
	for (size_t i = 0; i < p->n; i++)
		to->of.fit.size_bytes[i] = (size_t)p->bytes[i];
}

/* What goes out and comes in, by the size that all selections are measured at. Points then have
 * what is left, half of it at least: noise leaves a price. */
static int measure_sent(const struct gf_measure_selections *c, const char *name, struct points *p,
			struct gf_error *err)
{
	const size_t at = FEWEST_SIZES - 1;
	const struct seat seat = {name, sides[at], .other_share = true};
	double time_s, more;
	bool runs = true;
	int rc = sit(c, &seat, &time_s, &more, &runs, err);

	if (rc || !runs || !(more > p->handled[at]))
		return rc;
	p->sent_s_per_byte = fmax(0, (time_s - p->times[at]) / (more - p->handled[at]));
	for (size_t i = 0; i < p->n; i++)
		p->times[i] -= fmin(p->times[i] / 2, p->sent_s_per_byte * p->handled[i]);
	return 0;
}

static int measure(const struct gf_measure_selections *c, const char *name,
		   struct gf_processing *out, struct gf_error *err)
{
	struct points p = {.n = 0};
	struct gf_lines_fit f;
	bool runs = true;
	int rc = 0;

	for (size_t i = 0; i < SIZES && rc == 0 && runs; i++) {
		const struct seat seat = {name, side_of(c, i)};

		p.bytes[p.n] = bytes_of(seat.side);
		if (i >= FEWEST_SIZES && seat.side == sides[i] &&
		    p.bytes[p.n] > (double)c->max_bytes)
			break;
		rc = sit(c, &seat, &p.times[p.n], &p.handled[p.n], &runs, err);
		p.n++;
	}
	if (rc == 0 && runs) {
		rc = measure_sent(c, name, &p, err);
		rc = rc ? rc
			: gf_fit_lines(&(struct gf_fit_points){p.bytes, p.times, p.n}, 1, &f, err);
	}
	if (rc)
		gf_error_prefix(err, "selection %s", name);
	else if (runs)
		add(c, out, name, &f, &p);
	return rc;
}

/* What scaling takes, by dense messages that are scaled. */
static int measure_scale(const struct gf_measure_selections *c, struct gf_processing *out,
			 struct gf_error *err)
{
	const struct seat seat = {gf_selection_name(&(struct gf_selection){0}),
				  sides[FEWEST_SIZES - 1], .scaled = true};
	double time_s = 0, handled;
	bool runs;
	int rc = sit(c, &seat, &time_s, &handled, &runs, err);

	for (size_t i = 0; i < out->ncodecs && rc == 0 && runs; i++)
		if (gf_codec_find(out->codecs[i].of.name)->greatest > 0)
			out->codecs[i].scale_s_per_byte = time_s / bytes_of(seat.side);
	return rc;
}

int gf_measure_selections(const struct gf_measure_selections *c, struct gf_processing *out,
			  struct gf_error *err)
{
	int rc = measure_scale(c, out, err);

	for (size_t i = 0; gf_select_plans[i] && rc == 0; i++)
		if (gf_selection_runs(gf_select_plans[i]) &&
		    !(gf_select_plans[i]->traits & GF_SELECT_LOSSLESS))
			rc = measure(c, gf_select_plans[i]->name, out, err);
	return rc;
}
