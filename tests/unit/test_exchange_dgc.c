/* SPDX-License-Identifier: BSD-3-Clause */
/* dgc: the worked example of its equations. */
#include "exchange_run.h"

static float six(int rank, size_t step, size_t i)
{
	static const float g[6] = {1, -4, 2, 0, 3, 1};

	(void)rank;
	(void)step;
	return g[i];
}

/* Of six elements two are sent, with masking and half of the momentum. */
static void test_example(void)
{
	static const float weights[2][6] = {{0, 4, 0, 0, -3, 0}, {0, 8, -5, 0, -3, 0}};
	static const size_t counts[] = {6};
	static struct exchange_run run;
	size_t step, i;

	run = (struct exchange_run){
		.ranks = 2,
		.counts = counts,
		.ntensors = 1,
		.lanes = 1,
		.selection = test_selection_of("{\"method\": \"dgc\", \"density\": 0.34, "
					       "\"momentum\": 0.5, \"masking\": true}"),
		.lr = 1,
		.first_step = 1,
		.steps = 2,
		.gradient = six,
	};
	run_exchange(&run, "example");
	for (step = 0; step < 2; step++)
		for (i = 0; i < 6; i++)
			EXPECT(run.weights[0][step][i] == weights[step][i], "step %zu, w[%zu]: %g",
			       step + 1, i, (double)run.weights[0][step][i]);
}

int main(void)
{
	watchdog(60);
	test_example();
	return TEST_END();
}
