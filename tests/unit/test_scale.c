/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss scaling: what overflows is skipped, on all ranks, and leaves no trace.
 */
#include "pipe_rig.h"
#include "selections.h"
#include "trainer/method_parts.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MAX_STEPS   40
#define F16_LARGEST 65504.
/* A dozen updates whose gradients were rounded to f16. */
#define TOLERANCE 2e-3

#define SCALE(initial, growth)                                                                     \
	{                                                                                          \
		.used = true, .dynamic = true, .growth_steps = growth, .now = initial              \
	}
#define MOMENTUM                                                                                   \
	{                                                                                          \
		.name = "sgd", .momentum = .9, .weight_decay = .01                                 \
	}

/* --- the rule --------------------------------------------------------------
 */

static void test_rule(void)
{
	static const struct {
		const char *steps; /* x: bad */
		double now;
		uint64_t good;
	} cases[] = {
		{"", 8, 0},       {"..", 8, 2},  {"...", 16, 0}, {"x", 4, 0},       {"..x..", 4, 2},
		{"..x...", 8, 0}, {"xxx", 1, 0}, {"...x", 8, 0}, {"......", 32, 0},
	};
	struct gf_loss_scale stuck = SCALE(1, 3), fixed = {.used = true};
	struct gf_loss_scale late = SCALE(8, 3);
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_loss_scale s = SCALE(8, 3);

		for (k = 0; cases[i].steps[k]; k++) {
			bool bad = cases[i].steps[k] == 'x';

			EXPECT(gf_loss_scale_note(&s, s.now, bad) == bad, "%s: step %zu",
			       cases[i].steps, k);
		}
		EXPECT(s.now == cases[i].now && s.good == cases[i].good, "%s: %g after %d",
		       cases[i].steps, s.now, (int)s.good);
	}
	EXPECT(!gf_loss_scale_note(&stuck, 1, true), "no smaller one helps");
	EXPECT(!gf_loss_scale_note(&fixed, 8, true), "a static one");
	/* three that were in flight together: one reason, one halving */
	for (i = 0; i < 3; i++)
		EXPECT(gf_loss_scale_note(&late, 8, true), "late");
	EXPECT(late.now == 4, "late: %g", late.now);
}

static void test_choice(void)
{
	static const size_t counts[] = {4, 4};
	static const struct {
		const char *codec;
		enum gf_scaling mode;
		const char *select;
		bool used, dynamic;
		double now;
		int rc;
		bool half;
	} cases[] = {
		{"f32", GF_SCALING_AUTO, "plain", false, false, 1, 0},
		{"f16", GF_SCALING_AUTO, "plain", true, true, 64, 0},
		{"bf16", GF_SCALING_AUTO, "plain", false, false, 1, 0},
		{"f16", GF_SCALING_NONE, "plain", true, false, 1, 0},
		{"q8", GF_SCALING_STATIC, "plain", true, false, 64, 0},
		{"f32", GF_SCALING_DYNAMIC, "plain", true, true, 64, 0},
		{"f16", GF_SCALING_AUTO, "gathered", false, false, 1, 0},
		{"f16", GF_SCALING_AUTO, "pieces", true, true, 64, 0},
		{"f32", GF_SCALING_DYNAMIC, "merged", false, false, 0, -EINVAL},
		{"f32", GF_SCALING_AUTO, "plain", true, true, 64, 0, true},
		{"f32", GF_SCALING_AUTO, "pieces", true, true, 64, 0, true},
		{"f32", GF_SCALING_AUTO, "merged", false, false, 1, 0, true},
		{"fp8", GF_SCALING_AUTO, "plain", false, false, 1, 0},
		{"q8", GF_SCALING_NONE, "plain", false, false, 1, 0, true},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_training t = {
			.scaling = (int)cases[i].mode, .scale = 64, .growth_steps = 7};
		struct gf_loss_scale s = {0};
		struct gf_error err = {""};
		struct gf_plan plan;
		int rc;

		plan_of(&plan, counts, 2, 2, 16, 1, "ring");
		free(plan.messages[0].codec);
		plan.messages[0].codec = gf_xstrdup(cases[i].codec);
		plan.selection = test_selection(cases[i].select);
		rc = gf_loss_scale_init(&s, &t, &plan, cases[i].half, &err);
		EXPECT(rc == cases[i].rc, "case %zu: %d", i, rc);
		EXPECT(s.used == cases[i].used && s.dynamic == cases[i].dynamic &&
			       s.now == cases[i].now,
		       "case %zu: %d %d %g", i, s.used, s.dynamic, s.now);
		plan.selection = (struct gf_selection){0};
		gf_plan_release(&plan);
	}
}

/* --- a serial reference --------------------------------------------------- */

struct reference {
	double w[RIG_ELEMS], u[RIG_ELEMS], scale;
	size_t skipped, good;
	/* in flight, oldest first */
	double g[8][RIG_ELEMS], made_with[8];
	size_t nflight;
};

/* What came of the oldest one in flight. */
static void refer_update(const struct rig_case *c, struct reference *r)
{
	double most = 0;
	bool bad;
	size_t i;

	for (i = 0; i < RIG_ELEMS; i++)
		most = fmax(most, fabs(r->g[0][i]));
	bad = most * r->made_with[0] > F16_LARGEST;
	/* all ranks send alike: partial sums are below the sum */
	EXPECT(fabs(most * r->made_with[0] / F16_LARGEST - 1) > .01,
	       "the case is too close to call");
	if (bad && r->made_with[0] <= r->scale)
		r->scale /= 2;
	r->good = bad ? 0 : r->good + 1;
	if (r->good == c->scale.growth_steps) {
		r->scale *= 2;
		r->good = 0;
	}
	r->skipped += bad;
	for (i = 0; i < RIG_ELEMS && !bad; i++) {
		r->u[i] =
			c->optim.momentum * r->u[i] + r->g[0][i] + c->optim.weight_decay * r->w[i];
		r->w[i] -= c->rate * r->u[i];
	}
	r->nflight--;
	memmove(r->g[0], r->g[1], r->nflight * sizeof(r->g[0]));
	memmove(r->made_with, r->made_with + 1, r->nflight * sizeof(r->made_with[0]));
}

static void refer(const struct rig_case *c, struct reference *r)
{
	size_t t, i;

	memset(r, 0, sizeof(*r));
	r->scale = c->scale.now;
	for (i = 0; i < RIG_ELEMS; i++)
		r->w[i] = rig_start(i);
	for (t = 1; t <= c->steps; t++) {
		for (i = 0; i < RIG_ELEMS; i++)
			r->g[r->nflight][i] = rig_size(c) * (r->w[i] - rig_centre(0, i));
		r->made_with[r->nflight++] = r->scale;
		if (r->nflight == (size_t)c->staleness)
			refer_update(c, r);
	}
}

struct run {
	const struct rig_case *c;
	struct reference ref;
	float last[8][RIG_ELEMS];
};

static void run_rank(struct gf_comm *comm, void *ctx)
{
	struct run *s = ctx;
	struct rig r;
	size_t step;

	rig_open(&r, s->c, comm);
	for (step = 1; step <= s->c->steps; step++)
		rig_step(&r, step);
	memcpy(s->last[comm->rank], r.params, sizeof(r.params));
	if (s->c->scale.dynamic)
		EXPECT(gf_method_scale(r.method).now == s->ref.scale &&
			       gf_method_skipped(r.method) == s->ref.skipped,
		       "P = %d, K = %d, rank %d: scale %g, want %g; %zu skipped, want %zu",
		       s->c->ranks, s->c->staleness, comm->rank, gf_method_scale(r.method).now,
		       s->ref.scale, (size_t)gf_method_skipped(r.method), s->ref.skipped);
	rig_close(&r);
}

static void test_dynamic(void)
{
	static const struct rig_case cases[] = {
		{2, 1, 0, 12, "f16", NULL, 16, MOMENTUM, .05, SCALE(0x1p20, 3), true},
		{3, 1, 0, 12, "f16", "rhd", 16, MOMENTUM, .05, SCALE(0x1p16, 2), true},
		{4, 2, 0, 16, "f16", NULL, 1000, MOMENTUM, .05, SCALE(0x1p20, 4), true},
		{5, 3, 0, 20, "f16", NULL, 16, MOMENTUM, .05, SCALE(0x1p19, 5), true},
		{8, 1, 0, 12, "f16", NULL, 16, MOMENTUM, .05, SCALE(0x1p15, 4), true},
		/* below what f16 can say, but for the scale */
		{2,
		 1,
		 0,
		 20,
		 "f16",
		 NULL,
		 16,
		 {.name = "sgd"},
		 1e7,
		 SCALE(0x1p18, 100),
		 true,
		 1e-8},
	};
	static struct run s;
	size_t i, k, skipped = 0;
	int r;

	for (k = 0; k < GF_ARRAY_LENGTH(cases); k++) {
		s.c = &cases[k];
		refer(s.c, &s.ref);
		skipped += s.ref.skipped;
		on_ranks(s.c->ranks, run_rank, &s);
		for (r = 1; r < s.c->ranks; r++)
			EXPECT(!memcmp(s.last[0], s.last[r], sizeof(s.last[0])),
			       "case %zu: rank %d", k, r);
		for (i = 0; i < RIG_ELEMS; i++)
			EXPECT_NEAR((double)s.last[0][i], s.ref.w[i], TOLERANCE, "case %zu: w[%zu]",
				    k, i);
	}
	EXPECT(skipped > 10, "%zu skipped: the cases are too easy", skipped);
}

/* Without the scale the same gradients vanish. */
static void test_vanishing(void)
{
	static const struct rig_case c = {
		2,    1,   0, 20, "f16", NULL, 16, {.name = "sgd"}, 1e7, {.used = true, .now = 1},
		true, 1e-8};
	static struct run s;
	size_t i;

	s.c = &c;
	on_ranks(2, run_rank, &s);
	for (i = 0; i < RIG_ELEMS; i++)
		EXPECT((double)s.last[0][i] == rig_start(i), "w[%zu]", i);
}

/* If the number of ranks is a power of two, a scale on an f32 wire changes no bit. */
static void test_exact(void)
{
	static const int ranks[] = {1, 2, 4, 8};
	static struct run a, b;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++) {
		struct rig_case plain = {ranks[i], 1, 0, 10, NULL, NULL, 16, MOMENTUM, .05};
		struct rig_case scaled = plain;

		scaled.scale = (struct gf_loss_scale){.used = true, .now = 0x1p10};
		a.c = &plain;
		b.c = &scaled;
		on_ranks(ranks[i], run_rank, &a);
		on_ranks(ranks[i], run_rank, &b);
		EXPECT(!memcmp(a.last, b.last, sizeof(a.last)), "P = %d", ranks[i]);
	}
}

/* --- one rank's gradient is infinite -------------------------------------- */

static void expect_untouched(struct rig *r, size_t step)
{
	const struct gf_optimizer *o = &r->method->updater.optimizer;
	float params[RIG_ELEMS], momentum[RIG_ELEMS];
	size_t skipped = gf_method_skipped(r->method);
	bool last = step == r->c->steps;

	memcpy(params, r->params, sizeof(params));
	memcpy(momentum, o->slot[0], sizeof(momentum));
	r->poisoned = r->comm->rank == r->c->ranks - 1 ? step : 0;
	rig_step(r, step);
	if (!last || r->c->staleness == 1)
		EXPECT(gf_method_skipped(r->method) == skipped + (r->c->staleness == 1),
		       "step %zu: skipped", step);
	if (r->c->staleness > 1)
		return;
	EXPECT(!memcmp(params, r->params, sizeof(params)) &&
		       !memcmp(momentum, o->slot[0], sizeof(momentum)),
	       "P = %d, step %zu: a skipped step leaves no trace", r->c->ranks, step);
}

static void poison_rank(struct gf_comm *comm, void *ctx)
{
	const struct rig_case *c = ctx;
	struct rig r;
	size_t step;

	rig_open(&r, c, comm);
	for (step = 1; step <= c->steps; step++) {
		if (step == 4)
			expect_untouched(&r, step);
		else
			rig_step(&r, step);
	}
	EXPECT(gf_method_skipped(r.method) == 1 && gf_method_scale(r.method).now == 0x1p9,
	       "rank %d: %zu skipped, scale %g", comm->rank, (size_t)gf_method_skipped(r.method),
	       gf_method_scale(r.method).now);
	rig_close(&r);
}

static void test_poison(void)
{
	static struct rig_case cases[] = {
		{1, 1, 0, 8, "f16", NULL, 16, MOMENTUM, .05, SCALE(0x1p10, 100)},
		{3, 1, 0, 8, "f16", NULL, 16, MOMENTUM, .05, SCALE(0x1p10, 100)},
		{4, 1, 0, 8, "f32", "rhd", 16, MOMENTUM, .05, SCALE(0x1p10, 100)},
		{3, 3, 0, 8, "f16", NULL, 16, MOMENTUM, .05, SCALE(0x1p10, 100)},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		on_ranks(cases[i].ranks, poison_rank, &cases[i]);
}

/* Once no smaller scale can help, the run ends, alike on all ranks. */
static void diverge_rank(struct gf_comm *comm, void *ctx)
{
	const struct rig_case *c = ctx;
	struct gf_step_outcome out;
	struct gf_error err = {""};
	struct rig r;
	size_t step;
	int rc = 0;

	rig_open(&r, c, comm);
	for (step = 1; step <= c->steps && !rc; step++) {
		r.poisoned = step;
		rc = gf_train_step(&r.stepper, step, c->rate, &out, &err);
	}
	EXPECT(rc == 1 && step == 4 && gf_method_scale(r.method).now == 1,
	       "rank %d: %d after step %zu, scale %g", comm->rank, rc, step - 1,
	       gf_method_scale(r.method).now);
	EXPECT(strstr(err.text, "the gradient of t2 is infinite or not a number in step 3"), "%s",
	       err.text);
	rig_close(&r);
}

static void test_divergence(void)
{
	struct rig_case c = {3, 1, 0, 8, "f16", NULL, 16, MOMENTUM, .05, SCALE(4, 100)};

	on_ranks(3, diverge_rank, &c);
}

int main(void)
{
	watchdog(120);
	test_rule();
	test_choice();
	test_dynamic();
	test_vanishing();
	test_exact();
	test_poison();
	test_divergence();
	return TEST_END();
}
