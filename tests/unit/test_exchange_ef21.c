/* SPDX-License-Identifier: BSD-3-Clause */
/* ef21: estimates of velocities, element by element. */
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "documents/selections/select_density.h"
#include "largest.h"

static struct gf_selection selection(double density)
{
	char *object = gf_xasprintf("{\"method\": \"ef21\", \"density\": %g}", density);
	struct gf_selection s = test_selection_of(object);

	free(object);
	return s;
}

/* The worked example: gradients that stay are there from the third step on, on one rank without
 * momentum. */
static float steady(int rank, size_t step, size_t i)
{
	static const float g[4] = {4, -2, 1, 0};

	(void)rank;
	(void)step;
	return g[i];
}

static void test_example(void)
{
	static const float sums[4][4] = {{4}, {4, -2}, {4, -2, 1}, {4, -2, 1}};
	static const size_t counts[] = {4};
	static struct exchange_run run;
	float w[4] = {0};
	size_t step, i;

	run = (struct exchange_run){
		.ranks = 1,
		.counts = counts,
		.ntensors = 1,
		.lanes = 1,
		.selection = selection(.25),
		.lr = 1,
		.first_step = 1,
		.steps = 4,
		.gradient = steady,
	};
	run_exchange(&run, "example");
	for (step = 0; step < 4; step++)
		for (i = 0; i < 4; i++) {
			w[i] -= sums[step][i];
			EXPECT(run.weights[0][step][i] == w[i], "step %zu, w[%zu]: %g", step + 1, i,
			       (double)run.weights[0][step][i]);
		}
}

/* As its equations have it. Halves are exact. */
static void test_estimates(void)
{
	static const struct {
		int ranks;
		double density, momentum;
	} cases[] = {{1, .1, 0}, {2, .1, .5}, {3, .25, .5}, {4, .02, .5}};
	static const size_t counts[] = {60, 7, 33};
	enum { N = 100 };
	static struct exchange_run run;
	size_t c, i, k, step;
	int r;

	for (c = 0; c < GF_ARRAY_LENGTH(cases); c++) {
		static vector v[RUN_RANKS], h[RUN_RANKS], sent;
		vector sum = {0};
		double weights[N] = {0};

		memset(v, 0, sizeof(v));
		memset(h, 0, sizeof(h));
		run = (struct exchange_run){
			.ranks = cases[c].ranks,
			.counts = counts,
			.ntensors = GF_ARRAY_LENGTH(counts),
			.threshold_bytes = 1 << 20,
			.lanes = 1,
			.selection = selection(cases[c].density),
			.momentum = cases[c].momentum,
			.lr = .25,
			.first_step = 1,
			.steps = 6,
			.gradient = noise,
		};
		k = gf_density_count(cases[c].density, N);
		run_exchange(&run, "ef21");
		for (step = 1; step <= run.steps; step++) {
			for (r = 0; r < run.ranks; r++) {
				bool marked[N];

				memset(marked, 1, sizeof(marked));
				for (i = 0; i < N; i++) {
					v[r][i] = (float)run.momentum * v[r][i] + noise(r, step, i);
					sent[i] = v[r][i] - h[r][i];
				}
				keep_largest(sent, marked, N, k, NULL);
				for (i = 0; i < N; i++) {
					h[r][i] += sent[i];
					sum[i] += sent[i];
				}
			}
			for (i = 0; i < N; i++) {
				weights[i] -= run.lr * (double)sum[i] / run.ranks;
				EXPECT_NEAR((double)run.weights[0][step - 1][i], weights[i], 1e-4,
					    "ef21 case %zu, step %zu, w[%zu]", c, step, i);
			}
		}
	}
}

int main(void)
{
	watchdog(250);
	test_example();
	test_estimates();
	return TEST_END();
}
