/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan bears of rate and momentum, and the defaults that follow. */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "documents/optimizer_bounds.h"
#include "selections.h"
#include "test.h"
#include "trainer/train.h"

/* Does w(t+1) = w(t) + m (w(t) - w(t-1)) - r g shrink w, where g is w(t-D), or
 * (1 + m) w(t-D) - m w(t-D-1)? */
static bool shrinks(size_t delay, bool nesterov, double m, double r)
{
	enum { STEPS = 4000 };
	static double w[STEPS + 8];
	double late = 0;
	size_t t, i;

	for (i = 0; i < 8; i++)
		w[i] = 1;
	for (t = 7; t < STEPS + 7; t++) {
		const double *g = &w[t - delay];

		w[t + 1] = w[t] + m * (w[t] - w[t - 1]) -
			   r * (nesterov ? (1 + m) * g[0] - m * g[-1] : g[0]);
		if (fabs(w[t + 1]) > 1e6)
			return false;
	}
	for (i = STEPS - 200; i < STEPS; i++)
		late = fmax(late, fabs(w[i]));
	return late < .5;
}

static void test_bound(void)
{
	static const double momenta[] = {0, .5, .9};
	size_t delay, n, i;

	for (delay = 0; delay < 4; delay++)
		for (n = 0; n < 2; n++)
			for (i = 0; i < GF_ARRAY_LENGTH(momenta); i++) {
				double m = momenta[i];
				double r = gf_delay_bound(delay, n, m);

				EXPECT(shrinks(delay, n, m, .97 * r) &&
					       !shrinks(delay, n, m, 1.03 * r),
				       "delay %zu, momentum %g%s: %g", delay, m,
				       n ? ", nesterov" : "", r);
			}
	EXPECT_NEAR(gf_delay_bound(1, false, .9), .1, 1e-9, "1 - m");
	EXPECT_NEAR(gf_delay_bound(2, false, 0), .6180339887, 1e-9, "2 sin(pi/10)");
}

/* Batches of 16 on each rank; of own, 0 is not set. */
struct bound_case {
	const char *label;
	int ranks, staleness;
	struct gf_selection selection;
	double own_rate, own_momentum;
	const char *own_optimizer;
	double peak, momentum;
	const char *optimizer, *remark; /* a part of it; NULL: there is none */
	double own_clip_norm;
	bool attention; /* the model has some */
};

/* Of the plain one; those of others stand in their files, as "rates". */
static const struct bound_case cases[] = {
	{"plain", 4, 1, {0}, 0, 0, NULL, .1, .9, "sgd", NULL},
	{"plain, 8 ranks", 8, 1, {0}, 0, 0, NULL, .2, .9, "sgd", NULL},
	{"late",
	 4,
	 2,
	 {0},
	 0,
	 0,
	 NULL,
	 .0506,
	 .9,
	 "nesterov",
	 "optimizer nesterov (--optimizer) instead of sgd, peak rate 0.0506 (--lr) instead of 0.1, "
	 "because gradients are 1 step late"},
	{"late, 8 ranks", 8, 2, {0}, 0, 0, NULL, .0506, .9, "nesterov", "instead of 0.2, because"},
	{"late, 1 rank", 1, 2, {0}, 0, 0, NULL, .025, .9, "nesterov", "instead of sgd, because"},
	{"later",
	 4,
	 3,
	 {0},
	 0,
	 0,
	 NULL,
	 .01614,
	 .9,
	 "nesterov",
	 "because gradients are 2 steps late"},
	{"late, heavy ball",
	 4,
	 2,
	 {0},
	 0,
	 0,
	 "sgd",
	 .02,
	 .9,
	 "sgd",
	 "peak rate 0.02 (--lr) instead of 0.1"},
	{"late, own momentum", 4, 2, {0}, 0, .5, "sgd", .1, .5, "sgd", NULL},
	{"late, own rate",
	 4,
	 2,
	 {0},
	 .3,
	 0,
	 "sgd",
	 .3,
	 .9,
	 "sgd",
	 "at most 0.2 times a rate that suits dense gradients is stable, because"},
	{"late, adamw", 4, 2, {0}, 0, 0, "adamw", 1e-3, 0, "adamw", NULL},
	{"late, own rate and no optimizer",
	 4,
	 2,
	 {0},
	 .3,
	 0,
	 NULL,
	 .3,
	 .9,
	 "sgd",
	 "at most 0.2 times a rate"},
	{"attention", 4, 1, {0}, 0, 0, NULL, 1e-3, 0, "adamw", NULL, 0, true},
};

static void try_case(const struct bound_case *c)
{
	struct gf_layer attention = {.type = GF_LAYER_ATTENTION};
	const struct gf_model model = {
		.layers = &attention,
		.nlayers = c->attention,
	};
	struct gf_model_profile profile = {.batch_per_rank = 16};
	const struct gf_plan plan = {.ranks = c->ranks,
				     .staleness = c->staleness,
				     .selection = c->selection,
				     .model = &profile};
	struct gf_train_config k = {.plan = &plan, .model = &model};
	struct gf_training own, *t = &k.training;
	struct gf_error err = {""};

	gf_training_init(t);
	gf_training_init(&own);
	own.optimizer = (char *)c->own_optimizer;
	if (c->own_rate > 0)
		own.rate = c->own_rate;
	if (c->own_clip_norm > 0)
		own.clip_norm = c->own_clip_norm;
	if (c->own_momentum > 0)
		own.momentum = c->own_momentum;
	gf_training_fill(t, &own);
	EXPECT(!gf_train_complete(&k, &err), "%s: %s", c->label, err.text);
	EXPECT_NEAR(gf_train_peak(&k), c->peak, .002 * c->peak, "%s", c->label);
	EXPECT(gf_train_optim(t).momentum == c->momentum, "%s: momentum %g", c->label,
	       gf_train_optim(t).momentum);
	EXPECT_TEXT(t->optimizer, c->optimizer);
	EXPECT(c->remark ? k.remark && strstr(k.remark, c->remark) : !k.remark || !k.remark[0],
	       "%s: %s", c->label, k.remark);
	gf_training_release(t);
	free(k.remark);
}

static void try_row(struct gf_json_at *at, void *ctx)
{
	const struct gf_select_plan *plan = ctx;
	char *own = entry_text(at, "own_optimizer"), *optimizer = entry_text(at, "optimizer");
	char *remark = entry_text(at, "remark");

	try_case(&(struct bound_case){
		.label = plan->name,
		.ranks = (int)entry_size(at, "ranks", 1),
		.staleness = (int)entry_size(at, "staleness", 1),
		.selection = test_selection_at(plan, at, "keys"),
		.own_rate = entry_real(at, "own_rate", 0),
		.own_momentum = entry_real(at, "own_momentum", 0),
		.own_clip_norm = entry_real(at, "own_clip_norm", 0),
		.own_optimizer = own,
		.peak = entry_real(at, "peak", 0),
		.momentum = entry_real(at, "momentum", 0),
		.optimizer = optimizer,
		.remark = remark,
		.attention = entry_bool(at, "attention"),
	});
	free(own);
	free(optimizer);
	free(remark);
}

static void try_rows(const struct gf_select_plan *plan, struct entry_facts *f, void *ctx)
{
	(void)ctx;
	entry_rows(f, "rates", try_row, (void *)plan);
}

static void test_defaults(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		try_case(&cases[i]);
	test_each_selection(try_rows, NULL);
}

int main(void)
{
	test_bound();
	test_defaults();
	return TEST_END();
}
