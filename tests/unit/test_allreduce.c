/* SPDX-License-Identifier: BSD-3-Clause */
/* What gf-allreduce stands on: inputs that reduce exactly, bursts, the choice, the sweep and its
 * report. */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "profiler/contest/allreduce.h"
#include "profiler/contest/exact.h"
#include "profiler/contest/row_report.h"
#include "profiler/contest/size_sweep.h"
#include "ranks.h"

/* --- inputs and checks ----------------------------------------------------
 */

enum { COUNT = 3000 };

static double combine(enum gf_op op, double a, double b)
{
	switch (op) {
	case GF_OP_PROD:
		return a * b;
	case GF_OP_MAX:
		return fmax(a, b);
	case GF_OP_MIN:
		return fmin(a, b);
	default:
		return a + b;
	}
}

/* Reduces all ranks' inputs in the type itself, rounding as it would, in an order of its own; or
 * leaves out, doubles, or shifts a rank's. */
enum mistake { NONE, LEFT_OUT, DOUBLED, SHIFTED };

static size_t wrong_after(const struct gf_exact *x, enum mistake mistake)
{
	size_t width = gf_dtype_bytes(x->dtype), i, wrong;
	char *sum = gf_xcalloc(COUNT, width), *one = gf_xcalloc(COUNT, width);
	int r, k, first = x->ranks / 3;

	for (k = 0; k < x->ranks; k++) {
		r = (first + k * (x->ranks > 5 && x->ranks % 5 ? 5 : 1)) % x->ranks;
		if (mistake == LEFT_OUT && k == x->ranks - 1)
			continue;
		if (mistake == DOUBLED && k == x->ranks - 1)
			r = first;
		gf_exact_fill(x, r, one, COUNT);
		for (i = 0; i < COUNT; i++) {
			size_t from = mistake == SHIFTED && k == 1 ? (i + 1) % COUNT : i;
			double b = gf_exact_load(x->dtype, one, from);

			gf_exact_store(x->dtype, sum, i,
				       k == 0 ? b
					      : combine(x->op, gf_exact_load(x->dtype, sum, i), b));
		}
	}
	for (i = 0; i < COUNT && x->op == GF_OP_AVG; i++)
		gf_exact_store(x->dtype, sum, i, gf_exact_load(x->dtype, sum, i) / x->ranks);
	wrong = gf_exact_wrong(x, -1, sum, 0, COUNT);
	free(sum);
	free(one);
	return wrong;
}

static void test_exact(void)
{
	static const int ranks[] = {1, 2, 3, 4, 7, 16, 48, 100, 300};
	struct gf_exact x = {.seed = 3};
	size_t i;
	int type, op;

	for (type = 0; type < GF_DTYPES; type++)
		for (op = 0; op < GF_OPS; op++)
			for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++) {
				size_t wrong;

				x.dtype = (enum gf_dtype)type;
				x.op = (enum gf_op)op;
				x.ranks = ranks[i];
				wrong = wrong_after(&x, NONE);
				EXPECT(wrong == 0, "%s %s %d ranks: %zu wrong",
				       gf_dtype_names[type], gf_op_names[op], ranks[i], wrong);
			}
}

/* Most elements show it, whichever rank it is. */
static void test_mistakes(void)
{
	static const int ranks[] = {2, 3, 8, 33};
	static const enum mistake mistakes[] = {LEFT_OUT, DOUBLED, SHIFTED};
	struct gf_exact x = {.op = GF_OP_SUM};
	size_t i, k;
	int type;

	for (type = 0; type < GF_DTYPES; type++)
		for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++)
			for (k = 0; k < GF_ARRAY_LENGTH(mistakes); k++) {
				size_t wrong;

				x.dtype = (enum gf_dtype)type;
				x.ranks = ranks[i];
				wrong = wrong_after(&x, mistakes[k]);
				EXPECT(wrong > COUNT / 2, "%s, %d ranks, mistake %zu: %zu of %d",
				       gf_dtype_names[type], ranks[i], k, wrong, COUNT);
			}
}

/* Bits of the narrow formats against what they mean. */
static void test_elements(void)
{
	static const struct {
		enum gf_dtype dtype;
		double value;
		uint16_t bits;
		double back;
	} cases[] = {
		{GF_F16, 1, 0x3c00, 1},
		{GF_F16, -2, 0xc000, -2},
		{GF_F16, 65504, 0x7bff, 65504},
		{GF_F16, 65519, 0x7bff, 65504},
		{GF_F16, 65520, 0x7c00, INFINITY},
		{GF_F16, 0x1p-24, 0x0001, 0x1p-24},
		{GF_F16, 0x1p-25, 0x0000, 0},
		{GF_F16, 0x1p-14, 0x0400, 0x1p-14},
		{GF_F16, 1023.0 * 0x1p-24, 0x03ff, 1023.0 * 0x1p-24},
		{GF_F16, 1.0 + 0x1p-11, 0x3c00, 1}, /* to even */
		{GF_F16, 1.0 + 0x1.8p-10, 0x3c02, 1 + 0x1p-9},
		{GF_F16, 2047.5, 0x6800, 2048},
		{GF_F16, 0, 0x0000, 0},
		{GF_BF16, 1, 0x3f80, 1},
		{GF_BF16, 257, 0x4380, 256}, /* to even */
		{GF_BF16, 259, 0x4382, 260},
		{GF_BF16, -0.5, 0xbf00, -0.5},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		uint16_t bits = 0xaaaa;

		gf_exact_store(cases[i].dtype, &bits, 0, cases[i].value);
		EXPECT(bits == cases[i].bits, "case %zu: %#x", i, bits);
		EXPECT(gf_exact_load(cases[i].dtype, &bits, 0) == cases[i].back, "case %zu", i);
	}
}

/* A codec's results may be off by its bound, and not by much more. */
static void test_codec_bound(void)
{
	size_t i, k;

	for (i = 0; gf_codecs[i].name; i++) {
		struct gf_exact x = {.op = GF_OP_SUM, .ranks = 4};
		float *sum = gf_xcalloc(COUNT, sizeof(*sum));
		float *one = gf_xcalloc(COUNT, sizeof(*one));
		int r;

		x.codec = &gf_codecs[i];
		if (x.codec->error == 0)
			goto next;
		for (r = 0; r < x.ranks; r++) {
			gf_exact_fill(&x, r, one, COUNT);
			for (k = 0; k < COUNT; k++)
				sum[k] += one[k] * (float)(1 - x.codec->error);
		}
		EXPECT(gf_exact_wrong(&x, -1, sum, 0, COUNT) == 0, "%s: one encoding",
		       x.codec->name);
		for (k = 0; k < COUNT; k++)
			sum[k] += (float)(40 * x.codec->error) * 4 * 2000;
		EXPECT(gf_exact_wrong(&x, -1, sum, 0, COUNT) == COUNT, "%s: far off",
		       x.codec->name);
	next:
		free(sum);
		free(one);
	}
}

/* Of some elements; and of an all-gather, which rounds each contribution once. */
static void test_exact_parts(void)
{
	struct gf_exact x = {.dtype = GF_F32, .op = GF_OP_SUM, .ranks = 3, .seed = 2};
	float *one = gf_xcalloc(COUNT, sizeof(*one));
	size_t i;

	gf_exact_fill(&x, 1, one, COUNT);
	EXPECT(gf_exact_wrong(&x, 1, one, 0, COUNT) == 0, "the rank's own");
	EXPECT(gf_exact_wrong(&x, 2, one, 0, COUNT) > COUNT / 2, "another rank's");
	EXPECT(gf_exact_wrong(&x, -1, one, 0, COUNT) > COUNT / 2, "the sum");
	one[9] = one[20] = NAN;
	one[10]++;
	EXPECT(gf_exact_wrong(&x, 1, one, 10, 10) == 1, "elements 10 to 19");
	EXPECT(gf_exact_wrong(&x, 1, one, 9, 12) == 3, "elements 9 to 20");
	for (i = 0; gf_codecs[i].name; i++) {
		size_t k;

		x.codec = &gf_codecs[i];
		if (x.codec->error == 0)
			continue;
		gf_exact_fill(&x, 1, one, COUNT);
		for (k = 0; k < COUNT; k++)
			one[k] *= (float)(1 + x.codec->error);
		EXPECT(gf_exact_wrong(&x, 1, one, 0, COUNT) == 0, "%s: once", x.codec->name);
		gf_exact_fill(&x, 1, one, COUNT);
		for (k = 0; k < COUNT; k++)
			one[k] += (float)(3 * x.codec->error) * 2000;
		EXPECT(gf_exact_wrong(&x, 1, one, 0, COUNT) == COUNT, "%s: more", x.codec->name);
	}
	free(one);
}

/* --- what is measured -----------------------------------------------------
 */

static struct gf_contest_allreduce_config config_of(struct gf_comm *c)
{
	return (struct gf_contest_allreduce_config){
		.comm = c,
		.element = gf_element_number(GF_F32, GF_OP_SUM),
		.lanes = 1,
		.warmup = 1,
		.repeats = 3,
		.checks = 2,
		.timeout_s = TEST_PATIENCE_S,
	};
}

static const char *const everything[] = {"all", "auto", NULL};

static void sweep_on(struct gf_comm *c, void *ctx)
{
	struct gf_contest_allreduce_config config = config_of(c);
	struct gf_contest_sweep sweep = {
		.min_bytes = 4, .max_bytes = 40000, .step_factor = 100, .algorithms = everything};
	struct gf_contest_rows rows = {0};
	struct gf_text remarks = {0};
	struct gf_contest_report report;
	struct gf_error err = {""};
	size_t i, k;
	int rc;

	(void)ctx;
	rc = gf_contest_sweep_same(&sweep, &config, NULL, &err);
	if (rc == 0)
		rc = gf_contest_sweep_run(&sweep, &config, NULL, &rows, &remarks, &err);
	EXPECT(rc == 0, "%s", err.text);
	EXPECT(rows.count % 3 == 0 && rows.count >= 3 * 8, "%zu rows", rows.count);
	for (i = 0; i < rows.count; i++) {
		const struct gf_contest_row *row = &rows.list[i];

		for (k = 0; k < 2; k++) {
			const struct gf_contest_reading *m = &row->reading[k];

			EXPECT(m->wrong == 0, "%s: %zu", row->way.algorithm->name, m->wrong);
			EXPECT(m->min_s > 0 && m->min_s <= m->median_s && m->median_s <= m->p90_s &&
				       m->p90_s <= m->p99_s && m->p99_s <= m->max_s,
			       "row %zu", i);
		}
	}
	report = (struct gf_contest_report){
		.config = &config, .rows = rows.list, .nrows = rows.count};
	EXPECT(gf_contest_report_wrong(&report) == 0, "all right");
	EXPECT((gf_contest_report_busbw(&report) > 0) == (c->ranks > 1), "bandwidth of %d ranks",
	       c->ranks);
	free(rows.list);
	gf_text_release(&remarks);
}

/* All ranks get the same choice, the second time without measuring. */
struct chosen {
	const struct gf_algorithm *by_rank[8];
};

static void choose_on(struct gf_comm *c, void *ctx)
{
	struct chosen *chosen = ctx;
	struct gf_watch watch;
	struct gf_chooser *chooser;
	struct gf_way way, again;
	struct gf_error err = {""};
	void *data = gf_xcalloc(10000, sizeof(float));
	int rc;

	gf_watch_init(&watch, c, TEST_PATIENCE_S);
	rc = gf_chooser_new(
		&(struct gf_chooser_config){
			.comm = c,
			.watch = &watch,
			.element = gf_element_number(GF_F32, GF_OP_SUM),
			.lanes = 2,
		},
		&chooser, &err);
	EXPECT(rc == 0, "%s", err.text);
	rc = gf_chooser_pick(chooser, 5000, data, &way, &err);
	EXPECT(rc == 0, "%s", err.text);
	if (rc == 0) {
		uint64_t steps = watch.self.step;

		chosen->by_rank[c->rank] = way.algorithm;
		rc = gf_chooser_pick(chooser, 5000, data, &again, &err);
		EXPECT(rc == 0 && again.algorithm == way.algorithm && watch.self.step == steps,
		       "the same, from memory");
	}
	gf_chooser_free(chooser);
	gf_watch_release(&watch);
	free(data);
}

static void test_choice(void)
{
	struct chosen chosen = {0};
	int r;

	on_ranks(5, choose_on, &chosen);
	for (r = 1; r < 5; r++)
		EXPECT(chosen.by_rank[r] == chosen.by_rank[0], "rank %d", r);
}

/* Where nothing runs, what to take stays unsaid, and so that is said. */
static void choose_none_on(struct gf_comm *c, void *ctx)
{
	struct gf_comm many = *c;
	struct gf_watch watch;
	struct gf_chooser *chooser;
	struct gf_way way = {.nfactors = 3};
	struct gf_error err = {""};
	float data[2];
	int k;

	(void)ctx;
	gf_watch_init(&watch, c, TEST_PATIENCE_S);
	EXPECT(gf_chooser_new(
		       &(struct gf_chooser_config){
			       .comm = &many,
			       .watch = &watch,
			       .element = gf_element_number(GF_F32, GF_OP_SUM),
			       .lanes = 1,
			       .same_bits = true,
		       },
		       &chooser, &err) == 0,
	       "%s", err.text);
	many.ranks = GF_RANKS_MAX + 1;
	for (k = 0; k < 2; k++) {
		EXPECT(gf_chooser_pick(chooser, 2, data, &way, &err) == -ENOTSUP, "time %d", k);
		EXPECT_TEXT(err.text, "want an algorithm for 2 elements of 4 bytes on 16777217 "
				      "ranks, found none");
		EXPECT(!way.algorithm && way.nfactors == 3, "untouched");
	}
	gf_chooser_free(chooser);
	gf_watch_release(&watch);
}

/* Decompositions that are also tried with rings between the hosts. */
static void test_outer_rings(void)
{
	static const struct {
		const char *algorithm;
		size_t nfactors;
		int factors[3];
		const char *said, *stages[3]; /* NULL: as it was */
	} rows[] = {
		{"blueconnect", 2, {2, 4}, NULL, {"halving", "ring"}},
		{"blueconnect", 2, {3, 8}, NULL, {"ring", "ring"}},
		{"blueconnect", 3, {2, 2, 4}, NULL, {"halving", "ring", "ring"}},
		{"blueconnect", 2, {4, 2}, NULL, {NULL}},
		{"blueconnect", 2, {2, 3}, NULL, {NULL}},
		{"blueconnect", 0, {0}, NULL, {NULL}},
		{"blueconnect", 2, {2, 4}, "halving", {"halving", NULL}},
		{"hierarchical", 2, {2, 4}, NULL, {NULL}},
		{"ring", 0, {0}, NULL, {NULL}},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(rows); i++) {
		struct gf_way way = {
			.algorithm = gf_algorithm_find(rows[i].algorithm),
			.nfactors = rows[i].nfactors,
			.stages = {rows[i].said},
		};
		bool want = !rows[i].said && rows[i].stages[0];

		for (k = 0; k < rows[i].nfactors; k++)
			way.factors[k] = rows[i].factors[k];
		EXPECT(gf_way_outer_rings(&way) == want, "row %zu", i);
		for (k = 0; k < GF_ARRAY_LENGTH(rows[i].stages); k++)
			EXPECT(!way.stages[k] == !rows[i].stages[k] &&
				       (!way.stages[k] ||
					!strcmp(way.stages[k], rows[i].stages[k])),
			       "row %zu, stage %zu: %s", i, k, way.stages[k]);
	}
}

/* Two that auto need not measure both: the same steps on every rank. */
static void expect_same_steps(const char *one, const char *other, int ranks)
{
	struct gf_way ways[] = {{.algorithm = gf_algorithm_find(one)},
				{.algorithm = gf_algorithm_find(other)}};
	struct gf_schedule s[2] = {{0}, {0}};
	struct gf_error err = {""};
	int rank, k;
	size_t i;

	EXPECT(gf_way_undivided(&ways[0]) && !gf_way_undivided(&ways[1]), "%s, %s", one, other);
	for (rank = 0; rank < ranks; rank++) {
		for (k = 0; k < 2; k++) {
			struct gf_coll_args args = gf_way_args(&ways[k], ranks);

			args.count_elems = 1001;
			args.elem_bytes = 4;
			args.segment_elems = 64;
			EXPECT(!gf_algorithm_schedule(ways[k].algorithm, &args, rank, &s[k], &err),
			       "%s", err.text);
		}
		EXPECT(s[0].nsteps == s[1].nsteps && s[0].ndeps == s[1].ndeps, "rank %d of %d",
		       rank, ranks);
		for (i = 0; i < s[0].nsteps && i < s[1].nsteps; i++)
			EXPECT(s[0].steps[i].op == s[1].steps[i].op &&
				       s[0].steps[i].peer == s[1].steps[i].peer &&
				       gf_range_same(s[0].steps[i].range, s[1].steps[i].range),
			       "rank %d of %d, step %zu", rank, ranks, i);
		for (k = 0; k < 2; k++)
			gf_schedule_release(&s[k]);
	}
}

static void test_undivided(void)
{
	const struct gf_way two = {
		.algorithm = gf_algorithm_find("blueconnect"),
		.nfactors = 2,
		.factors = {2, 4},
	};

	EXPECT(!gf_way_undivided(&two), "two stages");
	expect_same_steps("blueconnect", "rhd", 2);
	expect_same_steps("blueconnect", "rhd", 8);
	expect_same_steps("blueconnect", "ring", 6);
}

static void test_sweep(void)
{
	static const int ranks[] = {1, 2, 4, 5};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(ranks); i++)
		on_ranks(ranks[i], sweep_on, NULL);
}

/* Ranks that differ. */
static void differ_on(struct gf_comm *c, void *ctx)
{
	const char *what = ctx;
	struct gf_contest_allreduce_config config = config_of(c);
	struct gf_contest_sweep sweep = {
		.min_bytes = 4, .max_bytes = 4096, .step_factor = 2, .algorithms = everything};
	struct gf_error err = {""};
	int rc;

	if (c->rank == 1 && strcmp(what, "sizes") == 0)
		sweep.max_bytes = 8192;
	if (c->rank == 1 && strcmp(what, "options") == 0)
		config.lanes = 3;
	rc = gf_contest_sweep_same(&sweep, &config, NULL, &err);
	EXPECT(rc == -EINVAL && strstr(err.text, what), "%s: %s", what, err.text);
}

/* --- the best per size ----------------------------------------------------
 */

static void test_best(void)
{
	struct gf_comm comm = {.ranks = 4, .local_ranks = 4};
	struct gf_contest_allreduce_config config = {.comm = &comm, .lanes = 2};
	static const struct {
		size_t size;
		const char *algorithm;
		double time_s;
	} given[] = {
		{1024, "ring", 4e-6},   {1024, "tree", 2e-6}, {2048, "ring", 5e-6},
		{2048, "tree", 3e-6},   {4096, "ring", 4e-6}, {4096, "tree", 6e-6},
		{8192, "ring", 7.3e-6}, {8192, "tree", 9e-6}, {16384, "ring", 14e-6},
		{16384, "tree", 20e-6},
	};
	struct gf_contest_row rows[GF_ARRAY_LENGTH(given)] = {{{0}}};
	struct gf_contest_report r = {
		.config = &config, .rows = rows, .nrows = GF_ARRAY_LENGTH(given)};
	struct gf_error err = {""};
	struct gf_plan p;
	size_t i;
	int rc;

	for (i = 0; i < r.nrows; i++) {
		rows[i].way.algorithm = gf_algorithm_find(given[i].algorithm);
		rows[i].size_bytes = given[i].size;
		rows[i].reading[GF_IN_PLACE].median_s = given[i].time_s;
		rows[i].reading[GF_OUT_OF_PLACE].median_s = 1;
	}
	rc = gf_contest_report_rule(&r, &p, &err);
	EXPECT(rc == 0, "%s", err.text);
	if (rc)
		return;
	EXPECT(p.rule->nalgorithms == 2, "%zu", p.rule->nalgorithms);
	EXPECT_TEXT(p.rule->algorithms[0].algorithm, "tree");
	EXPECT(p.rule->algorithms[0].min_bytes == 0, "from 0");
	EXPECT_TEXT(p.rule->algorithms[1].algorithm, "ring");
	EXPECT(p.rule->algorithms[1].min_bytes == 4096, "from 4096");
	/* 8192 in 7.3 us is within a tenth of 16384 in 14 us, 4096 is not */
	EXPECT(p.rule->threshold_bytes == 8192, "%zu", p.rule->threshold_bytes);
	EXPECT(p.rule->lanes == 2 && gf_plan_check(&p, &err) == 0, "%s", err.text);
	gf_plan_release(&p);
	r.nrows = 0;
	EXPECT(gf_contest_report_rule(&r, &p, &err) == -EINVAL, "nothing");
}

/* Times of any length stay plain numbers. */
static void test_table(void)
{
	struct gf_comm comm = {.ranks = 2, .local_ranks = 1};
	struct gf_contest_allreduce_config config = {.comm = &comm,
						     .lanes = 1,
						     .checks = 1,
						     .element =
							     gf_element_number(GF_F32, GF_OP_SUM)};
	struct gf_contest_row row = {.size_bytes = 4000, .count_elems = 1000, .messages = 1};
	struct gf_contest_report r = {.config = &config, .rows = &row, .nrows = 1};
	struct gf_text out = {0};

	row.way.algorithm = gf_algorithm_find("ring");
	row.reading[0] = (struct gf_contest_reading){.median_s = 12.5};
	row.reading[1] = (struct gf_contest_reading){.median_s = 4e-6, .wrong = 3};
	gf_contest_report_print(&r, GF_REPORT_TABLE, 0, &out);
	EXPECT(strstr(out.data, " 12500000 ") != NULL, "%s", out.data);
	EXPECT(strstr(out.data, "    4.000    1.00    1.00      3\n") != NULL, "%s", out.data);
	EXPECT(strstr(out.data, "values : 3 FAILED") != NULL, "%s", out.data);
	gf_text_release(&out);
}

static void test_bandwidth(void)
{
	EXPECT_NEAR(gf_contest_algbw(1e6, 1e-3), 1e9, 1e-12, "algbw");
	EXPECT_NEAR(gf_contest_busbw(GF_COLL_WHOLE, 1e6, 1e-3, 4), 1.5e9, 1e-12, "busbw");
	EXPECT_NEAR(gf_contest_busbw(GF_COLL_WHOLE, 1e6, 1e-3, 1), 0, 1e-12, "one rank");
	EXPECT_NEAR(gf_contest_busbw(GF_COLL_ALL_GATHER, 1e6, 1e-3, 4), 0.75e9, 1e-12, "a half's");
	EXPECT(gf_contest_memory_check(4096, NULL) == 0, "a page");
	EXPECT(gf_contest_memory_check(1e18, NULL) == -ENOMEM, "too much");
}

int main(void)
{
	watchdog(120);
	test_elements();
	test_exact();
	test_mistakes();
	test_codec_bound();
	test_exact_parts();
	test_sweep();
	test_choice();
	on_ranks(2, choose_none_on, NULL);
	test_outer_rings();
	test_undivided();
	on_ranks(3, differ_on, (void *)"sizes");
	on_ranks(3, differ_on, (void *)"options");
	test_best();
	test_table();
	test_bandwidth();
	return TEST_END();
}
