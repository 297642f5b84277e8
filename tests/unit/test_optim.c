/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include "base/array.h"
#include "base/rng.h"
#include "optim/lars.h"
#include "optim/sgd.h"

/* Five steps in f32 against the formula in f64. */
#define TOLERANCE 2e-6
#define COUNT     37
#define STEPS     5

static const struct {
	struct gf_sgd o;
	float scale;
} cases[] = {
	{{.lr = 0.1}, 1.0f},
	{{.lr = 0.1, .momentum = 0.9}, 1.0f},
	{{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4}, 0.25f},
	{{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true},
	 0.25f},
	{{.lr = 0, .momentum = 0.5, .weight_decay = 1}, 1.0f},
};

static void formula(const struct gf_sgd *o, double scale, double grad,
		    double *w, double *u)
{
	double g = scale * grad + o->weight_decay * *w;

	*u = o->momentum * *u + g;
	*w -= o->lr * (o->nesterov ? g + o->momentum * *u : *u);
}

static void test_sgd(size_t c)
{
	float w[COUNT], u[COUNT] = {0}, g[COUNT];
	double want_w[COUNT], want_u[COUNT] = {0};
	struct gf_rng rng;

	gf_rng_init(&rng, c, 0);
	for (size_t i = 0; i < COUNT; i++)
		want_w[i] = w[i] = (float)gf_rng_normal(&rng);
	for (int step = 0; step < STEPS; step++) {
		for (size_t i = 0; i < COUNT; i++) {
			g[i] = (float)gf_rng_normal(&rng);
			formula(&cases[c].o, cases[c].scale, g[i], &want_w[i],
				&want_u[i]);
		}
		gf_sgd_update(&cases[c].o, cases[c].scale, g, w, u, COUNT);
	}
	for (size_t i = 0; i < COUNT; i++) {
		EXPECT_NEAR(w[i], want_w[i], TOLERANCE, "case %zu w[%zu]", c,
			    i);
		EXPECT_NEAR(u[i], want_u[i], TOLERANCE, "case %zu u[%zu]", c,
			    i);
	}
}

/* |w| = 5 and |g| = 10 after scaling: trust = .1*5/(10 + .5*5) = .04. */
static void test_lars(void)
{
	const struct gf_lars o = {
		.sgd = {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.5},
		.eta = 0.1,
	};
	const float grad[2] = {24, -32}, none[2] = {0};
	float w[2] = {3, 4}, u[2] = {1, 2};
	double want_w[2], want_u[2];

	EXPECT_NEAR(gf_lars_trust(&o, 0.25f, grad, w, 2), 0.04, TOLERANCE,
		    "trust");
	EXPECT(gf_lars_trust(&o, 0.25f, none, w, 2) == 1, "no gradient");
	EXPECT(gf_lars_trust(&o, 0.25f, grad, none, 2) == 1, "no weight");
	EXPECT(gf_lars_trust(&o, 0.25f, none, none, 0) == 1, "no element");
	for (size_t i = 0; i < 2; i++) {
		want_u[i] = 0.9 * u[i] + 0.04 * (0.25 * grad[i] + 0.5 * w[i]);
		want_w[i] = w[i] - 0.5 * want_u[i];
	}
	gf_lars_update(&o, 0.25f, grad, w, u, 2);
	for (size_t i = 0; i < 2; i++) {
		EXPECT_NEAR(w[i], want_w[i], TOLERANCE, "LARS w[%zu]", i);
		EXPECT_NEAR(u[i], want_u[i], TOLERANCE, "LARS u[%zu]", i);
	}
}

int main(void)
{
	for (size_t c = 0; c < GF_ARRAY_LENGTH(cases); c++)
		test_sgd(c);
	test_lars();
	return TEST_END();
}
