/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "base/heap.h"
#include "exchange/localsgd/outer.h"
#include "plans.h"
#include "ranks.h"

extern const struct gf_period_plan gf_period_plan_local_sgd;

/*
 * Outer exchanges between threads as ranks, against a simulation of all ranks in one loop that
 * follows the papers' algorithms (Douillard et al. 2025, algorithm 2, of which the others are
 * cases). Parameters change by numbers that a float holds exactly, so that sums have no order;
 * products are rounded.
 */
enum { RANKS = 4, STEPS = 24, ELEMS = 6 + 3 + 5 + 2 };

static const size_t counts[] = {6, 3, 5, 2};
static const struct {
	size_t first, last;
} cut[] = {{0, 0}, {1, 1}, {2, 3}};

struct outer_case {
	struct gf_period period;
	const char *codec;
	double tolerance;
	size_t stop; /* after that step everything is closed and opened again */
};

static const struct outer_case cases[] = {
	{{.steps = 1, .fragments = 1, .outer_rate = 1}, "f32", 1e-6, 0},
	{{.steps = 4, .fragments = 1, .outer_rate = 1}, "f32", 1e-6, 6},
	{{.steps = 8, .fragments = 1, .outer_rate = 1, .begin_steps = 3}, "f32", 1e-6, 2},
	{{.steps = 6, .fragments = 1, .outer_rate = .7, .outer_momentum = .9}, "f32", 1e-5, 7},
	{{.steps = 6, .fragments = 3, .outer_rate = .7, .outer_momentum = .9}, "f32", 1e-5, 0},
	{{.steps = 12,
	  .fragments = 2,
	  .outer_rate = .7,
	  .outer_momentum = .9,
	  .delay = 5,
	  .mix = .5},
	 "f32",
	 1e-5,
	 8},
	{{.steps = 6, .fragments = 2, .outer_rate = 1, .delay = 1}, "f32", 1e-6, 4},
	{{.steps = 6, .fragments = 1, .outer_rate = .7, .outer_momentum = .9}, "q8", .05, 0},
};

/* What a rank's own training does to an element in a step. */
static float change(int rank, size_t step, size_t i)
{
	return (float)((int)((step * 7 + i * 3 + (size_t)rank * 5) % 11) - 5) / 64;
}

/* --- all ranks in one loop ------------------------------------------------ */

struct simulation {
	float x[RANKS][ELEMS], w[ELEMS], v[ELEMS], d[ELEMS];
};

/* The fragment of each element. */
static size_t fragment_of(const struct gf_period *p, size_t i)
{
	size_t fragment, first, count, message = 0, tensor = 0, end = counts[0];

	while (i >= end)
		end += counts[++tensor];
	while (cut[message].last < tensor)
		message++;
	for (fragment = 0; fragment < p->fragments; fragment++) {
		gf_period_messages(p, fragment, &first, &count);
		if (message >= first && message < first + count)
			break;
	}
	return fragment;
}

static void simulate_apply(struct simulation *s, const struct gf_period *p, size_t fragment)
{
	const float r = (float)p->outer_rate, m = (float)p->outer_momentum;
	const float a = (float)p->mix;
	size_t i;
	int rank;

	for (i = 0; i < ELEMS; i++) {
		if (fragment_of(p, i) != fragment)
			continue;
		s->v[i] = m * s->v[i] + s->d[i];
		s->w[i] -= r * (s->d[i] + m * s->v[i]);
		for (rank = 0; rank < RANKS; rank++)
			s->x[rank][i] = a * s->x[rank][i] + (1 - a) * s->w[i];
	}
}

static void simulate(struct simulation *s, const struct gf_period *p, size_t step)
{
	size_t fragment, i;
	int rank;

	for (rank = 0; rank < RANKS; rank++)
		for (i = 0; i < ELEMS; i++)
			s->x[rank][i] += change(rank, step, i);
	if (p->delay && gf_period_ends(p, step, &fragment))
		simulate_apply(s, p, fragment);
	if (!gf_period_begins(p, step, &fragment))
		return;
	for (i = 0; i < ELEMS; i++) {
		float sum = 0;

		if (fragment_of(p, i) != fragment)
			continue;
		for (rank = 0; rank < RANKS; rank++)
			sum += s->w[i] - s->x[rank][i];
		s->d[i] = sum / RANKS;
	}
	if (!p->delay)
		simulate_apply(s, p, fragment);
}

/* --- and each by itself --------------------------------------------------- */

static void periodic(struct gf_plan *p, const struct outer_case *c)
{
	struct gf_period *period = &p->period;
	size_t i;

	*p = (struct gf_plan){
		.ranks = RANKS,
		.lanes = 1,
		.staleness = 1,
		.model = model_of(counts, GF_ARRAY_LENGTH(counts)),
	};
	*period = c->period;
	period->plan = &gf_period_plan_local_sgd;
	period->group_ranks = 2;
	period->lanes = 2;
	period->nmessages = GF_ARRAY_LENGTH(cut);
	period->messages = gf_xcalloc(period->nmessages, sizeof(*p->messages));
	for (i = 0; i < period->nmessages; i++)
		period->messages[i] = (struct gf_message){
			.first = cut[i].first,
			.last = cut[i].last,
			.algorithm = gf_xstrdup("rhd"),
			.codec = gf_xstrdup(c->codec),
		};
}

static void expect(const struct outer_case *c, const float *got, const float *want,
		   const char *what, size_t step)
{
	size_t i;

	for (i = 0; i < ELEMS; i++)
		if (fabsf(got[i] - want[i]) > c->tolerance)
			EXPECT(0, "case %zu step %zu: %s %zu is %g, want %g", (size_t)(c - cases),
			       step, what, i, (double)got[i], (double)want[i]);
}

/* Fragments that have ended; the mean at the end is none. */
static void expect_totals(const struct outer_case *c, struct gf_outer *o)
{
	const struct gf_outer_totals t = gf_outer_totals(o);
	size_t step, fragment, ended = 0;

	for (step = c->stop + 1; step <= STEPS + c->period.delay; step++)
		ended += gf_period_ends(&c->period, step, &fragment);
	EXPECT(fabs(t.exchanges * (double)c->period.fragments - (double)ended) < 1e-9,
	       "case %zu: %g exchanges, want %zu / %zu", (size_t)(c - cases), t.exchanges, ended,
	       c->period.fragments);
	EXPECT(t.exchange_s > 0 && t.exchange_s < 60, "%g s", t.exchange_s);
}

/* Everything that a checkpoint holds, in other memory. */
static struct gf_outer *reopen(struct gf_outer *o, const struct gf_outer_env *env)
{
	struct gf_state before = {0}, after = {0};
	struct gf_error err = {""};
	struct gf_outer *again;
	float w[ELEMS];
	void *kept[8];
	size_t i, bytes;

	EXPECT(!gf_outer_settle(o, &err), "%s", err.text);
	memcpy(w, gf_outer_params(o), sizeof(w));
	gf_outer_state(o, &before);
	for (i = 0; i < before.nitems; i++) {
		bytes = before.items[i].count_elems *
			gf_safetensors_elem_bytes(before.items[i].tensor.dtype);
		kept[i] = gf_xmemdup(before.items[i].data, bytes);
	}
	gf_outer_close(o);
	EXPECT(!gf_outer_open(&again, env, &err), "%s", err.text);
	gf_outer_state(again, &after);
	memcpy(gf_outer_params(again), w, sizeof(w));
	for (i = 0; i < after.nitems; i++) {
		bytes = after.items[i].count_elems *
			gf_safetensors_elem_bytes(after.items[i].tensor.dtype);
		memcpy(after.items[i].data, kept[i], bytes);
		free(kept[i]);
	}
	gf_state_release(&before);
	gf_state_release(&after);
	return again;
}

static void run_case(struct gf_comm *comm, void *ctx)
{
	const struct outer_case *c = ctx;
	struct simulation s = {0};
	struct gf_plan plan;
	float x[ELEMS] = {0}, mean;
	struct gf_outer_env env = {.comm = comm, .plan = &plan, .params = x};
	struct gf_error err = {""};
	struct gf_outer *o;
	size_t step, i;
	bool changed;
	int rank;

	periodic(&plan, c);
	if (gf_outer_open(&o, &env, &err)) {
		EXPECT(0, "%s", err.text);
		return;
	}
	gf_outer_begin(o);
	for (step = 1; step <= STEPS; step++) {
		simulate(&s, &plan.period, step);
		for (i = 0; i < ELEMS; i++)
			x[i] += change(comm->rank, step, i);
		if (gf_outer_due(o, step) && gf_outer_step(o, step, &changed, &err))
			EXPECT(0, "%s", err.text);
		if (step == c->stop)
			o = reopen(o, &env);
		expect(c, x, s.x[comm->rank], "parameter", step);
		expect(c, gf_outer_params(o), s.w, "outer parameter", step);
	}
	/* what is under way ends, and then all have the mean */
	for (i = 0; i < plan.period.fragments; i++)
		for (step = 1; step <= plan.period.delay; step++) {
			size_t fragment;

			if (gf_period_ends(&plan.period, STEPS + step, &fragment) && fragment == i)
				simulate_apply(&s, &plan.period, i);
		}
	EXPECT(!gf_outer_finish(o, STEPS + 1, &err), "%s", err.text);
	expect_totals(c, o);
	for (i = 0; i < ELEMS; i++) {
		for (mean = 0, rank = 0; rank < RANKS; rank++)
			mean += s.x[rank][i] / RANKS;
		s.w[i] = mean;
	}
	expect(c, x, s.w, "last parameter", STEPS);
	EXPECT(memcmp(x, gf_outer_params(o), sizeof(x)) == 0, "x is w");
	gf_outer_close(o);
	gf_plan_release(&plan);
}

/* The worked example of documents/periods/period.h. */
static void test_example(void)
{
	const float x[2] = {0.8f, 0.6f};
	float w = 1, v = 0, d[2], sum;

	gf_outer_difference(&d[0], &w, &x[0], 1);
	gf_outer_difference(&d[1], &w, &x[1], 1);
	sum = d[0] + d[1];
	gf_outer_update(&w, &v, &sum, 0.5f, 0.7f, 0.9f, 1);
	EXPECT(fabsf(v - 0.3f) < 1e-6f && fabsf(w - 0.601f) < 1e-6f, "v %g, w %g", (double)v,
	       (double)w);
}

int main(void)
{
	size_t i;

	watchdog(60);
	test_example();
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		on_ranks(RANKS, run_case, (void *)&cases[i]);
	return TEST_END();
}
