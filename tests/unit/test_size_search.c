/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "profiler/contest/size_sweep.h"
#include "test.h"

static void test_order(void)
{
	static const struct {
		size_t n, want[9];
	} cases[] = {
		{1, {0}},
		{2, {0, 1}},
		{3, {0, 2, 1}},
		{5, {0, 4, 2, 1, 3}},
		{8, {0, 7, 4, 2, 6, 1, 3, 5}},
		{9, {0, 8, 4, 2, 6, 1, 3, 5, 7}},
	};
	size_t i, k, order[9];

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		gf_search_order(cases[i].n, order);
		for (k = 0; k < cases[i].n; k++)
			EXPECT(order[k] == cases[i].want[k], "%zu: %zu: %zu", cases[i].n, k,
			       order[k]);
	}
}

enum { SIZES = 15, WAYS = 4 };

/* startup and per-byte costs of a library with known ones */
static const double startup_s[WAYS] = {1e-4, 2e-5, 1e-3, 2e-3};
static const double per_byte_s[WAYS] = {4e-9, 2e-8, 1e-9, 8e-9};

static double time_s(size_t way, size_t bytes)
{
	return startup_s[way] + per_byte_s[way] * (double)bytes;
}

/* The loop over such a library finds the best variant of every size, and tries fewer than all. Way
 * 3 is nowhere the best, and way 0 is not searched. */
static void test_library(void)
{
	double times[WAYS][SIZES];
	struct gf_search_way ways[WAYS];
	size_t sizes[SIZES], order[SIZES], i, k, tries = 0, of_three = 0;
	bool tried[WAYS];

	for (k = 0; k < WAYS; k++)
		ways[k] = (struct gf_search_way){k != 0, times[k]};
	for (i = 0; i < SIZES; i++) {
		sizes[i] = (size_t)4096 << i;
		for (k = 0; k < WAYS; k++)
			times[k][i] = NAN;
	}
	gf_search_order(SIZES, order);
	for (i = 0; i < SIZES; i++) {
		size_t at = order[i];

		tries += gf_search_try(ways, WAYS, sizes, SIZES, at, tried);
		EXPECT(tried[0], "%zu", at);
		of_three += tried[3];
		for (k = 0; k < WAYS; k++)
			if (tried[k])
				times[k][at] = time_s(k, sizes[at]);
	}
	EXPECT(of_three == 2, "%zu", of_three);
	EXPECT(tries < 3 * SIZES, "%zu", tries);
	for (i = 0; i < SIZES; i++) {
		double least = INFINITY, found = INFINITY;

		for (k = 1; k < WAYS; k++) {
			least = fmin(least, time_s(k, sizes[i]));
			if (!isnan(times[k][i]))
				found = fmin(found, times[k][i]);
		}
		EXPECT(found == least, "%zu: %g, %g", sizes[i], found, least);
	}
}

int main(void)
{
	test_order();
	test_library();
	return TEST_END();
}
