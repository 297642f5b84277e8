/* SPDX-License-Identifier: BSD-3-Clause */
/* The error of sums: measured right, and where it should be for ring and direct under every
 * codec. */
#include <errno.h>

#include "base/array.h"
#include "base/heap.h"
#include "profiler/contest/allreduce.h"
#include "profiler/contest/exact.h"
#include "ranks.h"

enum { COUNT = 5000 }; /* no whole number of blocks */

static const struct known {
	enum gf_dtype dtype;
	enum gf_op op;
	double scale, shift_first; /* of the exact result */
	double rounding;           /* of the type */
	size_t message;            /* of which each rank has its part alone; 0: all have all */
} knowns[] = {
	{GF_F64, GF_OP_SUM, 1, 0, 1e-15},
	{GF_F64, GF_OP_SUM, 1.01, 0, 1e-12},
	{GF_F64, GF_OP_AVG, 0.5, 0, 1e-12},
	{GF_F64, GF_OP_SUM, 1, 3, 1e-12},
	{GF_F32, GF_OP_SUM, 1.25, 0, 1e-6},
	{GF_BF16, GF_OP_AVG, 1.25, 0, 4e-3},
	{GF_F16, GF_OP_SUM, 1, NAN, 0},
	{GF_F64, GF_OP_SUM, 1, 3, 1e-12, COUNT},
	{GF_F64, GF_OP_AVG, 1.01, 0, 1e-12, COUNT / 2},
};

/* A result whose distance from the exact sums is known. */
static void measure_on(struct gf_comm *c, void *ctx)
{
	const struct known *k = ctx;
	double *want = gf_xcalloc(COUNT, sizeof(*want)), squares = 0, most = 0;
	double *one = gf_xcalloc(COUNT, sizeof(*one)), rms, root, max;
	struct gf_sum_error error;
	struct gf_error err = {""};
	int r, i;

	for (r = 0; r < c->ranks; r++) {
		gf_sum_error_fill(k->dtype, r, one, COUNT);
		for (i = 0; i < COUNT; i++)
			want[i] += gf_exact_load(k->dtype, one, (size_t)i) /
				   (k->op == GF_OP_AVG ? c->ranks : 1);
	}
	for (i = 0; i < COUNT; i++) {
		squares += want[i] * want[i];
		most = fmax(most, fabs(want[i]));
		gf_exact_store(k->dtype, one, (size_t)i,
			       k->scale * want[i] + (i ? 0 : k->shift_first));
	}
	/* what is not this rank's is no number */
	for (i = 0; k->message && i < COUNT; i++) {
		size_t begin = (size_t)i / k->message * k->message;
		struct gf_range own = gf_range_part(gf_data(begin, k->message), c->ranks, c->rank);

		if ((size_t)i < own.first || (size_t)i >= own.first + own.count)
			gf_exact_store(k->dtype, one, (size_t)i, NAN);
	}
	root = sqrt(squares / COUNT);
	EXPECT_NEAR(root, sqrt(k->op == GF_OP_AVG ? 1. / c->ranks : c->ranks), 0.05,
		    "the inputs' deviation");
	rms = fabs(k->scale - 1) + fabs(k->shift_first) / sqrt(squares);
	max = (fabs(k->scale - 1) * most + fabs(k->shift_first)) / root;
	EXPECT(gf_sum_error_measure(c, k->dtype, k->op, one, COUNT, k->message, &error, &err) == 0,
	       "%s", err.text);
	if (isnan(k->shift_first)) {
		EXPECT(isinf(error.rms) && isinf(error.max), "%g, %g", error.rms, error.max);
	} else {
		EXPECT(fabs(error.rms - rms) <= k->rounding, "%g, not %g", error.rms, rms);
		EXPECT(fabs(error.max - max) <= 8 * k->rounding, "%g, not %g", error.max, max);
	}
	free(want);
	free(one);
}

/* --- ring and direct ------------------------------------------------------ */

enum { RING, DIRECT, WAYS };

/*
 * Let an encoding change a value by a random d of its magnitude, with mean 0. The exact sum of n
 * values has variance n. A ring sends sums of 1, 2, .. n - 1 values, each encoded, and then the
 * whole sum: d^2 (n (n - 1) / 2 + n) in all, or d^2 (n + 1) / 2 of n. `direct` encodes n - 1
 * values, and the whole sum:
 * d^2 (2 - 1/n) of n.
 */
static double theory(int way, double n)
{
	return way == RING ? (n + 1) / 2 : 2 - 1 / n;
}

struct job {
	const char *codec;
	double rms[WAYS]; /* rank 0's */
};

static void contest_on(struct gf_comm *c, void *ctx)
{
	struct job *job = ctx;
	struct gf_contest_allreduce_config config = {
		.comm = c,
		.lanes = 1,
		.repeats = 1,
		.errors = true,
		.timeout_s = TEST_PATIENCE_S,
	};
	const struct gf_way ways[WAYS] = {[RING] = {.algorithm = gf_algorithm_find("ring")},
					  [DIRECT] = {.algorithm = gf_algorithm_find("direct")}};
	struct gf_contest_row rows[WAYS];
	struct gf_contest_allreduce *b = NULL;
	struct gf_error err = {""};
	int rc = gf_contest_element(GF_F32, GF_OP_SUM, job->codec, &config.element, &err);

	rc = rc ? rc : gf_contest_allreduce_open(&config, 1 << 16, &b, &err);
	rc = rc ? rc : gf_contest_allreduce_size(b, ways, WAYS, 1 << 16, rows, &err);
	EXPECT(rc == 0, "%s", err.text);
	gf_contest_allreduce_close(b);
	if (c->rank || rc)
		return;
	job->rms[RING] = rows[RING].error.rms;
	job->rms[DIRECT] = rows[DIRECT].error.rms;
}

static void test_codecs(void)
{
	static const struct {
		const char *codec;
		bool biased;
	} cases[] = {{"f16", false}, {"bf16", false}, {"trunc16", true},
		     {"q8", false},  {"fp8", false},  {"fp4", false}};
	static const int ranks[] = {4, 8, 16};
	const double tolerance = 0.06;
	size_t i, k;
	int way;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		double d[GF_ARRAY_LENGTH(ranks)][WAYS];

		for (k = 0; k < GF_ARRAY_LENGTH(ranks); k++) {
			struct job job = {.codec = cases[i].codec};

			on_ranks(ranks[k], contest_on, &job);
			for (way = 0; way < WAYS; way++)
				d[k][way] = job.rms[way] / sqrt(theory(way, ranks[k]));
		}
		/* one d explains all; a cut towards 0 adds up in a ring */
		for (k = 0; k < GF_ARRAY_LENGTH(ranks); k++)
			for (way = 0; way < WAYS; way++)
				EXPECT(way == RING && cases[i].biased
					       ? d[k][way] > 1.1 * d[0][DIRECT]
					       : fabs(d[k][way] / d[0][DIRECT] - 1) < tolerance,
				       "%s, %d ranks, way %d: d = %g, not %g", cases[i].codec,
				       ranks[k], way, d[k][way], d[0][DIRECT]);
		/* blocks round by their largest value, some deviations away */
		EXPECT(d[0][DIRECT] > 1e-5 &&
			       d[0][DIRECT] < 4 * gf_codec_find(cases[i].codec)->error,
		       "%s: %g", cases[i].codec, d[0][DIRECT]);
	}
}

int main(void)
{
	size_t i;

	watchdog(240);
	for (i = 0; i < GF_ARRAY_LENGTH(knowns); i++) {
		on_ranks(3, measure_on, (void *)&knowns[i]);
		on_ranks(1, measure_on, (void *)&knowns[i]);
	}
	EXPECT(gf_sum_error_check(GF_I32, GF_OP_SUM, NULL) == -EINVAL, "i32");
	EXPECT(gf_sum_error_check(GF_F32, GF_OP_MAX, NULL) == -EINVAL, "max");
	EXPECT(gf_sum_error_check(GF_F16, GF_OP_AVG, NULL) == 0, "an average");
	test_codecs();
	return TEST_END();
}
