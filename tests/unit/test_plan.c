/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "collectives/algorithm.h"
#include "documents/periods/period.h"
#include "documents/plan.h"
#include "json/record.h"
#include "doc_test.h"
#include "lists/gf_document_formats.h"
#include "selections.h"
#include "words.h"

static char *trip(const struct gf_json *root, const char *file, struct gf_error *err)
{
	struct gf_plan p, copy;
	struct gf_error none;
	char *written, *again;

	if (gf_document_read(root, file, &gf_document_plan, &p, err))
		return NULL;
	EXPECT(gf_plan_check(&p, &none) == 0, "check: %s", none.text);
	written = gf_plan_write(&p);
	gf_plan_copy(&copy, &p);
	gf_plan_release(&p);
	again = gf_plan_write(&copy);
	EXPECT_TEXT(again, written);
	gf_plan_release(&copy);
	free(again);
	return written;
}

static const struct doc_case whole_cases[] = {
	{"\"type\": \"merged\"", "\"x-type\": 1", NULL},
	{"\"fusion\": {\"threshold_bytes\": 4194304},", "", NULL},
	{"\"fusion\": {\"threshold_bytes\": 4194304},", "\"fusion\": {\"x-note\": \"y\"},", NULL},
	{"\"selection\": {\"method\": \"dense\"},", "", NULL},
	{"\"pipeline\": {\"staleness\": 1, \"warmup_steps\": 0},", "", NULL},
	{"\"release\": \"ready\", \"half\": \"all\", ", "", NULL},
	{"{\"topology\": \"sha256:00\", \"profile\": \"sha256:11\"}", "{\"x-other\": []}", NULL},
	{"{\"first\": 0, \"last\": 0, \"mode\": \"normal\", \"release\": \"ready\", \"half\": "
	 "\"all\", \"algorithm\": \"ring\", \"codec\": \"f32\"},",
	 "",
	 "l.json: /predicted/messages: want 3 entries, one per message, got "
	 "4"},
	{"\"ranks\": 4, \"lanes\"", "\"lanes\"", "l.json: /ranks: want an integer, got nothing"},
	{"\"lanes\": 2,", "", "l.json: /lanes: want an integer, got nothing"},
	{"\"lanes\": 2", "\"lanes\": 0", "l.json: /lanes: want an integer >= 1, got 0"},
	{"\"model\": {", "\"x-model\": {", "l.json: /tensors: want a model beside them, got none"},
	{"\"tensors\":", "\"x-tensors\":", "l.json: /tensors: want at least one tensor, got none"},
	{"\"first\": 2, \"last\": 3", "\"first\": 3, \"last\": 3",
	 "l.json: /messages/2/first: want tensor 2, which follows those of the messages before, "
	 "got "
	 "3"},
	{"\"first\": 2, \"last\": 3", "\"first\": 2, \"last\": 4",
	 "l.json: /messages/3/first: want tensor 5, which follows those of the messages before, "
	 "got "
	 "4"},
	{"\"first\": 2, \"last\": 3", "\"first\": 2, \"last\": 1",
	 "l.json: /messages/2/last: want an integer from 2 to 5, got 1"},
	{"\"first\": 4, \"last\": 5", "\"first\": 4, \"last\": 6",
	 "l.json: /messages/3/last: want an integer from 4 to 5, got 6"},
	{"\"first\": 4, \"last\": 5", "\"first\": 4, \"last\": 4",
	 "l.json: /messages: want tensor 5 in one message, got it in none"},
	{"\"first\": 4, \"last\": 5", "\"first\": \"4\", \"last\": 5",
	 "l.json: /messages/3/first: want an integer, got \"4\""},
	{"\"type\": \"merged\"", "\"type\": \"normal\"",
	 "l.json: /tensors/2/type: want \"merged\", which follows from messages, got \"normal\""},
	{"\"mode\": \"normal\"", "\"mode\": \"simultaneous\"",
	 "l.json: /tensors/0/type: want \"simultaneous\", which follows from messages, got "
	 "\"normal\""},
	{"\"factor\": 2", "\"factor\": 3",
	 "l.json: /messages/1/stages: want factors whose product is the "
	 "4 ranks that exchange, got 6"},
	{"\"factor\": 2", "\"factor\": 1",
	 "l.json: /messages/1/stages/0/factor: want an integer >= 2, got 1"},
	{"\"half\": \"all\"", "\"half\": \"first\"",
	 "l.json: /messages/0/half: want \"all\" or \"split\", got \"first\""},
	{"\"half\": \"all\"", "\"half\": \"split\"", NULL},
	{"\"ready_s\": 7.0", "\"ready_s\": -7.0",
	 "l.json: /predicted/messages/1/ready_s: want a number >= 0, got "
	 "-7.0"},
	{"\"end_s\": 14.5", "\"end_s\": 3.5",
	 "l.json: /predicted/messages/0/end_s: want a number >= 4, its start_s, got 3.5"},
	{"{\"ready_s\": 4.0, \"start_s\": 4.0, \"end_s\": 14.5}, ", "",
	 "l.json: /predicted/messages: want 4 entries, one per message, got "
	 "3"},
	{"\"iteration_s\": 43.0", "\"iteration_s\": null",
	 "l.json: /predicted/iteration_s: want a number, got null"},
	{"\"staleness\": 1", "\"staleness\": 0",
	 "l.json: /pipeline/staleness: want an integer >= 1, got 0"},
	{"\"backward_s\": 17.0", "\"backward_s\": 1",
	 "l.json: /model/backward_s: want a number >= 17, the last tensor's ready_s, got 1"},
	{"\"ready_s\": 6.0", "\"ready_s\": 2",
	 "l.json: /tensors/2/ready_s: want a number >= 4, the tensor's before it, got 2"},
	{"\"name\": \"net\"", "\"name\": \"host\"",
	 "l.json: /levels/1/name: want a name of its own, got \"host\" again"},
	{"\"threshold_bytes\": 4194304", "\"threshold\": 4194304",
	 "l.json: /fusion/threshold: unknown key (keys of your own begin with x-)"},
	/* a rule in a plan that has everything else */
	{"\"lanes\": 2", "\"rule\": {\"threshold_bytes\": 1, \"algorithms\": []}",
	 "l.json: /ranks: want none of it in a plan with a rule, which binds to any model and "
	 "ranks, got it"},
};

/* In the texts of cases; SETS is a selection's object, and NAME its name. */
#define WORDS 5

/* One message on every axis, to set one against another. */
static const char axes[] = "{\"format\": \"gf-plan\", \"version\": 1, \"ranks\": 4, \"lanes\": 1,\n"
			   " \"model\": {\"name\": \"m\", \"forward_s\": 0, \"backward_s\": 1},\n"
			   " \"tensors\": [{\"name\": \"t\", \"count_elems\": 4, \"dtype\": "
			   "\"f32\", \"ready_s\": 1}],\n"
			   " \"messages\": [{\"first\": 0, \"last\": 0, \"mode\": \"normal\", "
			   "\"half\": \"all\", \"algorithm\": \"ring\", \"codec\": \"f32\"}],\n"
			   " \"selection\": SETS, "
			   "\"pipeline\": {\"staleness\": 1}}";

static const struct doc_case axis_cases[] = {
	{"\"staleness\": 1", "\"staleness\": 3", NULL},
	{"\"codec\": \"f32\"", "\"codec\": \"q8\"", NULL},
	{"\"half\": \"all\"", "\"half\": \"split\"",
	 "l.json: /messages/0/half: want \"all\" with selection NAME, which gives its sums back "
	 "at once, got \"split\""},
	{"\"mode\": \"normal\"", "\"mode\": \"merged\"",
	 "l.json: /messages/0/mode: want \"normal\" or \"simultaneous\", got \"merged\", which is "
	 "a tensor's"},
	{"\"lanes\": 1", "\"lanes\": 1, \"servers\": 1",
	 "l.json: /servers: want 0 with selection NAME, which no server can add up, got 1"},
	{"\"lanes\": 1", "\"lanes\": 1, \"servers\": 2",
	 "l.json: /servers: want an integer <= 1, got 2"},
};

static const struct doc_case dense_axis_cases[] = {
	{"\"codec\": \"f32\"", "\"codec\": \"q8\"", NULL},
	{"\"algorithm\": \"ring\", \"codec\": \"f32\"",
	 "\"algorithm\": \"library\", \"codec\": \"q8\"",
	 "l.json: /messages/0/codec: want \"f32\", \"f16\" or \"bf16\" with algorithm library, "
	 "which cannot sum encoded data, got \"q8\""},
	{"\"algorithm\": \"ring\", \"codec\": \"f32\"",
	 "\"algorithm\": \"library\", \"codec\": \"f16\"", NULL},
	{"\"half\": \"all\", \"algorithm\": \"ring\"", "\"half\": \"split\", \"algorithm\": \"ps\"",
	 "l.json: /messages/0/half: want \"all\" with algorithm ps, which has no reduce-scatter "
	 "half, got \"split\""},
	{"\"half\": \"all\", \"algorithm\": \"ring\"",
	 "\"half\": \"split\", \"algorithm\": \"tree\"",
	 "l.json: /messages/0/half: want \"all\" with algorithm tree, which has no reduce-scatter "
	 "half, got \"split\""},
	{"\"algorithm\": \"ring\"", "\"algorithm\": \"other\"",
	 "l.json: /messages/0/algorithm: want ALGORITHMS, got \"other\""},
	{"\"algorithm\": \"ring\"", "\"algorithm\": \"SPARSE\"",
	 "l.json: /messages/0/algorithm: want ALGORITHMS, got \"SPARSE\""},
	{"\"lanes\": 1", "\"lanes\": 1, \"servers\": 1",
	 "l.json: /messages/0/algorithm: want \"ps\" in a plan with a server, got \"ring\""},
	{"\"half\": \"all\", \"algorithm\": \"ring\"",
	 "\"half\": \"split\", \"algorithm\": \"ring\", \"x-y\": 1", NULL},
};

static const struct doc_case stale_axis_cases[] = {
	{"\"half\": \"all\"", "\"half\": \"split\"",
	 "l.json: /messages/0/half: want \"all\" with a staleness > 1, which leaves no forward "
	 "pass to wait in, got \"split\""},
};

static const struct doc_case rule_cases[] = {
	{"\"lanes\": 1, ", "", NULL},
	{"\"min_bytes\": 0", "\"min_bytes\": 1",
	 "l.json: /rule/algorithms/0/min_bytes: want 0, got 1"},
	{"\"min_bytes\": 65536", "\"min_bytes\": 0",
	 "l.json: /rule/algorithms/1/min_bytes: want an integer > 0, the one before it, got 0"},
	{"\"algorithms\": [", "\"algorithms\": [], \"x-rest\": [",
	 "l.json: /rule/algorithms: want at least one entry, got none"},
	{"\"rule\": {", "\"messages\": [], \"rule\": {",
	 "l.json: /messages: want none of it in a plan with a rule, which binds to any model and "
	 "ranks, got it"},
	{"\"rule\": {", "\"tensors\": [], \"rule\": {",
	 "l.json: /tensors: want a model beside them, got none"},
	{"\"rule\": {", "\"lanes\": 2, \"rule\": {",
	 "l.json: /lanes: want none of it in a plan with a rule, which binds to any model and "
	 "ranks, got it"},
	{"\"rule\": {", "\"fusion\": {\"threshold_bytes\": 100}, \"rule\": {",
	 "l.json: /fusion: want none of it in a plan with a rule, which binds to any model and "
	 "ranks, got it"},
	{"\"rule\": {", "\"ranks\": 2, \"rule\": {",
	 "l.json: /ranks: want none of it in a plan with a rule, which binds to any model and "
	 "ranks, got it"},
	{"\"rule\": {", "\"x-rule\": {", "l.json: /ranks: want an integer, got nothing"},
};

/* Two groups of two ranks; the outer exchange in two fragments. */
static const char period_text[] =
	"{\"format\": \"gf-plan\", \"version\": 1, \"ranks\": 4, \"lanes\": 1,\n"
	" \"model\": {\"name\": \"m\", \"forward_s\": 0, \"backward_s\": 2},\n"
	" \"tensors\": [{\"name\": \"t\", \"count_elems\": 4, \"dtype\": \"f32\", \"ready_s\": 1}, "
	"{\"name\": \"u\", \"count_elems\": 6, \"dtype\": \"f32\", \"ready_s\": 2}],\n"
	" \"messages\": [{\"first\": 0, \"last\": 1, \"mode\": \"normal\", \"algorithm\": "
	"\"ring\", \"codec\": \"f32\"}],\n"
	" \"selection\": {\"method\": \"dense\"}, "
	"\"pipeline\": {\"staleness\": 1},\n"
	" \"period\": {\"method\": \"streaming\", \"group_ranks\": 2, \"steps\": 8, \"fragments\": "
	"2, \"delay\": 3, \"mix\": 0.5, \"outer_rate\": 0.7, \"outer_momentum\": 0.9, \"lanes\": "
	"1,\n"
	" \"messages\": [{\"first\": 0, \"last\": 0, \"mode\": \"normal\", \"algorithm\": \"rhd\", "
	"\"codec\": \"q8\"}, {\"first\": 1, \"last\": 1, \"mode\": \"normal\", \"algorithm\": "
	"\"tree\", \"codec\": \"f32\"}], \"period_s\": 10.0}}";

static const struct doc_case period_cases[] = {
	{"\"staleness\": 1", "\"staleness\": 2", NULL},
	{"{\"method\": \"dense\"}", "SETS", NULL},
	{"\"method\": \"streaming\", \"group_ranks\": 2, \"steps\": 8, \"fragments\": 2, "
	 "\"delay\": 3, \"mix\": 0.5, \"outer_rate\": 0.7, \"outer_momentum\": 0.9",
	 "\"method\": \"local-sgd\", \"group_ranks\": 1, \"steps\": 7", NULL},
	{"\"lanes\": 1,\n", "\"lanes\": 1, \"servers\": 1,\n",
	 "l.json: /messages/0/algorithm: want \"ps\" in a plan with a server, got \"ring\""},
	{"\"lanes\": 1,\n \"model\": {\"name\": \"m\", \"forward_s\": 0, \"backward_s\": 2},\n "
	 "\"tensors\": [{\"name\": \"t\", \"count_elems\": 4, \"dtype\": \"f32\", \"ready_s\": 1}, "
	 "{\"name\": \"u\", \"count_elems\": 6, \"dtype\": \"f32\", \"ready_s\": 2}],\n "
	 "\"messages\": [{\"first\": 0, \"last\": 1, \"mode\": \"normal\", \"algorithm\": \"ring\"",
	 "\"lanes\": 1, \"servers\": 1,\n \"model\": {\"name\": \"m\", \"forward_s\": 0, "
	 "\"backward_s\": 2},\n \"tensors\": [{\"name\": \"t\", \"count_elems\": 4, \"dtype\": "
	 "\"f32\", \"ready_s\": 1}, {\"name\": \"u\", \"count_elems\": 6, \"dtype\": \"f32\", "
	 "\"ready_s\": 2}],\n \"messages\": [{\"first\": 0, \"last\": 1, \"mode\": \"normal\", "
	 "\"algorithm\": \"ps\"",
	 "l.json: /servers: want 0 with period streaming, whose groups have no server, got 1"},
	{"\"group_ranks\": 2", "\"group_ranks\": 4",
	 "l.json: /period/group_ranks: want a divisor of the plan's 4 ranks below it, got 4"},
	{"\"group_ranks\": 2", "\"group_ranks\": 3",
	 "l.json: /period/group_ranks: want a divisor of the plan's 4 ranks below it, got 3"},
	{"\"steps\": 8", "\"steps\": 0", "l.json: /period/steps: want an integer >= 1, got 0"},
	{"\"steps\": 8", "\"steps\": 7",
	 "l.json: /period/steps: want steps of a period that its 2 fragments divide, with more "
	 "than the delay of 3 between them, got 7"},
	{"\"fragments\": 2", "\"fragments\": 4",
	 "l.json: /period/fragments: want at most the period's 2 messages, got 4"},
	{"\"delay\": 3", "\"delay\": 4",
	 "l.json: /period/steps: want steps of a period that its 2 fragments divide, with more "
	 "than the delay of 4 between them, got 8"},
	{"\"mix\": 0.5", "\"mix\": 1.5", "l.json: /period/mix: want a number <= 1, got 1.5"},
	{"\"outer_rate\": 0.7", "\"outer_rate\": 0",
	 "l.json: /period/outer_rate: want a number > 0, got 0"},
	{"\"method\": \"streaming\"", "\"method\": \"diloco\"",
	 "l.json: /period/fragments: unknown key (keys of your own begin with x-)"},
	{"\"method\": \"streaming\"", "\"method\": \"sometimes\"",
	 "l.json: /period/method: want PERIODS, got \"sometimes\""},
	{"\"first\": 0, \"last\": 0", "\"first\": 0, \"last\": 1",
	 "l.json: /period/messages/1/first: want tensor 2, which follows those of the messages "
	 "before, got 1"},
	{"\"algorithm\": \"rhd\"",
	 "\"half\": \"split\", \"algorithm\": "
	 "\"rhd\"",
	 "l.json: /period/messages/0/half: want \"all\" in a period, which has no forward pass to "
	 "wait in, got \"split\""},
	{"\"algorithm\": \"ring\"",
	 "\"stages\": [{\"factor\": 2, \"algorithm\": \"ring\"}, "
	 "{\"factor\": 2, \"algorithm\": \"ring\"}], \"algorithm\": \"blueconnect\"",
	 "l.json: /messages/0/stages: want factors whose product is the 2 ranks that exchange, got "
	 "4"},
};

static const struct doc_case alone_cases[] = {
	{"\"staleness\": 1", "\"staleness\": 2",
	 "l.json: /pipeline/staleness: want 1 with groups of one rank, which exchange nothing in a "
	 "step, got 2"},
	{"{\"method\": \"dense\"}", "SETS",
	 "l.json: /selection/method: want \"dense\" with groups of one rank, which exchange "
	 "nothing in a step, got \"NAME\""},
};

static void read_plan(const char *text, struct gf_plan *p)
{
	struct gf_error err = {""};
	struct gf_json *root;

	if (gf_json_parse(text, strlen(text), "l.json", &root, &err) ||
	    gf_document_read(root, "l.json", &gf_document_plan, p, &err)) {
		printf("%s\n", err.text);
		exit(1);
	}
	gf_json_free(root);
}

static void test_whole(const char *text)
{
	static const enum gf_mode types[] = {
		GF_MODE_NORMAL,       GF_MODE_SIMULTANEOUS, GF_MODE_MERGED,
		GF_MODE_SIMULTANEOUS, GF_MODE_MERGED,       GF_MODE_SIMULTANEOUS,
	};
	struct gf_plan p;
	size_t i;

	read_plan(text, &p);
	for (i = 0; i < GF_ARRAY_LENGTH(types); i++)
		EXPECT(p.types[i] == types[i], "type %zu", i);
	EXPECT(gf_plan_message_elems(&p, 2) == 18, "elements");
	EXPECT(gf_plan_message_bytes(&p, 2) == 72, "bytes");
	EXPECT(p.messages[1].nstages == 2 && p.messages[1].stages[1].factor == 2, "stages");
	EXPECT(p.predicted->messages[1].start_s == 7, "prediction");
	EXPECT_TEXT(p.predicted->messages[1].extra, "{\"x-lane\":1}");
	EXPECT_TEXT(p.topology_digest, "sha256:00");
	gf_plan_release(&p);
}

static void test_rule(const char *text)
{
	static const struct {
		size_t size_bytes;
		const char *algorithm;
	} sizes[] = {
		{0, "butterfly"},
		{65535, "butterfly"},
		{65536, "ring"},
		{(size_t)1 << 40, "ring"},
	};
	struct gf_plan p;
	size_t i;

	read_plan(text, &p);
	EXPECT(p.rule && !p.model && !p.ranks && p.lanes == 1, "a rule");
	for (i = 0; i < GF_ARRAY_LENGTH(sizes); i++)
		EXPECT_TEXT(gf_rule_for(p.rule, sizes[i].size_bytes)->algorithm,
			    sizes[i].algorithm);
	EXPECT(p.staleness == 2 && p.pipeline_warmup_steps == 5, "pipeline");
	gf_plan_release(&p);
}

/* When exchanges begin and end, step by step: the fragment, or '.'. */
static void test_period_steps(void)
{
	static const struct {
		struct gf_period period;
		const char *begins, *ends; /* from step 1 on */
	} cases[] = {
		{{.steps = 4, .fragments = 1}, "...0...0...0", "...0...0...0"},
		{{.steps = 4, .fragments = 1, .delay = 3}, "...0...0...0", "......0...0."},
		{{.steps = 6, .fragments = 2, .delay = 1}, "..0..1..0..1", "...0..1..0.."},
		{{.steps = 1, .fragments = 1}, "000000000000", "000000000000"},
		{{.steps = 4, .fragments = 1, .begin_steps = 2}, "00.0...0...0", "00.0...0...0"},
		{{0}, "............", "............"},
	};
	size_t i, step, fragment;
	char got;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_period *p = &cases[i].period;

		for (step = 1; step <= strlen(cases[i].begins); step++) {
			got = gf_period_begins(p, step, &fragment) ? (char)('0' + fragment) : '.';
			EXPECT(got == cases[i].begins[step - 1], "case %zu step %zu begins %c", i,
			       step, got);
			got = gf_period_ends(p, step, &fragment) ? (char)('0' + fragment) : '.';
			EXPECT(got == cases[i].ends[step - 1], "case %zu step %zu ends %c", i, step,
			       got);
		}
	}
}

/* Each exchange is a plan that readers take. */
static void test_exchanges(void)
{
	struct gf_error err = {""};
	struct gf_plan p, inner, outer;

	read_plan(period_text, &p);
	gf_period_inner(&p, &inner);
	gf_period_outer(&p, &outer);
	EXPECT(gf_plan_check(&inner, &err) == 0, "inner: %s", err.text);
	EXPECT(gf_plan_check(&outer, &err) == 0, "outer: %s", err.text);
	EXPECT(inner.ranks == 2 && inner.nmessages == 1 && !inner.period.plan,
	       "the exchange of a group");
	EXPECT(outer.ranks == 4 && outer.nmessages == 2 && !outer.period.plan &&
		       outer.types[1] == GF_MODE_NORMAL,
	       "the exchange between groups");
	gf_plan_release(&inner);
	gf_plan_release(&outer);
	gf_plan_release(&p);
}

/* Cases whose texts name entries by words. */
static void run_cases(const char *base, const struct doc_case *cases, size_t n,
		      const struct test_word words[WORDS])
{
	size_t i;

	for (i = 0; i < n; i++) {
		char *to = test_filled(cases[i].to, words, WORDS);
		char *message =
			cases[i].message ? test_filled(cases[i].message, words, WORDS) : NULL;
		const struct doc_case filled = {cases[i].from, to, message};

		doc_run_cases(base, "l.json", trip, &filled, 1);
		free(message);
		free(to);
	}
}

/* "every", "local-sgd" or "streaming", in quotes. */
static char *quoted_periods(void)
{
	struct gf_text t = {0};
	size_t i;

	for (i = 0; gf_period_plans_names[i]; i++)
		gf_text_addf(&t, "%s\"%s\"",
			     !i                             ? ""
			     : gf_period_plans_names[i + 1] ? ", "
							    : " or ",
			     gf_period_plans_names[i]);
	return gf_text_take(&t);
}

int main(void)
{
	char *six = doc_load("tests/data/valid/plan-six.json");
	char *rule = doc_load("tests/data/valid/plan-rule.json");
	const struct test_word words[WORDS] = {
		{"ALGORITHMS", test_names(&(struct gf_registry){gf_algorithms, 0, NULL}, " or ")},
		{"PERIODS", quoted_periods()},
		{"SETS", gf_xstrdup(test_object("merged: few"))},
		{"NAME", gf_xstrdup(test_entry("merged", strlen("merged"))->name)},
		{"SPARSE", gf_xstrdup(gf_sparse_algorithms[0]->name)},
	};
	char *sets = test_filled(axes, words, WORDS);
	char *dense = doc_replaced(axes, "SETS", "{\"method\": \"dense\"}");
	char *stale = doc_replaced(dense, "\"staleness\": 1", "\"staleness\": 2");
	char *alone = doc_replaced(period_text, "\"group_ranks\": 2", "\"group_ranks\": 1");
	size_t i;

	doc_expect_stable(six, "plan-six", trip);
	doc_expect_stable(rule, "plan-rule", trip);
	run_cases(six, whole_cases, GF_ARRAY_LENGTH(whole_cases), words);
	run_cases(sets, axis_cases, GF_ARRAY_LENGTH(axis_cases), words);
	run_cases(dense, dense_axis_cases, GF_ARRAY_LENGTH(dense_axis_cases), words);
	run_cases(stale, stale_axis_cases, GF_ARRAY_LENGTH(stale_axis_cases), words);
	run_cases(rule, rule_cases, GF_ARRAY_LENGTH(rule_cases), words);
	run_cases(period_text, period_cases, GF_ARRAY_LENGTH(period_cases), words);
	run_cases(alone, alone_cases, GF_ARRAY_LENGTH(alone_cases), words);
	test_period_steps();
	test_exchanges();
	test_whole(six);
	test_rule(rule);
	free(six);
	free(rule);
	free(sets);
	for (i = 0; i < WORDS; i++)
		free(words[i].value);
	free(dense);
	free(stale);
	free(alone);
	return TEST_END();
}
