/* SPDX-License-Identifier: BSD-3-Clause */
#include "selections.h"
#include "train_run.h"

#include <math.h>

#include "trainer/choose_ways.h"
#include "trainer/method.h"
#include "checkpoints/run/snapshot.h"
#include "two_messages.h"

/* --- replicas ------------------------------------------------------------- */

struct replicas {
	int odd_rank; /* whose array differs; -1: none */
	int array;
};

static void compare_rank(struct gf_comm *comm, void *ctx)
{
	const struct replicas *c = ctx;
	float arrays[3][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {0, 0, 0, 0}};
	struct gf_shape shape = {1, {4}};
	struct gf_team team = {comm, NULL};
	struct gf_state state = {0};
	struct gf_error err = {""};
	char want[128];
	int rc;

	/* the last one may differ: it is each rank's own */
	arrays[2][0] = (float)comm->rank;
	if (comm->rank == c->odd_rank) /* one bit */
		arrays[c->array][3] = nextafterf(arrays[c->array][3], 9);
	gf_state_add(&state, GF_STATE_SHARED, gf_xstrdup("first"), &shape, arrays[0]);
	gf_state_add(&state, GF_STATE_SHARED, gf_xstrdup("second"), &shape, arrays[1]);
	gf_state_add(&state, GF_STATE_OWN, gf_xstrdup("own"), &shape, arrays[2]);
	rc = gf_team_compare(&team, 7, &state, &err);
	if (c->odd_rank < 0 || c->array == 2) {
		EXPECT(rc == 0, "rank %d: %d %s", comm->rank, rc, err.text);
	} else {
		snprintf(want, sizeof(want),
			 "replicas differ after step 7: %s on rank %d is not what it is on rank 0",
			 c->array ? "second" : "first", c->odd_rank ? c->odd_rank : 1);
		EXPECT(rc == 1, "rank %d: %d", comm->rank, rc);
		EXPECT_TEXT(err.text, want);
	}
	gf_state_release(&state);
}

static void test_replicas(void)
{
	struct replicas cases[] = {{-1, 0}, {2, 0}, {2, 1}, {1, 1}, {0, 0}, {1, 2}};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		on_ranks(4, compare_rank, &cases[i]);
}

/* --- plans and methods ------------------------------------------------------
 */

static void test_bind(void)
{
	struct gf_plan plan = two_messages(), rule;
	struct gf_model model;
	struct gf_error err = {""};

	read_model(MLP, &model);
	EXPECT(gf_train_bind(&plan, &model, 2, &err) == -EINVAL && strstr(err.text, "two") &&
		       strstr(err.text, "this job"),
	       "%s", err.text);
	EXPECT(gf_train_bind(&plan, NULL, 3, &err) == -EINVAL, "ranks");
	EXPECT_TEXT(err.text, "the plan is for 2 ranks, this job has 3");
	EXPECT(gf_train_bind(&plan, NULL, 2, &err) == 0, "%s", err.text);
	gf_train_default_plan(&rule, false);
	EXPECT(gf_train_bind(&rule, NULL, 2, &err) == -EINVAL &&
		       strstr(err.text, "to replay, got a rule"),
	       "%s", err.text);
	EXPECT(gf_train_bind(&rule, &model, 5, &err) == 0 && !rule.rule && rule.ranks == 5 &&
		       rule.nmessages == 1,
	       "%s", err.text);
	EXPECT_TEXT(rule.model->tensors[0].name, "fc2.bias");
	gf_plan_release(&rule);
	gf_plan_release(&plan);
	gf_model_release(&model);
}

static struct gf_plan two_open(void)
{
	struct gf_plan plan = two_messages();
	size_t k;

	EXPECT(!gf_train_is_open(&plan), "none is open");
	for (k = 0; k < 2; k++) {
		free(plan.messages[k].algorithm);
		plan.messages[k].algorithm = gf_xstrdup("auto");
	}
	EXPECT(gf_train_is_open(&plan), "both are open");
	return plan;
}

/* Over NCCL nothing is measured: there is no communicator to do it with. */
static void test_chosen_for_nccl(void)
{
	static const struct gf_nccl_ops nccl;
	struct gf_plan plan = two_open();
	struct gf_train_config config = {.plan = &plan, .place.nccl = &nccl};
	struct gf_error err = {""};
	char *ways;

	free(plan.messages[1].codec);
	plan.messages[1].codec = gf_xstrdup("q8");
	EXPECT(!gf_train_choose(&config, &plan, &err), "%s", err.text);
	ways = gf_train_ways(&plan);
	EXPECT_TEXT(ways, "library;ring");
	EXPECT(config.choose_s == 0, "%g s", config.choose_s);
	free(ways);
	gf_plan_release(&plan);
}

/* An open choice takes that of an earlier run; the rest stays. */
static void test_ways(void)
{
	static const struct {
		const char *ways, *result, *error; /* one of the two */
	} cases[] = {
		{"tree;blueconnect 2:ring", "tree;blueconnect 2:ring", NULL},
		{"rhd;rhd", "rhd;rhd", NULL},
		{"rhd", NULL, "was written with 1 messages"},
		{"a;b;c", NULL, "was written with 3 messages"},
		{"", NULL, "was written with 1 messages"},
		{"tree;blueconnect 3:ring", NULL, "product is the 2 ranks"},
		{"tree;blueconnect 2ring", NULL, "want a stage such as"},
		{"tree;blueconnect x:ring", NULL, "want an integer"},
	};
	struct gf_error err = {""};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_plan plan = two_open();
		char *text;
		int rc;

		rc = gf_train_take_ways(&plan, cases[i].ways, &err);
		text = gf_train_ways(&plan);
		if (cases[i].result) {
			EXPECT(rc == 0, "case %zu: %s", i, err.text);
			EXPECT_TEXT(text, cases[i].result);
		} else {
			EXPECT(rc == -EINVAL && strstr(err.text, cases[i].error),
			       "case %zu: %d, %s", i, rc, err.text);
		}
		free(text);
		/* each way once */
		if (i == 1) {
			text = gf_train_ways_once(&plan);
			EXPECT_TEXT(text, "rhd");
			free(text);
		}
		gf_plan_release(&plan);
	}
}

static void test_methods(void)
{
	static const struct gf_select_plan someday = {.name = "someday"};
	struct gf_plan plan = two_messages();
	struct gf_error err = {""};

	EXPECT(gf_exchange_check_plan(&plan, false, &err) == 0, "%s", err.text);
	EXPECT(gf_selection_has(&plan.selection, GF_SELECT_LOSSLESS), "plain");
	plan.staleness = 2;
	EXPECT(gf_exchange_check_plan(&plan, false, &err) == 0, "%s", err.text);
	plan.selection = test_selection("merged");
	EXPECT(gf_exchange_check_plan(&plan, false, &err) == 0, "%s", err.text);
	/* what no running half knows is nothing else */
	plan.selection = (struct gf_selection){.plan = &someday};
	EXPECT(gf_exchange_check_plan(&plan, false, &err) == -ENOTSUP, "someday");
	EXPECT_TEXT(err.text,
		    "the plan wants selection \"someday\", which no training method here does");
	plan.selection = (struct gf_selection){0};
	gf_plan_release(&plan);
}

int main(void)
{
	watchdog(120);
	test_replicas();
	test_bind();
	test_ways();
	test_chosen_for_nccl();
	test_methods();
	return TEST_END();
}
