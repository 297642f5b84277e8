/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include "base/array.h"
#include "base/rng.h"
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

int main(void)
{
	for (size_t c = 0; c < GF_ARRAY_LENGTH(cases); c++)
		test_sgd(c);
	return TEST_END();
}
