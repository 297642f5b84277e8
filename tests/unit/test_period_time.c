/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "base/heap.h"
#include "simulator/period_time.h"
#include "test.h"

#define TOLERANCE 1e-12

extern const struct gf_period_plan gf_period_plan_local_sgd, gf_period_plan_streaming;

/* The example of simulator/period_time.h: 16 bytes, two groups of one rank. */
static struct gf_tensor tensors[] = {
	{.name = (char *)"a", .count_elems = 1, .dtype = GF_F32, .ready_s = 1},
	{.name = (char *)"b", .count_elems = 3, .dtype = GF_F32, .ready_s = 2},
};
static struct gf_message inner = {.last = 1, .algorithm = (char *)"ring", .codec = (char *)"f32"};
static struct gf_message whole = {.last = 1, .algorithm = (char *)"ring", .codec = (char *)"f32"};
static struct gf_message parts[] = {
	{.algorithm = (char *)"ring", .codec = (char *)"f32"},
	{.first = 1, .last = 1, .algorithm = (char *)"ring", .codec = (char *)"f32"}};
static struct gf_level level = {.name = (char *)"site",
				.link = (char *)"net",
				.size = 2,
				.bandwidth_bytes_per_s = 16,
				.latency_s = 1};

static void test_times(void)
{
	static const struct {
		const char *what;
		struct gf_period period;
		double slowdown;
		double exchange_s, exposed_s, step_s, bytes;
	} cases[] = {
		{"local-sgd",
		 {.plan = &gf_period_plan_local_sgd,
		  .group_ranks = 1,
		  .steps = 10,
		  .fragments = 1,
		  .outer_rate = 1,
		  .lanes = 1,
		  .messages = &whole,
		  .nmessages = 1},
		 1,
		 3,
		 3.8,
		 3.88,
		 32},
		{"beside a step that is slower",
		 {.plan = &gf_period_plan_streaming,
		  .group_ranks = 1,
		  .steps = 10,
		  .fragments = 1,
		  .delay = 1,
		  .mix = 0.5,
		  .outer_rate = 0.7,
		  .outer_momentum = 0.9,
		  .lanes = 1,
		  .messages = &whole,
		  .nmessages = 1},
		 1.5,
		 3,
		 3 / 4.5 + 1.1,
		 3.5 + (3 / 4.5 + 1.1) / 10,
		 48},
		/* 2 + 4/16 and 2 + 12/16 s, and 3/5 of the work of the two */
		{"two fragments",
		 {.plan = &gf_period_plan_streaming,
		  .group_ranks = 1,
		  .steps = 2,
		  .fragments = 2,
		  .outer_rate = 1,
		  .lanes = 1,
		  .messages = parts,
		  .nmessages = 2},
		 1,
		 5,
		 5.8,
		 6.4,
		 32},
		{"two messages of a fragment, side by side",
		 {.plan = &gf_period_plan_local_sgd,
		  .group_ranks = 1,
		  .steps = 1,
		  .fragments = 1,
		  .outer_rate = 1,
		  .lanes = 1,
		  .messages = parts,
		  .nmessages = 2},
		 1,
		 5,
		 5.8,
		 9.3,
		 32},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_model_profile model = {.name = (char *)"m",
						 .forward_s = 1,
						 .backward_s = 2,
						 .update_s = 0.5,
						 .overlap_slowdown = cases[i].slowdown,
						 .tensors = tensors,
						 .ntensors = 2};
		struct gf_plan p = {.ranks = 2,
				    .lanes = 1,
				    .model = &model,
				    .levels = &level,
				    .nlevels = 1,
				    .messages = &inner,
				    .nmessages = 1,
				    .staleness = 1,
				    .period = cases[i].period};
		struct gf_fabric f = gf_plan_fabric(&p);
		struct gf_sim_result r = {0};
		struct gf_period_time t;
		struct gf_border border;
		struct gf_error err = {""};

		EXPECT(gf_predict_period(&p, &f, &r, &t, &err) == 0, "%s: %s", cases[i].what,
		       err.text);
		EXPECT_NEAR(t.inner_s, 3.5, TOLERANCE, "%s", cases[i].what);
		EXPECT_NEAR(t.exchange_s, cases[i].exchange_s, TOLERANCE, "%s", cases[i].what);
		EXPECT_NEAR(t.exposed_s, cases[i].exposed_s, TOLERANCE, "%s", cases[i].what);
		EXPECT_NEAR(r.iteration_s, cases[i].step_s, TOLERANCE, "%s", cases[i].what);
		EXPECT_NEAR(r.exposed_comm_s, cases[i].step_s - 3.5, TOLERANCE, "%s",
			    cases[i].what);
		EXPECT_NEAR(gf_sim_period_bytes(&p), cases[i].bytes, TOLERANCE, "%s",
			    cases[i].what);
		gf_sim_border(&p, &border);
		EXPECT_NEAR(border.group_bytes, 16, TOLERANCE, "%s", cases[i].what);
	}
}

/* 24 bytes of 6 elements out of a group of 2 of 4 ranks, whose links cost nothing but for the level
 * between them. */
static void test_border(void)
{
	static struct gf_stage stages[] = {{.factor = 2, .algorithm = (char *)"ring"},
					   {.factor = 2, .algorithm = (char *)"ring"}};
	static const struct {
		struct gf_message message;
		struct gf_border want;
	} cases[] = {
		/* each rank half of the bytes, once to and fro */
		{{.last = 1,
		  .algorithm = (char *)"blueconnect",
		  .stages = stages,
		  .nstages = 2,
		  .codec = (char *)"f32"},
		 {16, 8, 16}},
		{{.last = 1,
		  .algorithm = (char *)"blueconnect",
		  .stages = stages,
		  .nstages = 2,
		  .codec = (char *)"f16"},
		 {8, 4, 16}},
		/* one rank of a ring sends 2 (4 - 1) parts of one element */
		{{.last = 1, .algorithm = (char *)"ring", .codec = (char *)"f32"}, {24, 24, 24}},
		/* no steps: 2 (2 - 1) / 2 */
		{{.last = 1, .algorithm = (char *)"library", .codec = (char *)"f32"}, {16, 8, 16}},
	};
	struct gf_model_profile model = {.tensors = tensors, .ntensors = 2};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_message message = cases[i].message;
		struct gf_plan p = {.ranks = 4,
				    .lanes = 1,
				    .model = &model,
				    .period = {.plan = &gf_period_plan_local_sgd,
					       .group_ranks = 2,
					       .steps = 1,
					       .fragments = 1,
					       .messages = &message,
					       .nmessages = 1}};
		struct gf_border got;

		gf_sim_border(&p, &got);
		EXPECT_NEAR(got.group_bytes, cases[i].want.group_bytes, TOLERANCE, "case %zu", i);
		EXPECT_NEAR(got.rank_bytes, cases[i].want.rank_bytes, TOLERANCE, "case %zu", i);
		EXPECT_NEAR(got.plain_group_bytes, cases[i].want.plain_group_bytes, TOLERANCE,
			    "case %zu", i);
	}
}

/* A line measured on all ranks has the slow link in it. */
static void test_group_fabric(void)
{
	struct gf_allreduce_cost ring = {.algorithm = (char *)"ring", .startup_s = 6};
	struct gf_network net = {.ranks = 4, .allreduce = &ring, .nallreduce = 1}, lines;
	const struct {
		size_t nlevels;
		int group;
		size_t want;
	} cases[] = {{1, 2, 0}, {0, 2, 1}, {1, 4, 1}};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_fabric f = {
			.network = &net, .levels = &level, .nlevels = cases[i].nlevels, .ranks = 4};
		struct gf_fabric g = gf_sim_group_fabric(&f, cases[i].group, &lines);

		EXPECT(g.network->nallreduce == cases[i].want && g.ranks == cases[i].group,
		       "case %zu", i);
	}
}

int main(void)
{
	test_times();
	test_border();
	test_group_fabric();
	return TEST_END();
}
