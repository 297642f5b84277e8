/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>

#include "base/array.h"
#include "profiler/autotune/chooser.h"
#include "test.h"

static void test_times(void)
{
	static const double times[] = {5, 1, 4, 2, 3, 8, 7, 6};
	struct gf_rival r = {.n = 0};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(times); i++)
		gf_rival_add(&r, times[i]);
	for (i = 0; i < r.n; i++)
		EXPECT(r.times[i] == (double)(i + 1), "%zu: %g", i, r.times[i]);
	EXPECT(gf_rival_time_s(&r) == 3, "%g", gf_rival_time_s(&r));
}

/* Two rivals, n times each, all the same but the first one's last. */
static void test_weed(void)
{
	static const struct {
		size_t n;
		double one, last, other;
		size_t left, best;
	} cases[] = {
		{1, 1, 1, 3.9, 2, 0},   {1, 1, 1, 4.1, 1, 0},
		{3, 1, 1, 1.9, 2, 0},   {3, 1, 1, 2.1, 1, 0},
		{13, 1, 1, 1.04, 2, 0}, {13, 1, 1, 1.06, 1, 0},
		{9, 1, 1, 0.98, 2, 0}, /* a tie: the first */
		{9, 1, 1, 0.96, 2, 1},  {9, 1, 1, 0.9, 1, 1},
		{4, 1, 9, 1.8, 1, 0}, /* one bad run does not lose */
		{1, 4.1, 4.1, 1, 1, 1},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_rival r[3] = {{.n = 0}, {.n = 0}, {.out = true}};

		for (k = 0; k + 1 < cases[i].n; k++)
			gf_rival_add(&r[0], cases[i].one);
		gf_rival_add(&r[0], cases[i].last);
		for (k = 0; k < cases[i].n; k++)
			gf_rival_add(&r[1], cases[i].other);
		EXPECT(gf_rivals_weed(r, 3) == cases[i].left, "case %zu", i);
		EXPECT(gf_rivals_best(r, 3) == cases[i].best, "case %zu: %zu", i,
		       gf_rivals_best(r, 3));
	}
}

static void test_near(void)
{
	static const double times[] = {1.16, 1.02, 1, 1.14, 0.5};
	static const bool out[] = {true, false, false, false, true};
	struct gf_rival r[GF_ARRAY_LENGTH(times)] = {{.n = 0}};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(times); i++) {
		gf_rival_add(&r[i], times[i]);
		gf_rival_add(&r[i], 3 * times[i]); /* one bad run */
	}
	r[4].out = true; /* long since */
	/* the best is the second: the third is not faster by 3 % */
	EXPECT(gf_rivals_near(r, GF_ARRAY_LENGTH(times), 1.13) == 3, "left");
	for (i = 0; i < GF_ARRAY_LENGTH(times); i++)
		EXPECT(r[i].out == out[i], "%zu", i);
	EXPECT(gf_rivals_near(r, 0, 2) == 0, "of none");
}

static double noise(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (double)(*state >> 40) / (double)(1 << 24);
}

/* Runs that are up to a quarter slower by chance, a fifth of them three times so. In how many games
 * the fastest is found, after how many runs. */
static size_t play(double fastest_s, size_t games, size_t *runs)
{
	enum { RIVALS = 6 };
	size_t found = 0, i, game;
	uint64_t state = 1;

	for (*runs = 0, game = 0; game < games; game++) {
		struct gf_rival r[RIVALS] = {{.n = 0}};
		size_t fast = game % RIVALS, round, left = RIVALS;

		for (round = 0; round < GF_RIVAL_TIMES && left > 1; round++) {
			for (i = 0; i < RIVALS; i++) {
				double s = i == fast ? fastest_s : 1;

				if (r[i].out)
					continue;
				s *= 1 + noise(&state) / 4;
				s *= noise(&state) < 0.2 ? 3 : 1;
				gf_rival_add(&r[i], s);
				++*runs;
			}
			left = gf_rivals_weed(r, RIVALS);
		}
		found += gf_rivals_best(r, RIVALS) == fast;
	}
	return found;
}

/* The clearer the difference, the surer and the sooner it is found. */
static void test_noise(void)
{
	static const struct {
		double fastest_s;
		size_t found, runs; /* at least, at most; of 200 games */
	} cases[] = {
		{0.9, 170, 38400}, /* any number */
		{0.8, 190, 16000},
		{0.6, 190, 9000},
	};
	size_t i, found, runs;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		found = play(cases[i].fastest_s, 200, &runs);
		EXPECT(found >= cases[i].found, "case %zu: %zu games", i, found);
		EXPECT(runs <= cases[i].runs, "case %zu: %zu runs", i, runs);
	}
}

int main(void)
{
	struct gf_rival none = {.out = true};

	EXPECT(gf_rivals_best(&none, 1) == 1 && gf_rivals_weed(&none, 1) == 0, "nobody is in");
	test_times();
	test_weed();
	test_near();
	test_noise();
	return TEST_END();
}
