/* SPDX-License-Identifier: BSD-3-Clause */
/* Every entry of the registry of selections, and what entries say of the wire; the options that
 * their tables make. */
#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "doc/selections/select_dgc.h"
#include "doc/selections/select_onebit.h"
#include "doc/selections/select_powersgd.h"
#include "doc/selections/select_randomk.h"
#include "doc_test.h"
#include "planner/axes.h"
#include "selections.h"
#include "test.h"

static const struct gf_tensor tensors[] = {
	{.name = "a", .count_elems = 1000, .dtype = GF_F32},
	{.name = "b", .count_elems = 24, .dtype = GF_F32},
};

/* What others rely on without asking. */
static void test_entries(void)
{
	const struct gf_select_plan *p;
	struct gf_wire wires[GF_WIRES_MOST];
	size_t i, k, n;

	for (i = 0; gf_select_plans[i]; i++) {
		struct gf_selection s =
			gf_selection_new(gf_select_plans[i], gf_select_plans[i]->defaults);
		bool adds;

		p = gf_select_plans[i];
		adds = p->traits & GF_SELECT_ADDS;
		EXPECT_TEXT(gf_select_plans_names[i], p->name);
		EXPECT(gf_select_plan_find(p->name) == p, "%s", p->name);
		EXPECT(p->description && p->source, "%s", p->name);
		/* either numbers, or why no codec goes on top */
		EXPECT(!(adds && p->encoding), "%s: encoding", p->name);
		EXPECT(!(adds && p->traits & GF_SELECT_SETS), "%s", p->name);
		n = gf_selection_wire(&s, tensors, GF_ARRAY_LENGTH(tensors), 0, wires);
		EXPECT(n >= 1 && n <= GF_WIRES_MOST, "%s: %zu", p->name, n);
		for (k = 0; k < n; k++) {
			EXPECT((wires[k].kind == GF_WIRE_REDUCE) == adds, "%s: wire %zu", p->name,
			       k);
			EXPECT(wires[k].size_bytes >= 1 && wires[k].count_elems >= 1,
			       "%s: wire %zu", p->name, k);
			EXPECT(wires[k].share == 1 || p->traits & GF_SELECT_RECUTS, "%s: share %g",
			       p->name, wires[k].share);
		}
		gf_selection_release(&s);
	}
	EXPECT(!gf_select_plans_names[i], "as many names as entries");
	EXPECT(!gf_select_plan_find("densest"), "found");
}

static void test_zeroed(void)
{
	struct gf_selection none = {0}, copy = gf_selection_copy(&none);

	EXPECT_TEXT(gf_selection_name(&copy), "dense");
	EXPECT(gf_selection_has(&copy, GF_SELECT_LOSSLESS | GF_SELECT_ADDS), "dense");
	EXPECT(!gf_selection_has(&copy, GF_SELECT_ADDS | GF_SELECT_SETS), "not all of them");
	gf_selection_release(&copy);
}

static void test_wires(void)
{
	const struct {
		struct gf_selection selection;
		struct gf_wire want[GF_WIRES_MOST];
		size_t nwires;
	} cases[] = {
		{SELECT_DENSE, {{GF_WIRE_REDUCE, 1024, 4096, 1}}, 1},
		{SELECT_CSC(.keep = .25), {{GF_WIRE_REDUCE, 1024, 4096, .25}}, 1},
		{SELECT_TOPK(.density = .01), {{GF_WIRE_GATHER, 10, 80, 1, 1000}}, 1},
		{SELECT_GTOPK(.density = 1e-6), {{GF_WIRE_MERGE, 1, 8, 1, 1000}}, 1},
		{{&gf_select_plan_dgc, &(struct gf_dgc_params){.density = .01}},
		 {{GF_WIRE_GATHER, 10, 80, 1, 1000}},
		 1},
		/* 2 scales, 32 words of signs */
		{{&gf_select_plan_onebit, &(struct gf_onebit_params){.chunk_elems = 1000}},
		 {{GF_WIRE_GATHER, 1024, 4 * (2 + 32), 1}},
		 1},
		{{&gf_select_plan_randomk, &(struct gf_randomk_params){.density = .01}},
		 {{GF_WIRE_REDUCE, 10, 40, 1}},
		 1},
	};
	struct gf_wire got[GF_WIRES_MOST];
	size_t i, k, n;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		n = gf_selection_wire(&cases[i].selection, tensors, GF_ARRAY_LENGTH(tensors), 0,
				      got);
		EXPECT(n == cases[i].nwires, "case %zu: %zu wires", i, n);
		for (k = 0; k < n; k++)
			EXPECT(got[k].kind == cases[i].want[k].kind &&
				       got[k].count_elems == cases[i].want[k].count_elems &&
				       got[k].size_bytes == cases[i].want[k].size_bytes &&
				       got[k].share == cases[i].want[k].share,
			       "case %zu, wire %zu: %g elements, %g bytes", i, k,
			       got[k].count_elems, got[k].size_bytes);
	}
}

/* The worked example of select_onebit.h, and the ends of chunks and words. */
static void test_onebit(void)
{
	static const struct {
		size_t chunk, elems, chunks, bytes;
	} cases[] = {
		{4, 5, 2, 12},    {4, 4, 1, 8},         {4, 0, 0, 0},
		{1, 33, 33, 140}, {1024, 1024, 1, 132}, {1024, 1025, 2, 140},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_onebit_params p = {.chunk_elems = cases[i].chunk};

		EXPECT(gf_onebit_chunks(&p, cases[i].elems) == cases[i].chunks &&
			       gf_onebit_set_bytes(&p, cases[i].elems) == cases[i].bytes,
		       "case %zu: %zu chunks, %zu bytes", i, gf_onebit_chunks(&p, cases[i].elems),
		       gf_onebit_set_bytes(&p, cases[i].elems));
	}
}

/* The worked example of select_powersgd.h, and what is not worth it. */
static void test_powersgd(void)
{
	static size_t conv[] = {64, 64, 3, 3}, vector[] = {64};
	static size_t wide[] = {1, 900}, tall[] = {1000, 1};
	static const struct {
		struct gf_tensor tensor;
		double min_compression;
		struct gf_powersgd_matrix want;
	} cases[] = {
		{{.count_elems = 36864, .shape = conv, .nshape = 4}, 2, {64, 576, 2}},
		{{.count_elems = 36864, .shape = conv, .nshape = 4}, 28.8, {64, 576, 0}},
		{{.count_elems = 36864, .shape = conv, .nshape = 4}, 28.7, {64, 576, 2}},
		{{.count_elems = 64, .shape = vector, .nshape = 1}, 1, {64, 1, 0}},
		{{.count_elems = 900, .shape = wide, .nshape = 2}, 1, {1, 900, 0}},
		{{.count_elems = 1000, .shape = tall, .nshape = 2}, 1, {1000, 1, 0}},
		/* shapes that nobody knows */
		{{.count_elems = 600}, 1, {24, 25, 2}},
		{{.count_elems = 10007}, 1, {1, 10007, 0}},
		{{.count_elems = 1}, 1, {1, 1, 0}},
		{{.count_elems = (size_t)1 << 60}, 1, {(size_t)1 << 30, (size_t)1 << 30, 2}},
	};
	const struct gf_tensor message[] = {cases[0].tensor, cases[3].tensor};
	struct gf_powersgd_params rank2 = {.rank = 2, .min_compression = 2};
	const struct gf_selection s = {&gf_select_plan_powersgd, &rank2};
	struct gf_wire wires[GF_WIRES_MOST];
	float q[8], again[8];
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_powersgd_params p = {.rank = 2,
						     .min_compression = cases[i].min_compression};
		struct gf_powersgd_matrix m = gf_powersgd_matrix_of(&p, &cases[i].tensor);

		EXPECT(m.rows == cases[i].want.rows && m.cols == cases[i].want.cols &&
			       m.rank == cases[i].want.rank,
		       "case %zu: %zu x %zu, rank %zu", i, m.rows, m.cols, m.rank);
	}
	EXPECT(gf_selection_wire(&s, message, 2, 0, wires) == 2, "two");
	EXPECT(wires[0].count_elems == 192 && wires[1].count_elems == 1152, "%g, %g",
	       wires[0].count_elems, wires[1].count_elems);
	EXPECT(gf_selection_wire(&s, &message[1], 1, 0, wires) == 1 && wires[0].count_elems == 64,
	       "a vector alone");
	gf_powersgd_start(3, 1, 8, q);
	gf_powersgd_start(3, 1, 8, again);
	EXPECT(!memcmp(q, again, sizeof(q)), "the same again");
	gf_powersgd_start(3, 2, 8, again);
	EXPECT(memcmp(q, again, sizeof(q)) != 0, "another tensor");
}

/* One of each run, every one of a run in the long run, and the same again. */
static void test_randomk(void)
{
	static const struct {
		size_t n, k;
	} cases[] = {{1, 1}, {7, 7}, {10, 3}, {1000, 10}, {65537, 100}};
	uint32_t index[100], again[100];
	size_t times[10] = {0}, i, r, step;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const size_t n = cases[i].n, k = cases[i].k;

		gf_randomk_pick(7, 3, i, n, k, index);
		gf_randomk_pick(7, 3, i, n, k, again);
		EXPECT(!memcmp(index, again, k * sizeof(*index)), "case %zu", i);
		for (r = 0; r < k; r++)
			EXPECT(index[r] >= r * n / k && index[r] < (r + 1) * n / k,
			       "case %zu: %zu: %u", i, r, index[r]);
		if (n / k < 10)
			continue;
		gf_randomk_pick(7, 4, i, n, k, again);
		EXPECT(memcmp(index, again, k * sizeof(*index)) != 0, "case %zu: another step", i);
		gf_randomk_pick(8, 3, i, n, k, again);
		EXPECT(memcmp(index, again, k * sizeof(*index)) != 0, "case %zu: another seed", i);
		gf_randomk_pick(7, 3, i + 1, n, k, again);
		EXPECT(memcmp(index, again, k * sizeof(*index)) != 0, "case %zu: another message",
		       i);
	}
	for (step = 0; step < 3000; step++) {
		gf_randomk_pick(1, step, 0, 10, 3, index);
		for (r = 0; r < 3; r++)
			times[index[r]]++;
	}
	/* runs 0-2, 3-5 and 6-9 */
	for (i = 0; i < 10; i++)
		EXPECT(times[i] > (i < 6 ? 900 : 650) && times[i] < (i < 6 ? 1100 : 850),
		       "%zu: %zu times in 3000", i, times[i]);
}

/* --- options --------------------------------------------------------------
 */

static struct gf_axis_option *find(struct gf_axis_option *options, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(options[i].field->option, name) == 0)
			return &options[i];
	EXPECT(false, "no option %s", name);
	return NULL;
}

/* An option that several selections have means the same in all. */
static void test_option_tables(void)
{
	struct gf_axis_option options[GF_AXIS_OPTIONS_MOST], *o;
	size_t n = gf_axis_options(&gf_axis_selection, options, 0), i, k;
	const struct gf_field *f;

	for (i = 0; i < n; i++)
		for (k = i + 1; k < n; k++)
			EXPECT(strcmp(options[i].field->option, options[k].field->option) != 0,
			       "%s twice", options[i].field->option);
	for (i = 0; gf_select_plans[i]; i++)
		for (f = gf_select_plans[i]->record->fields; f->key; f++) {
			EXPECT(f->option && f->unit && f->help, "%s: %s has no option",
			       gf_select_plans_names[i], f->key);
			o = find(options, n, f->option);
			EXPECT(o->field->type == f->type && o->field->low == f->low &&
				       o->field->high == f->high && o->field->names == f->names &&
				       strcmp(o->field->unit, f->unit) == 0,
			       "%s: --%s", gf_select_plans_names[i], f->option);
		}
}

/* By default, in epochs of 10 steps. */
static void test_warmup(void)
{
	static const struct {
		const char *name;
		size_t steps;
	} cases[] = {{"dense", 0}, {"csc", 100},   {"topk", 40},  {"gtopk", 40},
		     {"dgc", 50},  {"randomk", 0}, {"onebit", 0}, {"powersgd", 0}};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_select_plan *plan = gf_select_plan_find(cases[i].name);
		struct gf_selection s = gf_selection_new(plan, plan->defaults);

		EXPECT(gf_selection_warmup(&s, 10) == cases[i].steps, "%s: %zu", cases[i].name,
		       gf_selection_warmup(&s, 10));
		gf_selection_release(&s);
	}
}

static void test_help(void)
{
	static const struct {
		const char *option, *want;
	} cases[] = {
		{"density", ": the share of elements that is sent (0.001; "},
		{"masking",
		 "dgc: whether an element that is sent loses its momentum, on or off (on)"},
		{"keep", "csc: the share of chunks that is sent (0.1)"},
		{"csc-warmup",
		 "csc: steps over which the share falls, or 4epochs, or 5% of the run (100)"},
		{"decay", "csc: of what was not sent, 0 to 1 or momentum (momentum)"},
		{"putback", "topk, gtopk: paper, conserve or naive (paper)"},
		{"warmup-densities", ": of the first epochs, or none (0.25,0.0725,0.015,0.004; "
				     "dgc: 0.25,0.0625,0.015625,0.004,0.001; "},
	};
	struct gf_axis_option options[GF_AXIS_OPTIONS_MOST];
	size_t n = gf_axis_options(&gf_axis_selection, options, 0), i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_text text = {0};

		gf_axis_option_help(find(options, n, cases[i].option), &text);
		EXPECT(strstr(text.data, cases[i].want), "%s", text.data);
		gf_text_release(&text);
	}
}

static void test_apply(void)
{
	static const struct {
		const char *option, *text, *refused;
	} cases[] = {
		{"density", "0.5", NULL},
		{"density", "0", "want a number from 1e-12 to 1, got \"0\""},
		{"putback", "naive", NULL},
		{"putback", "all", "want paper, conserve or naive, got \"all\""},
		{"warmup-densities", "0.5,0.25", NULL},
		{"warmup-densities", "none", NULL},
		{"warmup-densities", "0.5,", "want a number from 1e-12 to 1, got \"\""},
		{"keep", "0.5", "--keep: want --selection csc, got gtopk"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_axis_option options[GF_AXIS_OPTIONS_MOST], *o;
		size_t n = gf_axis_options(&gf_axis_selection, options, 0);
		struct gf_selection s =
			gf_selection_new(&gf_select_plan_gtopk, gf_select_plan_gtopk.defaults);
		struct gf_error err = {""};
		int rc;

		o = find(options, n, cases[i].option);
		rc = gf_axis_option_store(cases[i].text, o, &err);
		EXPECT(!o->text == (rc != 0), "case %zu", i);
		if (!rc)
			rc = gf_axis_options_apply(options, n, &gf_axis_selection,
						   (const void *)gf_selection_plan(&s), s.params,
						   &err);
		EXPECT(!rc == !cases[i].refused, "case %zu: %s", i, err.text);
		if (cases[i].refused)
			EXPECT_TEXT(err.text, cases[i].refused);
		if (strcmp(cases[i].text, "none") == 0)
			EXPECT(gf_topk_params(&s)->nwarmup == 0, "none");
		gf_selection_release(&s);
	}
}

int main(void)
{
	test_entries();
	test_zeroed();
	test_wires();
	test_onebit();
	test_powersgd();
	test_randomk();
	test_option_tables();
	test_warmup();
	test_help();
	test_apply();
	return TEST_END();
}
