/* SPDX-License-Identifier: BSD-3-Clause */
/* Several lines where one does not do, one where it does. */
#include <stdbool.h>

#include "base/array.h"
#include "base/rng.h"
#include "cost/fit.h"
#include "cost/stat.h"
#include "test.h"

/* How far a recovered constant may be off, relative. */
static const double exact_tolerance = 1e-6, noisy_tolerance = 0.15;

/* 1 KiB to 16 MiB in powers of two. */
#define NSIZES 15

struct piece {
	double from_bytes, startup_s, per_byte_s;
};

struct curve {
	const char *name;
	struct piece pieces[3];
	struct {
		size_t npieces;
		double noise;
		size_t want; /* lines */
	};
};

static double time_of(const struct curve *c, double bytes)
{
	size_t i = c->npieces;

	while (i > 1 && c->pieces[i - 1].from_bytes > bytes)
		i--;
	return c->pieces[i - 1].startup_s + c->pieces[i - 1].per_byte_s * bytes;
}

static void measure(const struct curve *c, uint64_t seed, double *size, double *time)
{
	struct gf_rng rng;
	size_t i;

	gf_rng_init(&rng, seed, 0);
	for (i = 0; i < NSIZES; i++) {
		size[i] = (double)((size_t)1024 << i);
		time[i] = time_of(c, size[i]) * (1 + c->noise * gf_rng_normal(&rng));
	}
}

static const struct curve curves[] = {
	{"one line", {{0, 1e-4, 9e-9}}, {1, 0, 1}},
	{"a library that asks before it sends 64 KiB",
	 {{0, 1e-5, 8e-9}, {65536, 1e-3, 9e-9}},
	 {2, 0, 2}},
	{"the same, 3 % noise", {{0, 1e-5, 8e-9}, {65536, 1e-3, 9e-9}}, {2, 0.03, 2}},
	{"a kink without a jump", {{0, 1e-5, 3e-8}, {100000, 2.51e-3, 5e-9}}, {2, 0, 2}},
	{"a library that changes its algorithm too late",
	 {{0, 3e-5, 1.3e-9}, {2097152, 1e-4, 1.4e-10}},
	 {2, 0, 2}},
	{"the same, 3 % noise", {{0, 3e-5, 1.3e-9}, {2097152, 1e-4, 1.4e-10}}, {2, 0.03, 2}},
	{"three lines", {{0, 1e-5, 1e-9}, {16384, 5e-4, 4e-9}, {1048576, 3e-2, 1e-8}}, {3, 0, 3}},
};

static void check(const struct curve *c, const struct gf_lines_fit *f)
{
	double tolerance = c->noise > 0 ? noisy_tolerance : exact_tolerance;
	size_t i;

	EXPECT(f->nlines == c->want, "%s: want %zu lines, got %zu", c->name, c->want, f->nlines);
	if (f->nlines != c->npieces)
		return;
	for (i = 0; i < f->nlines; i++) {
		EXPECT_NEAR(f->lines[i].startup_s / c->pieces[i].startup_s, 1,
			    i == 0 || c->noise == 0 ? 3 * tolerance : tolerance, "%s, line %zu",
			    c->name, i);
		EXPECT_NEAR(f->lines[i].per_byte_s / c->pieces[i].per_byte_s, 1, tolerance,
			    "%s, line %zu", c->name, i);
		if (i > 0) /* between the sizes on its two sides */
			EXPECT(f->from_bytes[i] > c->pieces[i].from_bytes / 2 &&
				       f->from_bytes[i] < 2 * c->pieces[i].from_bytes,
			       "%s, line %zu from %g", c->name, i, f->from_bytes[i]);
	}
	EXPECT(f->residual_max < 4 * c->noise + exact_tolerance, "%s: off by %g", c->name,
	       f->residual_max);
}

/* Does a line begin below the end of the one before? */
static bool falls_at(const struct gf_lines_fit *f, size_t line)
{
	const double from = f->from_bytes[line];

	return f->lines[line].startup_s + f->lines[line].per_byte_s * from <
	       (f->lines[line - 1].startup_s + f->lines[line - 1].per_byte_s * from) * (1 - 1e-12);
}

/* One slow sample is no fall. */
static void test_slow_sample(void)
{
	double size[NSIZES], time[NSIZES];
	struct gf_fit_points points = {size, time, NSIZES};
	struct gf_lines_fit f;
	size_t at, i;

	for (at = 0; at < NSIZES; at++) {
		measure(&curves[0], 0, size, time);
		time[at] *= 3;
		EXPECT(!gf_fit_lines(&points, GF_FIT_LINES_MOST, &f, NULL), "%zu", at);
		for (i = 1; i < f.nlines; i++)
			EXPECT(!falls_at(&f, i), "point %zu is slow: line %zu falls", at, i);
	}
}

static void test_recovers(void)
{
	double size[NSIZES], time[NSIZES];
	struct gf_fit_points points = {size, time, NSIZES};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(curves); i++) {
		struct gf_lines_fit f;
		struct gf_error err = {""};

		measure(&curves[i], i, size, time);
		EXPECT(gf_fit_lines(&points, GF_FIT_LINES_MOST, &f, &err) == 0, "%s: %s",
		       curves[i].name, err.text);
		check(&curves[i], &f);
		EXPECT(gf_fit_lines(&points, 1, &f, &err) == 0 && f.nlines == 1,
		       "%s: one line wanted, got %zu", curves[i].name, f.nlines);
	}
}

/*
 * A ring and halving of four at 1 Gb/s as they were measured: small messages by chance; from 64 KiB
 * on the ring takes 12.8 ns/B and no startup, from 512 KiB on halving 15. One line, which all sizes
 * share, is 9 and 13 % too fast for the largest, enough to choose the slower of the two.
 */
static void test_noisy_below(void)
{
	static const double size[] = {1024,    2048,    4096,    8192,    16384,
				      32768,   65536,   131072,  262144,  524288,
				      1048576, 2097152, 4194304, 8388608, 16777216};
	static const struct {
		const char *name;
		double time_ms[NSIZES], low, high, per_byte_s;
	} cases[] = {
		{"ring",
		 {0.26, 0.34, 0.35, 0.29, 0.57, 0.46, 0.85, 1.656, 3.33, 6.84, 13.5, 26.5, 53.3,
		  106.8, 214.9},
		 32768,
		 131072,
		 12.8e-9},
		{"halving",
		 {0.253, 0.178, 0.282, 0.369, 0.3, 0.549, 0.829, 1.656, 3.5, 7.76, 15.93, 30.71,
		  64.63, 128.9, 244.5},
		 131072,
		 1048576,
		 15e-9},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		double time[NSIZES];
		struct gf_fit_points points = {size, time, NSIZES};
		struct gf_lines_fit f;

		for (k = 0; k < NSIZES; k++)
			time[k] = 1e-3 * cases[i].time_ms[k];
		EXPECT(gf_fit_lines(&points, GF_FIT_LINES_MOST, &f, NULL) == 0 && f.nlines == 2,
		       "%s: want 2 lines, got %zu", cases[i].name, f.nlines);
		EXPECT(f.from_bytes[1] > cases[i].low && f.from_bytes[1] <= cases[i].high,
		       "%s: from %g bytes", cases[i].name, f.from_bytes[1]);
		EXPECT_NEAR(f.lines[1].per_byte_s / cases[i].per_byte_s, 1, 0.02, "%s",
			    cases[i].name);
	}
}

/* Costs do not fall by a little; and no lines are worse than one. */
static void test_fall(void)
{
	static const struct curve falls[] = {
		{"a small one", {{0, 1e-3, 8e-9}, {65536, 9e-4, 2e-9}}, {2, 0.02, 0}},
		{"large ones free", {{0, 1e-3, 8e-9}, {65536, 1e-3, 0}}, {2, 0, 0}},
	};
	double size[NSIZES], time[NSIZES];
	struct gf_fit_points points = {size, time, NSIZES};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(falls); i++) {
		struct gf_lines_fit f, one;

		measure(&falls[i], i, size, time);
		EXPECT(gf_fit_lines(&points, GF_FIT_LINES_MOST, &f, NULL) == 0 &&
			       gf_fit_lines(&points, 1, &one, NULL) == 0,
		       "%s", falls[i].name);
		EXPECT(f.residual_rms <= one.residual_rms, "%s: %g, one %g", falls[i].name,
		       f.residual_rms, one.residual_rms);
		for (k = 1; k < f.nlines; k++)
			EXPECT(!falls_at(&f, k), "%s: falls at %g", falls[i].name, f.from_bytes[k]);
	}
}

/* The median of five repeats of each size, and their spread. */
static void measure_five(const struct curve *c, uint64_t seed, double *size, double *time,
			 double *spread)
{
	double times[5][NSIZES], of_size[5];
	size_t i, k;

	for (k = 0; k < 5; k++)
		measure(c, 5 * seed + k, size, times[k]);
	for (i = 0; i < NSIZES; i++) {
		for (k = 0; k < 5; k++)
			of_size[k] = times[k][i];
		time[i] = gf_stat_median(of_size, 5);
		spread[i] = gf_stat_spread(of_size, 5);
	}
}

/* Noise alone makes no second line. */
static void test_noise(void)
{
	struct curve c = {"noise", {{0, 2e-4, 1e-8}}, {1, 0.15, 1}};
	double size[NSIZES], time[NSIZES], spread[NSIZES];
	struct gf_fit_points points = {size, time, NSIZES}, known = {size, time, NSIZES, spread};
	size_t seed, more = 0, more_known = 0;

	for (seed = 0; seed < 200; seed++) {
		struct gf_lines_fit f;

		measure(&c, seed, size, time);
		EXPECT(gf_fit_lines(&points, GF_FIT_LINES_MOST, &f, NULL) == 0, "seed %zu", seed);
		more += f.nlines > 1;
		measure_five(&c, seed, size, time, spread);
		EXPECT(gf_fit_lines(&known, GF_FIT_LINES_MOST, &f, NULL) == 0, "seed %zu", seed);
		more_known += f.nlines > 1;
	}
	EXPECT(more <= 5, "%zu of 200 noisy lines were cut", more);
	EXPECT(more_known <= 10, "%zu of 200 noisy lines of known spread were cut", more_known);
}

/*
 * Curves that one cut makes no better, as they were measured: direct's all-gathers among four hosts
 * at 1 Gb/s, whose links let the first 8,000 bytes of a message pass; and point to point over TCP,
 * whose larger messages cost no more than those of half the size.
 */
static void test_bends(void)
{
	static const struct {
		const char *name;
		double time_us[NSIZES], spread_us;
		size_t count;
		double within;
	} cases[] = {
		{"direct",
		 {81, 86, 83, 134, 247, 494, 555, 916, 1802, 4383, 8342, 15236, 29327},
		 10,
		 13,
		 0.14},
		{"point to point",
		 {10.1, 19.9, 36.7, 76.5, 140.8, 303.7, 1757.2, 2821, 4548.9, 7178.7, 9183.7,
		  17981.3, 35999.1, 71360.9, 142688.3},
		 0,
		 NSIZES,
		 0.07},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		double size[NSIZES], time[NSIZES], spread[NSIZES];
		struct gf_fit_points points = {size, time, cases[i].count, spread};
		struct gf_lines_fit f;

		measure(&curves[0], 0, size, time);
		for (k = 0; k < cases[i].count; k++) {
			time[k] = 1e-6 * cases[i].time_us[k];
			spread[k] = 1e-6 * cases[i].spread_us;
		}
		EXPECT(gf_fit_lines(&points, GF_FIT_LINES_MOST, &f, NULL) == 0, "%s",
		       cases[i].name);
		EXPECT(f.residual_max < cases[i].within, "%s: off by %g with %zu lines",
		       cases[i].name, f.residual_max, f.nlines);
		for (k = 1; k < f.nlines; k++)
			EXPECT(!falls_at(&f, k), "%s: falls at %g", cases[i].name, f.from_bytes[k]);
	}
}

static void test_unsorted(void)
{
	static const double size[] = {8, 1, 2, 4, 3, 16, 32, 64};
	static const double time[] = {9, 1, 1, 1, 1, 9, 9, 9};
	struct gf_fit_points points = {size, time, 8};
	struct gf_lines_fit f;

	EXPECT(gf_fit_lines(&points, GF_FIT_LINES_MOST, &f, NULL) == 0 && f.nlines == 1,
	       "sizes that do not ascend");
}

int main(void)
{
	test_recovers();
	test_slow_sample();
	test_noisy_below();
	test_fall();
	test_noise();
	test_bends();
	test_unsorted();
	return TEST_END();
}
