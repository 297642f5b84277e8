/* SPDX-License-Identifier: BSD-3-Clause */
/* The error of sums: measured right, and as it is predicted, by every algorithm under every codec.
 */
#include <errno.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "collectives/codecs/encode.h"
#include "collectives/rounding.h"
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

/* --- as predicted ----------------------------------------------------------- */

/* What one encoding does to normal values. */
static void encodings(void)
{
	enum { N = 1 << 17 };
	float *x = gf_xcalloc(N, sizeof(*x)), *y = gf_xcalloc(N, sizeof(*y));
	const struct gf_codec *c;
	struct gf_rng rng;
	size_t i;

	gf_rng_init(&rng, 1, 1);
	for (i = 0; i < N; i++)
		x[i] = (float)gf_rng_normal(&rng);
	for (c = gf_codecs; c->name; c++) {
		double xx = 0, ex = 0, ee = 0, cut;

		memcpy(y, x, N * sizeof(*y));
		gf_codec_round(c, y, N);
		for (i = 0; i < N; i++) {
			const double e = (double)y[i] - x[i];

			xx += (double)x[i] * x[i];
			ex += e * x[i];
			ee += e * e;
		}
		cut = -ex / xx;
		EXPECT(fabs(sqrt(fmax(ee - ex * ex / xx, 0) / xx) - c->rms) <= 0.05 * c->rms,
		       "%s: rms %g, not %g", c->name, sqrt((ee - ex * ex / xx) / xx), c->rms);
		EXPECT(fabs(cut - c->cut) <= 0.05 * c->cut + 0.1 * c->rms, "%s: cut %g, not %g",
		       c->name, cut, c->cut);
	}
	free(x);
	free(y);
}

#define ELEMS ((size_t)1 << 13)

struct job {
	struct gf_way way;
	const char *codec;
	enum gf_dtype dtype;
	double rms; /* rank 0's */
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
	struct gf_contest_row row;
	struct gf_contest_allreduce *b = NULL;
	struct gf_error err = {""};
	int rc = gf_contest_element(job->dtype, GF_OP_SUM, job->dtype == GF_F32 ? job->codec : NULL,
				    &config.element, &err);

	rc = rc ? rc : gf_contest_allreduce_open(&config, ELEMS, &b, &err);
	rc = rc ? rc : gf_contest_allreduce_size(b, &job->way, 1, ELEMS, &row, &err);
	EXPECT(rc == 0, "%s", err.text);
	gf_contest_allreduce_close(b);
	if (!c->rank && !rc)
		job->rms = row.error.rms;
}

/* Measured rms errors are within 20 % of those predicted. Where values are cut toward zero the sum
 * of two that were cut has fewer bits to lose, which is not predicted: 25 %. */
static void compare(struct job *job, int ranks)
{
	const struct gf_codec *codec = gf_codec_find(job->codec);
	const bool sums16 = job->dtype != GF_F32;
	struct gf_coll_args args = gf_way_args(&job->way, ranks);
	struct gf_rounding r;
	struct gf_error err = {""};
	double predicted;

	args.count_elems = ELEMS;
	args.elem_bytes = sizeof(float);
	args.lossy = !sums16 && codec->error > 0;
	if (gf_algorithm_can(job->way.algorithm, &args, &err))
		return;
	EXPECT(gf_rounding_of(job->way.algorithm, &args, &r, &err) == 0, "%s", err.text);
	predicted = gf_rounding_rms(&r, codec, job->dtype, NULL);
	on_ranks(ranks, contest_on, job);
	EXPECT(fabs(job->rms / predicted - 1) < (codec->cut > codec->rms ? 0.25 : 0.2),
	       "%s, %s, %s, %d ranks: %g, predicted %g", job->way.algorithm->name, job->codec,
	       gf_dtype_names[job->dtype], ranks, job->rms, predicted);
}

static void predicted(void)
{
	static const int ranks[] = {2, 3, 4, 8, 16};
	const struct gf_algorithm *a;
	const struct gf_codec *c;
	size_t i, k;

	for (i = 0; (a = gf_algorithms[i]); i++)
		for (k = 0; a->build && k < GF_ARRAY_LENGTH(ranks); k++) {
			struct job job = {.way = {.algorithm = a}, .codec = "f32"};

			if (gf_way_takes_factors(a) && ranks[k] > 4) {
				job.way.nfactors = 2;
				job.way.factors[0] = 4;
				job.way.factors[1] = ranks[k] / 4;
			}
			for (c = gf_codecs; c->name; c++) {
				job.codec = c->name;
				compare(&job, ranks[k]);
			}
			job.codec = "f32";
			job.dtype = GF_BF16;
			compare(&job, ranks[k]);
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
	encodings();
	predicted();
	return TEST_END();
}
