/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "base/rng.h"
#include "cost/fit.h"
#include "test.h"

/* How far a recovered constant may be off, relative. */
static const double noisy_tolerance = 0.05;
static const double exact_tolerance = 1e-9;

/* Twelve sizes, 1 KiB to 4 MiB, as a profile measures. */
#define NSIZES 12

static void measure(double startup, double per_byte, double noise, struct gf_rng *rng, double *size,
		    double *time)
{
	size_t i;

	for (i = 0; i < NSIZES; i++) {
		size[i] = (double)((size_t)1024 << i) * 2;
		time[i] = (startup + per_byte * size[i]) * (1 + noise * gf_rng_normal(rng));
	}
}

static void test_recovers(void)
{
	static const struct {
		const char *name;
		double startup_s, per_byte_s, noise;
	} cases[] = {
		{"1 Gb/s Ethernet", 2e-4, 1.2e-8, 0},
		{"1 Gb/s Ethernet, 2 % noise", 2e-4, 1.2e-8, 0.02},
		{"shared memory", 5e-6, 2.5e-10, 0},
		{"shared memory, 2 % noise", 5e-6, 2.5e-10, 0.02},
		{"paper: a = 1.065 ms, b = 4.6e-10", 1.065e-3, 4.6e-10, 0.01},
		{"seconds", 3, 2.5e-4, 0.02},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		double size[NSIZES], time[NSIZES];
		double tolerance = cases[i].noise > 0 ? noisy_tolerance : exact_tolerance;
		struct gf_linear_fit fit;
		struct gf_lines_fit lines;
		struct gf_error err = {""};
		struct gf_rng rng;
		int rc;

		gf_rng_init(&rng, 7, i);
		measure(cases[i].startup_s, cases[i].per_byte_s, cases[i].noise, &rng, size, time);
		rc = gf_fit_linear(size, time, NSIZES, &fit, &err);
		EXPECT(rc == 0, "%s: %s", cases[i].name, err.text);
		EXPECT_NEAR(fit.startup_s / cases[i].startup_s, 1, tolerance, "%s", cases[i].name);
		EXPECT_NEAR(fit.per_byte_s / cases[i].per_byte_s, 1, tolerance, "%s",
			    cases[i].name);
		rc = gf_fit_lines(&(struct gf_fit_points){size, time, NSIZES}, 1, &lines, &err);
		EXPECT(rc == 0 && lines.r_squared > 0.99, "%s: %g", cases[i].name, lines.r_squared);
		EXPECT(!fit.clamped_startup && !fit.clamped_slope, "%s", cases[i].name);
		EXPECT(lines.residual_max >= lines.residual_rms, "%s", cases[i].name);
	}
}

/* Small sizes must count: with absolute residuals one noisy large message would swallow a startup
 * of microseconds. */
static void test_weights(void)
{
	double size[] = {1024, 4096, 16384, 65536, 1 << 20, 1 << 26};
	double time[GF_ARRAY_LENGTH(size)];
	struct gf_fit_points points = {size, time, GF_ARRAY_LENGTH(size)};
	struct gf_lines_fit fit;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(size); i++)
		time[i] = 1e-5 + 1e-9 * size[i];
	time[GF_ARRAY_LENGTH(size) - 1] *= 1.05; /* 3 ms against 10 us */
	EXPECT(gf_fit_lines(&points, 1, &fit, NULL) == 0, "weights");
	EXPECT_NEAR(fit.lines[0].startup_s / 1e-5, 1, noisy_tolerance, "startup");
	EXPECT_NEAR(fit.lines[0].per_byte_s / 1e-9, 1, noisy_tolerance, "slope");
	EXPECT(fit.residual_max > 0.02 && fit.residual_max < 0.06, "%g", fit.residual_max);
}

static void test_clamped(void)
{
	static const struct {
		const char *name;
		double time[3];
		int startup, slope; /* clamped */
		double want_startup_s, want_per_byte_s;
	} cases[] = {
		/* t = 2m - 1: the startup would be -1. Best a = 0 slope:
		 * sum(m/t) / sum((m/t)^2) over m/t = 1, 2/3, 4/7 */
		{"negative startup",
		 {1, 3, 7},
		 1,
		 0,
		 0,
		 (1 + 2. / 3 + 4. / 7) / (1 + 4. / 9 + 16. / 49)},
		/* falling: best flat line sum(1/t)/sum(1/t^2), t = 4, 2, 1 */
		{"negative slope", {4, 2, 1}, 0, 1, (1.75) / (1.3125), 0},
		{"flat", {2, 2, 2}, 0, 0, 2, 0},
		{"through the origin", {3, 6, 12}, 0, 0, 0, 3},
	};
	static const double size[3] = {1, 2, 4};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_linear_fit fit;

		EXPECT(gf_fit_linear(size, cases[i].time, 3, &fit, NULL) == 0, "%s", cases[i].name);
		EXPECT(fit.clamped_slope == cases[i].slope, "%s", cases[i].name);
		EXPECT(fit.startup_s >= 0 && fit.per_byte_s >= 0, "%s", cases[i].name);
		EXPECT_NEAR(fit.startup_s, cases[i].want_startup_s, 1e-12, "%s", cases[i].name);
		EXPECT_NEAR(fit.per_byte_s, cases[i].want_per_byte_s, 1e-12, "%s", cases[i].name);
		if (cases[i].startup)
			EXPECT(fit.clamped_startup, "%s", cases[i].name);
	}
}

static void test_refused(void)
{
	static const struct {
		double size[2], time[2];
		size_t count;
		const char *want;
	} cases[] = {
		{{0}, {0}, 0, "fit: want at least 2 distinct sizes, got 0 points of none"},
		{{8, 8},
		 {1, 2},
		 2,
		 "fit: want at least 2 distinct sizes, got 2 points of one size"},
		{{8, 16}, {1, 0}, 2, "fit: want times > 0, got 0 s at 16 bytes"},
		{{8, 16}, {1, NAN}, 2, "fit: want times > 0, got nan s at 16 bytes"},
		{{-8, 16}, {1, 1}, 2, "fit: want sizes >= 0, got -8"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_linear_fit fit = {.startup_s = -7};
		struct gf_error err = {""};

		EXPECT(gf_fit_linear(cases[i].size, cases[i].time, cases[i].count, &fit, &err) ==
			       -EINVAL,
		       "case %zu", i);
		EXPECT_TEXT(err.text, cases[i].want);
		EXPECT(fit.startup_s == -7, "output touched in case %zu", i);
	}
}

int main(void)
{
	test_recovers();
	test_weights();
	test_clamped();
	test_refused();
	return TEST_END();
}
