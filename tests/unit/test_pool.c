/* SPDX-License-Identifier: BSD-3-Clause */
/* The gradient pool, and binding a rule to a model. */
#include <errno.h>
#include <stdint.h>

#include "base/array.h"
#include "local.h"
#include "runtime/work.h"
#include "plans.h"

static void test_pool(void)
{
	static const size_t counts[] = {6, 12, 1, 10};
	static const size_t offsets[] = {0, 6, 18, 19, 29};
	size_t huge[] = {5, SIZE_MAX / 8, SIZE_MAX / 2}, i;
	struct gf_comm *comm;
	struct gf_pool pool = {0};
	struct gf_error err = {""};

	EXPECT(!gf_comm_local_new(1, &comm, &err), "%s", err.text);
	gf_pool_release(&pool);
	EXPECT(gf_pool_init(&pool, comm, huge, 3, &err) == -ENOMEM, "sum");
	EXPECT(gf_pool_init(&pool, comm, huge, 2, &err) == -ENOMEM, "memory");
	EXPECT(pool.comm == NULL, "untouched");
	EXPECT(!gf_pool_init(&pool, comm, counts, 4, &err), "%s", err.text);
	EXPECT(pool.count_elems == 29 && pool.ntensors == 4, "size");
	for (i = 0; i < 5; i++)
		EXPECT(pool.offsets[i] == offsets[i], "offset %zu", i);
	for (i = 0; i < 29; i++)
		EXPECT(pool.data[i] == 0, "element %zu", i);
	gf_pool_release(&pool);
	EXPECT(pool.data == NULL, "zeroed");
	gf_comm_close(comm);
}

static void test_bind(void)
{
	/* tests/data/vectors.md, "six", with theta = 8 bytes there and elements
	 * of 4 bytes here: [0-1][2-3][4-5]. */
	static const size_t six[] = {6, 12, 8, 10, 6, 3};
	static const struct {
		size_t threshold_elems;
		size_t lasts[7], n;
	} cases[] = {
		{8, {1, 3, 5}, 3}, {0, {0, 1, 2, 3, 4, 5}, 6}, {17, {1, 3, 5}, 3},
		{18, {2, 5}, 2},   {6, {1, 2, 3, 5}, 4},       {1000, {5}, 1},
	};
	struct gf_model_profile *m = model_of(six, 6);
	struct gf_error err = {""};
	struct gf_plan rule, whole;
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		rule_of(&rule, cases[i].threshold_elems * 4, 2, "library", 64, "ring");
		EXPECT(!gf_plan_bind(&rule, m, 4, &whole, &err), "case %zu: %s", i, err.text);
		EXPECT(whole.nmessages == cases[i].n && whole.ranks == 4 && whole.lanes == 2 &&
			       !whole.rule,
		       "case %zu: %zu messages", i, whole.nmessages);
		for (k = 0; k < cases[i].n && k < whole.nmessages; k++) {
			const char *want =
				gf_plan_message_bytes(&whole, k) < 64 ? "library" : "ring";

			EXPECT(whole.messages[k].last == cases[i].lasts[k],
			       "case %zu, message %zu: %zu", i, k, whole.messages[k].last);
			EXPECT_TEXT(whole.messages[k].algorithm, want);
			EXPECT(whole.messages[k].mode == GF_MODE_SIMULTANEOUS, "two lanes");
		}
		EXPECT(!gf_plan_fit(&whole, m, 4, &err), "%s", err.text);
		gf_plan_release(&whole);
		gf_plan_release(&rule);
	}
	gf_model_profile_free(m);
}

static void test_levels(void)
{
	static const size_t counts[] = {100};
	struct gf_level levels[] = {
		{.name = "gpu", .size = 2, .link = "nvlink", .bandwidth_bytes_per_s = 1e9},
		{.name = "socket", .size = 1, .link = "shm", .bandwidth_bytes_per_s = 1e9},
		{.name = "net", .size = 3, .link = "ethernet", .bandwidth_bytes_per_s = 1e9},
	};
	struct gf_model_profile *m = model_of(counts, 1);
	struct gf_error err = {""};
	struct gf_plan rule, whole;
	size_t i;

	rule_of(&rule, 0, 1, NULL, 0, "blueconnect");
	EXPECT(!gf_plan_bind(&rule, m, 6, &whole, &err), "%s", err.text);
	EXPECT(whole.messages[0].nstages == 0, "no levels");
	gf_plan_release(&whole);
	rule.levels = gf_levels_copy(levels, 3);
	rule.nlevels = 3;
	EXPECT(!gf_plan_bind(&rule, m, 4, &whole, &err), "%s", err.text);
	EXPECT(whole.messages[0].nstages == 0, "levels of other ranks");
	gf_plan_release(&whole);
	EXPECT(!gf_plan_bind(&rule, m, 6, &whole, &err), "%s", err.text);
	EXPECT(whole.messages[0].nstages == 2 && whole.messages[0].stages[0].factor == 2 &&
		       whole.messages[0].stages[1].factor == 3,
	       "stages");
	EXPECT_TEXT(whole.messages[0].stages[0].algorithm, "halving");
	EXPECT_TEXT(whole.messages[0].stages[1].algorithm, "ring");
	gf_plan_use_calls(&whole);
	EXPECT_TEXT(whole.messages[0].stages[0].algorithm, "nccl");
	EXPECT(gf_plan_bind(&whole, m, 6, &rule, &err) == -EINVAL, "a whole plan is no rule");
	gf_plan_release(&whole);
	/* the rule's own stages, where they are of these ranks */
	rule.rule->segment_bytes = 512;
	rule.rule->algorithms[0].codec = gf_xstrdup("bf16");
	rule.rule->algorithms[0].nstages = 2;
	rule.rule->algorithms[0].stages = gf_xcalloc(2, sizeof(*rule.rule->algorithms[0].stages));
	for (i = 0; i < 2; i++) {
		rule.rule->algorithms[0].stages[i].factor = i ? 2 : 3;
		rule.rule->algorithms[0].stages[i].algorithm = gf_xstrdup(i ? "halving" : "ring");
	}
	EXPECT(!gf_plan_bind(&rule, m, 6, &whole, &err), "%s", err.text);
	EXPECT(whole.messages[0].stages[0].factor == 3 && whole.messages[0].stages[1].factor == 2,
	       "stages of the rule");
	EXPECT_TEXT(whole.messages[0].stages[0].algorithm, "ring");
	EXPECT_TEXT(whole.messages[0].codec, "bf16");
	gf_plan_use_calls(&whole);
	EXPECT_TEXT(whole.messages[0].stages[0].algorithm, "ring");
	EXPECT(whole.segment_bytes == 512, "segments of the rule");
	gf_plan_release(&whole);
	EXPECT(!gf_plan_bind(&rule, m, 4, &whole, &err), "%s", err.text);
	EXPECT(whole.messages[0].nstages == 0, "stages of other ranks");
	gf_plan_release(&whole);
	gf_plan_release(&rule);
	gf_model_profile_free(m);
}

/* Factors of a job; what a rule then has for each of its entries. */
static void test_place(void)
{
	static const struct {
		const char *algorithm;
		int factors[3];
		size_t n;
		const char *want;
	} cases[] = {
		{"blueconnect", {2, 3}, 2, "blueconnect 2:halving 3:ring"},
		{"blueconnect", {6}, 1, "blueconnect 6:ring"},
		{"hierarchical", {2, 3}, 2, "hierarchical 2:ring 3:ring"},
		{"hierarchical", {2, 3, 2}, 3, "hierarchical 2:ring 6:ring"},
		{"hierarchical", {6}, 1, "hierarchical"},
		{"ring", {2, 3}, 2, "ring"},
	};
	struct gf_plan rule;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_text got = {0};
		struct gf_rule_algorithm *a;

		rule_of(&rule, 0, 1, NULL, 0, cases[i].algorithm);
		a = rule.rule->algorithms;
		gf_rule_place(&rule, cases[i].factors, cases[i].n);
		gf_stages_text_of(&got, a->algorithm, a->stages, a->nstages);
		EXPECT_TEXT(got.data, cases[i].want);
		gf_text_release(&got);
		if (i == 0) {
			gf_plan_use_calls(&rule);
			EXPECT_TEXT(a->stages[1].algorithm, "nccl");
			gf_rule_place(&rule, (const int[]){3, 2}, 2);
			EXPECT(a->stages[0].factor == 2, "own stages stay");
			gf_rule_place(&rule, (const int[]){4}, 1);
			EXPECT(a->nstages == 1, "stages of other ranks");
		}
		gf_plan_release(&rule);
	}
}

static void test_fit(void)
{
	static const size_t counts[] = {6, 12, 8}, other[] = {6, 13, 8};
	struct gf_model_profile *m = model_of(counts, 3);
	struct gf_model_profile *wrong = model_of(other, 3);
	struct gf_model_profile *shorter = model_of(counts, 2);
	struct gf_error err = {""};
	struct gf_plan p;

	plan_of(&p, counts, 3, 4, 0, 1, "ring");
	EXPECT(!gf_plan_fit(&p, m, 4, &err), "%s", err.text);
	EXPECT(gf_plan_fit(&p, m, 8, &err) == -EINVAL, "ranks");
	EXPECT_TEXT(err.text, "the plan is for 4 ranks, this job has 8");
	EXPECT(gf_plan_fit(&p, shorter, 4, &err) == -EINVAL, "tensors");
	EXPECT_TEXT(err.text, "the plan (test) has 3 tensors, this job has 2");
	EXPECT(gf_plan_fit(&p, wrong, 4, &err) == -EINVAL, "counts");
	EXPECT_TEXT(err.text,
		    "tensor 1: the plan (test) has t1 of 12 elements, this job has t1 of 13");
	free(m->tensors[2].name);
	m->tensors[2].name = gf_xstrdup("other");
	EXPECT(gf_plan_fit(&p, m, 4, &err) == -EINVAL, "names");
	EXPECT_TEXT(err.text,
		    "tensor 2: the plan (test) has t2 of 8 elements, this job has other of 8");
	gf_plan_release(&p);
	gf_model_profile_free(m);
	gf_model_profile_free(wrong);
	gf_model_profile_free(shorter);
}

int main(void)
{
	test_pool();
	test_bind();
	test_levels();
	test_place();
	test_fit();
	return TEST_END();
}
