/* SPDX-License-Identifier: BSD-3-Clause */
/* randomk: which elements go out. */
#include "base/array.h"
#include "exchange_run.h"

static struct gf_selection selection(double density, size_t seed)
{
	char *object = gf_xasprintf("{\"method\": \"randomk\", \"density\": %.17g, \"seed\": %zu}",
				    density, seed);
	struct gf_selection s = test_selection_of(object);

	free(object);
	return s;
}

/* What is not sent waits, so what is sent is never 0. */
static float one(int rank, size_t step, size_t i)
{
	(void)rank;
	(void)step;
	(void)i;
	return 1;
}

/* Steps of a message per tensor, of n elements each, k of which go out. */
static void pick(struct exchange_run *run, const size_t *counts, size_t k, size_t seed, size_t step,
		 size_t steps)
{
	*run = (struct exchange_run){
		.ranks = 1,
		.counts = counts,
		.ntensors = 2,
		.lanes = 1,
		.selection = selection(fmin(1, ((double)k + .5) / (double)counts[0]), seed),
		.lr = 1,
		.first_step = step,
		.steps = steps,
		.gradient = one,
	};
	run_exchange(run, "pick");
}

/* Whether that element went out in the s-th step of the run. */
static bool sent(const struct exchange_run *run, size_t s, size_t i)
{
	return run->weights[0][s][i] != (s ? run->weights[0][s - 1][i] : 0);
}

static bool alike(const struct exchange_run *a, size_t s, size_t first,
		  const struct exchange_run *b, size_t t, size_t other, size_t n)
{
	size_t i;

	for (i = 0; i < n && sent(a, s, first + i) == sent(b, t, other + i); i++)
		;
	return i == n;
}

/* One of each run of n/k elements, and the same again. */
static void test_runs(void)
{
	static const struct {
		size_t n, k;
	} cases[] = {{1, 1}, {7, 7}, {10, 3}, {256, 10}, {255, 16}};
	static struct exchange_run run, other;
	size_t i, m, r, e;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const size_t n = cases[i].n, k = cases[i].k, counts[] = {n, n};

		pick(&run, counts, k, 7, 3, 2);
		pick(&other, counts, k, 7, 3, 2);
		for (m = 0; m < 2; m++)
			for (r = 0; r < k; r++) {
				size_t found = 0;

				for (e = r * n / k; e < (r + 1) * n / k; e++)
					found += sent(&run, 0, m * n + e);
				EXPECT(found == 1, "case %zu, message %zu, run %zu: %zu of it", i,
				       m, r, found);
			}
		EXPECT(alike(&run, 0, 0, &other, 0, 0, 2 * n), "case %zu: the same again", i);
		if (n / k < 10)
			continue;
		EXPECT(!alike(&run, 0, 0, &run, 1, 0, n), "case %zu: another step", i);
		EXPECT(!alike(&run, 0, 0, &run, 0, n, n), "case %zu: another message", i);
		pick(&other, counts, k, 8, 3, 1);
		EXPECT(!alike(&run, 0, 0, &other, 0, 0, n), "case %zu: another seed", i);
	}
}

/* Every element of a run in the long run: runs are 0-2, 3-5 and 6-9. */
static void test_evenly(void)
{
	static const size_t counts[] = {10, 10};
	static struct exchange_run run;
	size_t times[10] = {0}, step, s, i;

	for (step = 0; step < 3008; step += 32) {
		pick(&run, counts, 3, 1, step + 1, 32);
		for (s = 0; s < 32; s++)
			for (i = 0; i < 10; i++)
				times[i] += sent(&run, s, i);
	}
	for (i = 0; i < 10; i++)
		EXPECT(times[i] > (i < 6 ? 900 : 650) && times[i] < (i < 6 ? 1100 : 850),
		       "%zu: %zu times in 3008", i, times[i]);
}

static float six(int rank, size_t step, size_t i)
{
	static const float g[2][6] = {{1, -4, 2, 0, 3, 1}, {0, 2, 5, 1, 1, 1}};

	(void)step;
	return g[rank][i];
}

/* Both ranks send the same elements and keep the others. */
static void test_example(void)
{
	static const size_t counts[] = {6};
	static struct exchange_run run;
	size_t i, nsent = 0;
	int r;

	run = (struct exchange_run){
		.ranks = 2,
		.counts = counts,
		.ntensors = 1,
		.lanes = 1,
		.selection = selection(.34, 1),
		.lr = 2,
		.first_step = 1,
		.steps = 1,
		.gradient = six,
	};
	run_exchange(&run, "example");
	for (i = 0; i < 6; i++) {
		const float sum = six(0, 1, i) + six(1, 1, i);
		const bool out = run.weights[0][0][i] != 0;

		nsent += out;
		EXPECT(!out || run.weights[0][0][i] == -sum, "element %zu: %g", i,
		       (double)run.weights[0][0][i]);
		for (r = 0; r < 2; r++)
			EXPECT(run.own[r][i] == (out ? 0 : six(r, 1, i)), "rank %d keeps %g of %zu",
			       r, (double)run.own[r][i], i);
	}
	EXPECT(nsent == 2, "%zu go out", nsent);
	EXPECT(run.sent_bytes[0] == run.sent_bytes[1] && run.sent_bytes[0] > 0 &&
		       run.sent_bytes[0] <= 8,
	       "%zu bytes", (size_t)run.sent_bytes[0]);
}

int main(void)
{
	watchdog(60);
	test_runs();
	test_evenly();
	test_example();
	return TEST_END();
}
