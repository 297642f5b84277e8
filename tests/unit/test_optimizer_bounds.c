/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan bears of rate and momentum, and the defaults that follow. */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "doc/optimizer_bounds.h"
#include "doc/selections/select_dgc.h"
#include "doc/selections/select_ef21.h"
#include "doc/selections/select_onebit.h"
#include "doc/selections/select_randomk.h"
#include "doc/selections/select_topk.h"
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

static const struct gf_onebit_params onebit = {.chunk_elems = 8};
static const struct gf_topk_params topk = {.density = .1};
static const struct gf_dgc_params dgc = {.density = .1};
static const struct gf_ef21_params ef21 = {.density = .1};
static const struct gf_randomk_params randomk = {.density = .1, .seed = 1};
#define RANDOMK                                                                                    \
	{                                                                                          \
		&gf_select_plan_randomk, (void *)&randomk                                          \
	}
#define DGC                                                                                        \
	{                                                                                          \
		&gf_select_plan_dgc, (void *)&dgc                                                  \
	}
#define EF21                                                                                       \
	{                                                                                          \
		&gf_select_plan_ef21, (void *)&ef21                                                \
	}
#define ONEBIT                                                                                     \
	{                                                                                          \
		&gf_select_plan_onebit, (void *)&onebit                                            \
	}
#define TOPK                                                                                       \
	{                                                                                          \
		&gf_select_plan_topk, (void *)&topk                                                \
	}

/* Batches of 16 on each rank; of own, 0 is not set. */
static const struct {
	const char *label;
	int ranks, staleness;
	struct gf_selection selection;
	double own_rate, own_momentum;
	const char *own_optimizer;
	double peak, momentum;
	const char *optimizer, *remark; /* a part of it; NULL: there is none */
	double own_clip_norm;
	bool attention; /* the model has some */
} cases[] = {
	{"dense", 4, 1, {0}, 0, 0, NULL, .1, .9, "sgd", NULL},
	{"dense, 8 ranks", 8, 1, {0}, 0, 0, NULL, .2, .9, "sgd", NULL},
	{"topk", 4, 1, TOPK, 0, 0, NULL, .5, 0, "sgd",
	 "peak rate 0.5 (--lr) instead of 0.1, because an element goes out"},
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
	{"in large pieces, adamw", 4, 1, ONEBIT, 0, 0, "adamw", 1e-3, 0, "adamw", NULL},
	{"in large pieces", 4, 1, ONEBIT, 0, 0, NULL, 1, 0, "sgd",
	 "momentum 0 (--momentum) instead of 0.9, peak rate 1 (--lr) instead of 0.1, because most "
	 "of"},
	{"in large pieces, 2 ranks", 2, 1, ONEBIT, 0, 0, NULL, .5, 0, "sgd", "peak rate 0.5"},
	{"in large pieces, 8 ranks", 8, 1, ONEBIT, 0, 0, NULL, 1, 0, "sgd", "instead of 0.2"},
	{"in large pieces, own momentum", 4, 1, ONEBIT, 0, .9, NULL, .1, .9, "sgd",
	 "momentum 0 (--momentum) would do better than 0.9, because"},
	{"in large pieces, own rate", 4, 1, ONEBIT, .3, 0, NULL, .3, .9, "sgd",
	 "momentum 0 (--momentum) would do better than 0.9, because"},
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
	{"dgc", 4, 1, DGC, 0, 0, NULL, .1, .9, "sgd", NULL},
	{"dgc, late", 4, 2, DGC, 0, 0, NULL, .02, .9, "sgd",
	 "peak rate 0.02 (--lr) instead of 0.1, because gradients"},
	{"dgc, late, nesterov", 4, 2, DGC, 0, 0, "nesterov", .02, .9, "nesterov",
	 "peak rate 0.02 (--lr) instead of 0.1, because gradients"},
	{"ef21", 4, 1, EF21, 0, 0, NULL, .06, .8, "sgd",
	 "momentum 0.8 (--momentum) instead of 0.9, peak rate 0.06 (--lr) instead of 0.1, because "
	 "the estimate"},
	{"ef21, late", 4, 2, EF21, 0, 0, NULL, .04, .8, "sgd",
	 "peak rate 0.04 (--lr) instead of 0.1, because the estimate"},
	{"randomk", 4, 1, RANDOMK, 0, 0, NULL, 1, 0, "sgd", "peak rate 1 (--lr) instead of 0.1"},
	{"randomk, clipped", 4, 1, RANDOMK, 0, 0, NULL, .3, 0, "sgd",
	 "peak rate 0.3 (--lr) instead of 0.1", 5},
	{"onebit, clipped", 4, 1, ONEBIT, 0, 0, NULL, 1, 0, "sgd",
	 "peak rate 1 (--lr) instead of 0.1", 5},
	{"attention", 4, 1, {0}, 0, 0, NULL, 1e-3, 0, "adamw", NULL, 0, true},
	{"attention, topk", 4, 1, TOPK, 0, 0, NULL, 1e-3, 0, "adamw", NULL, 0, true},
	{"attention, randomk", 4, 1, RANDOMK, 0, 0, NULL, 1, 0, "sgd", "momentum 0", 0, true},
	{"in large pieces, late", 4, 2, ONEBIT, 0, 0, NULL, .2, 0, "sgd",
	 "steps later, and gradients are 1 step late"},
};

static void test_defaults(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_layer attention = {.type = GF_LAYER_ATTENTION};
		const struct gf_model model = {
			.layers = &attention,
			.nlayers = cases[i].attention,
		};
		struct gf_model_profile profile = {.batch_per_rank = 16};
		const struct gf_plan plan = {.ranks = cases[i].ranks,
					     .staleness = cases[i].staleness,
					     .selection = cases[i].selection,
					     .model = &profile};
		struct gf_train_config k = {.plan = &plan, .model = &model};
		struct gf_training own, *t = &k.training;
		struct gf_error err = {""};

		gf_training_init(t);
		gf_training_init(&own);
		own.optimizer = (char *)cases[i].own_optimizer;
		if (cases[i].own_rate > 0)
			own.rate = cases[i].own_rate;
		if (cases[i].own_clip_norm > 0)
			own.clip_norm = cases[i].own_clip_norm;
		if (cases[i].own_momentum > 0)
			own.momentum = cases[i].own_momentum;
		gf_training_fill(t, &own);
		EXPECT(!gf_train_complete(&k, &err), "%s: %s", cases[i].label, err.text);
		EXPECT_NEAR(gf_train_peak(&k), cases[i].peak, .002 * cases[i].peak, cases[i].label);
		EXPECT(gf_train_optim(t).momentum == cases[i].momentum, "%s: momentum %g",
		       cases[i].label, gf_train_optim(t).momentum);
		EXPECT_TEXT(t->optimizer, cases[i].optimizer);
		EXPECT(cases[i].remark ? k.remark && strstr(k.remark, cases[i].remark)
				       : !k.remark || !k.remark[0],
		       "%s: %s", cases[i].label, k.remark);
		gf_training_release(t);
		free(k.remark);
	}
}

int main(void)
{
	test_bound();
	test_defaults();
	return TEST_END();
}
