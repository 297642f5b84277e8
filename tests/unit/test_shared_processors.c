/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages gain beside backward where ranks share processors: steps whose times are found by
 * hand. */
#include <math.h>

#include "profiler/overlap.h"
#include "test.h"

/*
 * A message takes 1 s alone. Backward is three pieces of 1 s, after each of which a third of the
 * gradient is ready. The whole gradient goes after backward: 4 s. With c = compute_slowdown and m =
 * message_slowdown, a message beside backward takes m, in which backward does m / c of its 1 s
 * until the next is ready. The rest, 1 - m / c, follows alone. After two of these the last message
 * takes 1 s: 1 + 2 (m + 1 - m / c) + 1 s in all, for m <= c.
 */
static const struct {
	double compute, message; /* slowdowns */
} cases[] = {{1, 1}, {1.5, 1}, {4, 1}, {4, 2}, {50, 1.2}, {2, 2}};

static const struct gf_measure_parts whole = {1, 3000, {2}};
static const struct gf_measure_parts thirds = {3, 1000, {0, 1, 2}};

static struct gf_allreduce_cost cost_of(double message)
{
	return (struct gf_allreduce_cost){
		.algorithm = "ring",
		.startup_s = 1,
		.beside = {.message_slowdown = message},
	};
}

static void test_rate(struct gf_model_profile *m)
{
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double c = cases[i].compute, slow = cases[i].message;
		struct gf_allreduce_cost cost = cost_of(slow);
		double step_s = 4 + 2 * (slow - slow / c);

		EXPECT_NEAR(gf_measure_joint_rate(m, &cost, &whole, &thirds, step_s / 4),
			    1 / c + 1 / slow, 1e-6, "case %zu", i);
	}
}

/* Times that no slowdown explains give the nearest. */
static void test_ends(struct gf_model_profile *m)
{
	struct gf_allreduce_cost cost = cost_of(1);

	EXPECT_NEAR(gf_measure_joint_rate(m, &cost, &whole, &thirds, 0.5), 2, 1e-6,
		    "faster than apart");
	EXPECT_NEAR(gf_measure_joint_rate(m, &cost, &whole, &thirds, 9), 1.01, 1e-6,
		    "slower than one after the other");
}

/* All gradients at the end: nothing is beside backward. */
static void test_silent(struct gf_model_profile *m)
{
	struct gf_allreduce_cost cost = cost_of(1);

	m->tensors[0].ready_s = m->tensors[1].ready_s = 3;
	EXPECT(isnan(gf_measure_joint_rate(m, &cost, &whole, &thirds, 1.5)), "it tells nothing");
}

int main(void)
{
	struct gf_tensor tensors[3] = {
		{.count_elems = 1000, .ready_s = 1, .need_s = NAN},
		{.count_elems = 1000, .ready_s = 2, .need_s = NAN},
		{.count_elems = 1000, .ready_s = 3, .need_s = NAN},
	};
	struct gf_model_profile m = {
		.backward_s = 3,
		.overlap_slowdown = 1,
		.tensors = tensors,
		.ntensors = 3,
	};

	test_rate(&m);
	test_ends(&m);
	test_silent(&m);
	return TEST_END();
}
