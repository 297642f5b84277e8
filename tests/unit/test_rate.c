/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "test.h"

#include "base/array.h"
#include "trainer/optim/rate.h"

#define TOLERANCE 1e-12

static const size_t drops[] = {4, 6, 6};

static const struct {
	const char *label;
	struct gf_rate rate;
	size_t step;
	double want;
} cases[] = {
	{"no warm-up", {.1, GF_RATE_CONSTANT, 0, 100}, 0, .1},
	{"constant to the end", {.1, GF_RATE_CONSTANT, 0, 100}, 99, .1},
	{"constant behind the end", {.1, GF_RATE_CONSTANT, 0, 100}, 500, .1},
	{"first step of a warm-up", {.1, GF_RATE_CONSTANT, 4, 100}, 0, .025},
	{"last step of a warm-up", {.1, GF_RATE_CONSTANT, 4, 100}, 3, .1},
	{"behind a warm-up", {.1, GF_RATE_CONSTANT, 4, 100}, 4, .1},
	{"linear begins at the peak", {1, GF_RATE_LINEAR, 0, 10}, 0, 1},
	{"linear falls", {1, GF_RATE_LINEAR, 0, 10}, 5, .5},
	{"linear's last step", {1, GF_RATE_LINEAR, 0, 10}, 9, .1},
	{"linear behind the end", {1, GF_RATE_LINEAR, 0, 10}, 10, 0},
	{"linear behind a warm-up", {1, GF_RATE_LINEAR, 5, 15}, 10, .5},
	{"cosine begins at the peak", {2, GF_RATE_COSINE, 0, 8}, 0, 2},
	{"cosine halfway", {2, GF_RATE_COSINE, 0, 8}, 4, 1},
	{"cosine, three quarters", {2, GF_RATE_COSINE, 0, 8}, 6, 1 - 0.70710678118654752},
	{"cosine behind the end", {2, GF_RATE_COSINE, 0, 8}, 8, 0},
	/* from 2 down to .5: .5 + 1.5 * (1 + cos(3 pi / 4)) / 2 */
	{"a floor, three quarters",
	 {2, GF_RATE_COSINE, 0, 8, .floor = .25},
	 6,
	 .5 + .75 * (1 - 0.70710678118654752)},
	{"a floor halfway", {2, GF_RATE_COSINE, 0, 8, .floor = .25}, 4, 1.25},
	{"a floor behind the end", {2, GF_RATE_COSINE, 0, 8, .floor = .25}, 9, .5},
	{"a floor at the peak", {2, GF_RATE_COSINE, 0, 8, .floor = 1}, 5, 2},
	{"a warm-up below the floor", {2, GF_RATE_COSINE, 4, 8, .floor = .5}, 0, .5},
	{"all of it a warm-up", {1, GF_RATE_COSINE, 8, 8}, 7, 1},
	{"stopped inside the warm-up", {1, GF_RATE_COSINE, 10, 8}, 4, .5},
	{"poly begins at the peak", {3, GF_RATE_POLY, 0, 10, .power = 2}, 0, 3},
	{"poly, half is left", {3, GF_RATE_POLY, 0, 10, .power = 2}, 5, .75},
	{"poly's last step behind a warm-up", {3, GF_RATE_POLY, 6, 10, .power = 2}, 9, .1875},
	{"poly behind the end", {3, GF_RATE_POLY, 0, 10, .power = 2}, 10, 0},
	{"before the first drop", {8, GF_RATE_STEP, 0, 10, 0, .5, drops, 3}, 3, 8},
	{"a drop", {8, GF_RATE_STEP, 0, 10, 0, .5, drops, 3}, 4, 4},
	{"two at once", {8, GF_RATE_STEP, 0, 10, 0, .5, drops, 3}, 6, 1},
	{"dropped for good", {8, GF_RATE_STEP, 0, 10, 0, .5, drops, 3}, 99, 1},
	{"a warm-up longer than a drop", {8, GF_RATE_STEP, 8, 10, 0, .5, drops, 3}, 5, 6},
	{"no drops", {8, GF_RATE_STEP, 0, 10, 0, .5, NULL, 0}, 9, 8},
	{"no step at all", {1, GF_RATE_LINEAR, 0, 0}, 0, 0},
};

/* Beside the library's functions, over many steps. */
static void test_curves(void)
{
	static const double powers[] = {.5, 1, 2, 3.7, 60};
	struct gf_rate r = {3, GF_RATE_COSINE, 0, 1000};
	size_t step, p;
	double left, want;

	for (step = 0; step < r.total_steps; step++) {
		left = (double)(r.total_steps - step) / (double)r.total_steps;
		r.shape = GF_RATE_COSINE;
		want = 1.5 * (1 - cos(M_PI * left));
		EXPECT_NEAR(gf_rate_at(&r, step), want, 1e-14, "cosine %zu", step);
		r.shape = GF_RATE_POLY;
		for (p = 0; p < GF_ARRAY_LENGTH(powers); p++) {
			r.power = powers[p];
			want = 3 * pow(left, powers[p]);
			EXPECT_NEAR(gf_rate_at(&r, step), want, 1e-13 * want + 1e-300,
				    "power %g, step %zu", powers[p], step);
		}
	}
}

int main(void)
{
	size_t i;

	test_curves();

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		EXPECT_NEAR(gf_rate_at(&cases[i].rate, cases[i].step), cases[i].want, TOLERANCE,
			    "%s", cases[i].label);
	EXPECT_NEAR(gf_rate_scaled(.1, 256, 8192), 3.2, TOLERANCE, "Goyal et al.: 256 GPUs of 32");
	return TEST_END();
}
