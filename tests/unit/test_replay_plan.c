/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan's replay against the step model, where both must say the same. */
#include <errno.h>
#include <math.h>
#include <stdint.h>

#include "base/array.h"
#include "planner_cases.h"
#include "selections.h"
#include "simulator/predict.h"
#include "simulator/replay/replay_plan.h"
#include "test.h"

#define TOLERANCE 1e-9
#define RANKS     8

/* The network below, with other lines for larger messages. */
static struct gf_cost_line larger[] = {{500, 0.4, 0.004, NULL}, {4000, 2, 0.0037, NULL}};
static struct gf_level_cost measured = {.name = (char *)"net",
					.alpha_s = 0.01,
					.beta_s_per_byte = 1. / 300,
					.larger = larger,
					.nlarger = 2};
static struct gf_network lines = {.levels = &measured, .nlevels = 1};

/* A random model on a uniform network, every size divisible by the ranks. */
static void store(struct problem_store *s, struct gf_level *level, uint64_t seed)
{
	size_t i;

	store_random(s, seed, 3 + seed % 8, 1);
	for (i = 0; i < s->model.ntensors; i++)
		s->tensors[i].count_elems *= (size_t)RANKS * RANKS;
	*level = (struct gf_level){.name = (char *)"net",
				   .link = (char *)"net",
				   .size = RANKS,
				   .bandwidth_bytes_per_s = 300,
				   .latency_s = 0.01};
	s->problem.fabric.network = seed % 2 ? NULL : &lines;
	s->problem.fabric.levels = level;
	s->problem.fabric.nlevels = 1;
	s->problem.fabric.ranks = RANKS;
	s->model.issue_s = seed % 3 ? 0 : 0.3;
}

/* A problem's plan, and its replay. */
struct trial {
	struct problem_store s;
	struct gf_level level;
	struct gf_plan p;
	struct gf_replayed r;
	struct gf_text notes;
};

static void plan_it(struct trial *t, const char *policy)
{
	struct gf_error err = {""};

	EXPECT(!gf_policy_run(gf_policy_find(policy), &t->s.problem, &t->p, &err), "%s by %s: %s",
	       policy, t->s.problem.algorithm, err.text);
}

static void replay_it(struct trial *t, const struct gf_what_if *what)
{
	struct gf_error err = {""};

	t->notes = (struct gf_text){0};
	EXPECT(!gf_replay_plan(&t->p, what, &t->r, &t->notes, &err), "%s by %s: %s", t->p.policy,
	       t->s.problem.algorithm, err.text);
}

static void release(struct trial *t)
{
	gf_replayed_release(&t->r);
	gf_text_release(&t->notes);
	gf_plan_release(&t->p);
}

static void expect_alike(const struct trial *t, uint64_t seed, const char *what)
{
	const struct gf_plan *p = &t->p;
	const struct gf_replayed *r = &t->r;
	size_t i;

	EXPECT_NEAR(r->outcome.iteration_s / r->model.iteration_s, 1, TOLERANCE, "seed %zu, %s",
		    (size_t)seed, what);
	EXPECT_NEAR(r->outcome.backward_end_s / r->model.backward_end_s, 1, TOLERANCE,
		    "seed %zu, %s", (size_t)seed, what);
	for (i = 0; i < p->nmessages; i++) {
		EXPECT_NEAR(r->outcome.messages[i].start_s, r->model.messages[i].start_s,
			    TOLERANCE * r->model.iteration_s, "seed %zu, %s, message %zu",
			    (size_t)seed, what, i);
		EXPECT_NEAR(r->outcome.messages[i].end_s, r->model.messages[i].end_s,
			    TOLERANCE * r->model.iteration_s, "seed %zu, %s, message %zu",
			    (size_t)seed, what, i);
	}
}

/* Whether the policy's file says that all its plans are replayed as predicted. */
static bool replays(const struct gf_policy *policy)
{
	char *text = entry_lines("policy", policy->name);
	const bool says = strstr(text, "replays\n") != NULL;

	free(text);
	return says;
}

/* One message at a time: policies by every algorithm, backward slowed by messages in flight or
 * not. */
static void test_uniform(void)
{
	static const char *const algorithms[] = {
		"ring", "rhd", "butterfly", "tree", "hierarchical", "blueconnect",
	};
	struct gf_what_if what = {0};
	size_t a, k;
	uint64_t seed;

	for (a = 0; a < GF_ARRAY_LENGTH(algorithms); a++)
		for (k = 0; gf_policies[k]; k++)
			for (seed = 1; seed <= 12 && replays(gf_policies[k]); seed++) {
				struct trial t;

				if (gf_policies[k]->halves && strcmp(algorithms[a], "ring") != 0 &&
				    strcmp(algorithms[a], "rhd") != 0)
					continue;
				store(&t.s, &t.level, seed);
				t.s.problem.algorithm = algorithms[a];
				plan_it(&t, gf_policies[k]->name);
				replay_it(&t, &what);
				expect_alike(&t, seed, algorithms[a]);
				release(&t);
			}
}

/* Codecs and selections that cost the processor time: every algorithm encodes and decodes as often
 * as its closed form passes a byte on. */
static void test_processing(void)
{
	static const char *const algorithms[] = {
		"ring", "rhd", "butterfly", "blueconnect", "tree",
	};
	static const char *const f16[] = {"f16", NULL};
	struct gf_codec_cost codec = {.of = {.name = (char *)"f16", .device = (char *)"cpu"},
				      .encode_s_per_byte = 0.002,
				      .decode_s_per_byte = 0.003};
	struct gf_selection_cost select = {.of = {.name = (char *)"dense", .device = (char *)"cpu"},
					   .alpha_s = 0.3,
					   .beta_s_per_byte = 0.001};
	struct gf_processing processing = {&codec, 1, &select, 1};
	struct gf_what_if what = {0};
	uint64_t seed;
	size_t a;

	for (a = 0; a < GF_ARRAY_LENGTH(algorithms); a++)
		for (seed = 1; seed <= 12; seed++) {
			struct trial t;

			store(&t.s, &t.level, seed);
			t.s.problem.algorithm = algorithms[a];
			t.s.problem.codecs = f16;
			t.s.problem.fabric.processing = &processing;
			plan_it(&t, "wfbp");
			replay_it(&t, &what);
			expect_alike(&t, seed, algorithms[a]);
			release(&t);
		}
}

/* What a ring and backward do to each other, as it was measured. */
static void test_beside_backward(void)
{
	double slow[] = {1.4, 3};
	struct gf_allreduce_cost ring = {
		.algorithm = (char *)"ring",
		.startup_s = 0.14,
		.per_byte_s = 0.005,
		.beside = {.compute_slowdown = slow, .ncompute_slowdown = 2}};
	struct gf_network net = {.ranks = RANKS, .allreduce = &ring, .nallreduce = 1};
	struct gf_what_if what = {0};
	uint64_t seed;

	for (seed = 1; seed <= 30; seed++) {
		struct trial t;

		store(&t.s, &t.level, seed);
		t.s.problem.fabric.network = &net;
		t.s.problem.fabric.levels = NULL;
		t.s.problem.fabric.nlevels = 0;
		plan_it(&t, "wfbp");
		replay_it(&t, &what);
		expect_alike(&t, seed, "beside backward");
		release(&t);
	}
}

static struct gf_slow_rank slow_rank = {.rank = 3, .factor = 1.7};
static const struct gf_what_if slow = {.slow = &slow_rank, .nslow = 1};

/* A slow rank makes the others wait; each is slowed by its own messages. */
static void test_slow(void)
{
	uint64_t seed;

	for (seed = 1; seed <= 30; seed++) {
		struct trial t;
		double work;

		store(&t.s, &t.level, seed);
		t.s.problem.algorithm = "ring";
		plan_it(&t, "wfbp");
		replay_it(&t, &slow);
		EXPECT_NEAR(t.r.outcome.iteration_s / t.r.model.iteration_s, 1, TOLERANCE,
			    "seed %zu", (size_t)seed);
		work = 1.7 * (t.s.model.forward_s + t.s.model.backward_s);
		EXPECT(t.r.outcome.backward_end_s >= work - TOLERANCE,
		       "seed %zu: backward ends at %g", (size_t)seed, t.r.outcome.backward_end_s);
		release(&t);
	}
}

/* One message in halves: a rank that is not slow waits for the all-gather where its own forward
 * needs it, and starts the message when its own backward is through, whatever the slow rank
 * does. */
static void test_slow_halves(void)
{
	size_t late = 0;
	uint64_t seed;

	for (seed = 1; seed <= 30; seed++) {
		struct trial t;
		const struct gf_predicted_message *m;
		double wait_s, ready_s;

		store(&t.s, &t.level, seed);
		t.s.model.overlap_slowdown = 1;
		t.s.model.issue_s = 0;
		t.s.problem.algorithm = "ring";
		t.s.problem.threshold_bytes = SIZE_MAX;
		plan_it(&t, "dear");
		EXPECT(t.p.nmessages == 1, "%zu messages", t.p.nmessages);
		m = t.p.predicted->messages;
		ready_s = t.s.tensors[t.s.model.ntensors - 1].ready_s;
		wait_s = m->end_s - m->start_s -
			 t.s.model.forward_s * (1 - ready_s / t.s.model.backward_s);
		late += wait_s > 0;
		replay_it(&t, &slow);
		EXPECT_NEAR(t.r.outcome.messages[0].start_s,
			    t.s.model.forward_s + fmax(wait_s, 0) + ready_s,
			    TOLERANCE * t.r.model.iteration_s, "seed %zu", (size_t)seed);
		release(&t);
	}
	EXPECT(late > 10, "no rank waited but %zu times", late);
}

/* Two messages at once share the links: as much later as they are long. */
static void test_together(void)
{
	struct gf_what_if what = {0};
	struct trial t;
	double alone_s;

	store(&t.s, &t.level, 1);
	t.s.model.ntensors = 2;
	t.s.model.forward_s = t.s.model.backward_s = 0;
	t.s.model.overlap_slowdown = 1;
	t.s.tensors[0].ready_s = t.s.tensors[1].ready_s = 0;
	t.s.tensors[0].count_elems = t.s.tensors[1].count_elems = 64000;
	t.s.problem.algorithm = "ring";
	plan_it(&t, "wfbp");
	alone_s = t.p.predicted->messages[0].end_s;
	t.p.lanes = 2;
	t.p.messages[1].mode = GF_MODE_SIMULTANEOUS;
	gf_plan_set_types(&t.p);
	replay_it(&t, &what);
	EXPECT(t.r.times.message_start_s[1] == 0, "%g", t.r.times.message_start_s[1]);
	/* the links are full with one; only rounds' latencies are hidden */
	EXPECT(t.r.times.message_end_s[0] > 1.9 * alone_s &&
		       t.r.times.message_end_s[1] <= 2 * alone_s,
	       "want 1.9 to 2 times %g, got %g and %g", alone_s, t.r.times.message_end_s[0],
	       t.r.times.message_end_s[1]);
	gf_replayed_release(&t.r);

	/* more steps than are replayed: the model's times are there */
	what.ranks = 1 << 14;
	EXPECT(gf_replay_plan(&t.p, &what, &t.r, &t.notes, NULL) == -E2BIG, "size");
	EXPECT(t.r.nmessages == 0 && t.r.model.iteration_s > 0, "closed form");
	release(&t);
}

/* Every selection, each by what its entry says of the wire. Butterfly sends whole messages, so that
 * no number of elements is cut unevenly. */
static void test_selections(void)
{
	struct gf_what_if what = {0};
	struct gf_wire wires[GF_WIRES_MOST];
	size_t i, chained = 0;
	uint64_t seed;

	for (i = 0; gf_select_plans[i]; i++) {
		const char *name = gf_select_plans_names[i];
		struct gf_selection replayed = {0};
		struct entry_facts f;

		if (!entry_is_wanted(name))
			continue;
		/* of which all numbers, too, are divisible by the ranks */
		f = entry_facts("selection", name);
		if (gf_json_has(&f.at, "replayed"))
			replayed = test_selection_at(gf_select_plans[i], &f.at, "replayed");
		entry_facts_release(&f);
		for (seed = 1; seed <= 12; seed++) {
			struct trial t;

			store(&t.s, &t.level, seed);
			t.s.problem.algorithm = "butterfly";
			plan_it(&t, "wfbp");
			t.p.selection = replayed.params
						? gf_selection_copy(&replayed)
						: gf_selection_new(gf_select_plans[i],
								   gf_select_plans[i]->defaults);
			replay_it(&t, &what);
			expect_alike(&t, seed, name);
			chained += gf_plan_wires(&t.p, 0, 0, wires) > 1;
			release(&t);
		}
	}
	EXPECT(chained > 0 || entries_are_few(), "no message of two all-reduces");
}

int main(void)
{
	test_uniform();
	test_processing();
	test_beside_backward();
	test_slow();
	test_slow_halves();
	test_together();
	test_selections();
	return TEST_END();
}
