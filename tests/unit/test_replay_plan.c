/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan's replay against the step model, where both must say the same. */
#include <errno.h>
#include <math.h>
#include <stdint.h>

#include "base/array.h"
#include "doc/select_csc.h"
#include "planner/policies.h"
#include "planner_cases.h"
#include "sim/predict.h"
#include "sim/replay_plan.h"
#include "test.h"

#define TOLERANCE 1e-9
#define RANKS     8

/* The network below, with other lines for larger messages. */
static struct gf_cost_line larger[] = {{500, 0.4, 0.004, NULL},
				       {4000, 2, 0.0037, NULL}};
static struct gf_level_cost measured = {.name = (char *)"net",
					.alpha_s = 0.01,
					.beta_s_per_byte = 1. / 300,
					.larger = larger,
					.nlarger = 2};
static struct gf_network lines = {.levels = &measured, .nlevels = 1};

/* A random model on a uniform network, every size divisible by the ranks. */
static void store(struct problem_store *s, struct gf_level *level,
		  uint64_t seed)
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
	s->problem.network = seed % 2 ? NULL : &lines;
	s->problem.levels = level;
	s->problem.nlevels = 1;
	s->problem.ranks = RANKS;
	s->model.issue_s = seed % 3 ? 0 : 0.3;
}

static void expect_alike(const struct gf_plan *p, const struct gf_replayed *r,
			 uint64_t seed, const char *what)
{
	size_t i;

	EXPECT_NEAR(r->outcome.iteration_s / r->model.iteration_s, 1, TOLERANCE,
		    "seed %zu, %s", (size_t)seed, what);
	EXPECT_NEAR(r->outcome.backward_end_s / r->model.backward_end_s, 1,
		    TOLERANCE, "seed %zu, %s", (size_t)seed, what);
	for (i = 0; i < p->nmessages; i++) {
		EXPECT_NEAR(r->outcome.messages[i].start_s,
			    r->model.messages[i].start_s,
			    TOLERANCE * r->model.iteration_s,
			    "seed %zu, %s, message %zu", (size_t)seed, what, i);
		EXPECT_NEAR(r->outcome.messages[i].end_s,
			    r->model.messages[i].end_s,
			    TOLERANCE * r->model.iteration_s,
			    "seed %zu, %s, message %zu", (size_t)seed, what, i);
	}
}

/* One message at a time: every policy by every algorithm, backward slowed by
 * messages in flight or not. */
static void test_uniform(void)
{
	static const char *const algorithms[] = {
		"ring", "rhd",          "butterfly",
		"tree", "hierarchical", "blueconnect",
	};
	static const char *const policies[] = {
		"sequential", "single", "wfbp", "mg-wfbp", "dear",
	};
	struct gf_what_if what = {0};
	size_t a, k;
	uint64_t seed;

	for (a = 0; a < GF_ARRAY_LENGTH(algorithms); a++)
		for (k = 0; k < GF_ARRAY_LENGTH(policies); k++)
			for (seed = 1; seed <= 12; seed++) {
				struct gf_error err = {""};
				struct gf_text notes = {0};
				struct problem_store s;
				struct gf_level level;
				struct gf_replayed r;
				struct gf_plan p;
				int rc;

				/* only these have halves */
				if (strcmp(policies[k], "dear") == 0 &&
				    strcmp(algorithms[a], "ring") != 0 &&
				    strcmp(algorithms[a], "rhd") != 0)
					continue;
				store(&s, &level, seed);
				s.problem.algorithm = algorithms[a];
				rc = gf_policy_run(gf_policy_find(policies[k]),
						   &s.problem, &p, &err);
				EXPECT(rc == 0, "%s", err.text);
				if (rc)
					continue;
				rc = gf_replay_plan(&p, &what, &r, &notes,
						    &err);
				EXPECT(rc == 0, "%s %s: %s", algorithms[a],
				       policies[k], err.text);
				if (rc == 0) {
					expect_alike(&p, &r, seed,
						     algorithms[a]);
					gf_replayed_release(&r);
				}
				gf_text_release(&notes);
				gf_plan_release(&p);
			}
}

/* Codecs and selections that cost the processor time: every algorithm encodes
 * and decodes as often as its closed form passes a byte on. */
static void test_processing(void)
{
	static const char *const algorithms[] = {
		"ring", "rhd", "butterfly", "blueconnect", "tree",
	};
	static const char *const f16[] = {"f16", NULL};
	struct gf_codec_cost codec = {
		.of = {.name = (char *)"f16", .device = (char *)"cpu"},
		.encode_s_per_byte = 0.002,
		.decode_s_per_byte = 0.003};
	struct gf_selection_cost select = {
		.of = {.name = (char *)"dense", .device = (char *)"cpu"},
		.alpha_s = 0.3,
		.beta_s_per_byte = 0.001};
	struct gf_processing processing = {&codec, 1, &select, 1};
	struct gf_what_if what = {0};
	uint64_t seed;
	size_t a;

	for (a = 0; a < GF_ARRAY_LENGTH(algorithms); a++)
		for (seed = 1; seed <= 12; seed++) {
			struct gf_error err = {""};
			struct gf_text notes = {0};
			struct problem_store s;
			struct gf_level level;
			struct gf_replayed r;
			struct gf_plan p;
			int rc;

			store(&s, &level, seed);
			s.problem.algorithm = algorithms[a];
			s.problem.codecs = f16;
			s.problem.processing = &processing;
			rc = gf_policy_run(gf_policy_find("wfbp"), &s.problem,
					   &p, &err);
			if (rc == 0)
				rc = gf_replay_plan(&p, &what, &r, &notes,
						    &err);
			EXPECT(rc == 0, "%s", err.text);
			if (rc == 0) {
				expect_alike(&p, &r, seed, algorithms[a]);
				gf_replayed_release(&r);
				gf_plan_release(&p);
			}
			gf_text_release(&notes);
		}
}

/* What a ring and backward do to each other, as it was measured. */
static void test_beside(void)
{
	double slow[] = {1.4, 3};
	struct gf_allreduce_cost ring = {
		.algorithm = (char *)"ring",
		.startup_s = 0.14,
		.per_byte_s = 0.005,
		.beside = {.compute_slowdown = slow, .ncompute_slowdown = 2}};
	struct gf_network net = {
		.ranks = RANKS, .allreduce = &ring, .nallreduce = 1};
	struct gf_what_if what = {0};
	uint64_t seed;

	for (seed = 1; seed <= 30; seed++) {
		struct gf_error err = {""};
		struct gf_text notes = {0};
		struct problem_store s;
		struct gf_level level;
		struct gf_replayed r;
		struct gf_plan p;
		int rc;

		store(&s, &level, seed);
		s.problem.network = &net;
		s.problem.levels = NULL;
		s.problem.nlevels = 0;
		rc = gf_policy_run(gf_policy_find("wfbp"), &s.problem, &p,
				   &err);
		if (rc == 0)
			rc = gf_replay_plan(&p, &what, &r, &notes, &err);
		EXPECT(rc == 0, "%s", err.text);
		if (rc == 0) {
			expect_alike(&p, &r, seed, "beside backward");
			gf_replayed_release(&r);
			gf_plan_release(&p);
		}
		gf_text_release(&notes);
	}
}

/* A slow rank makes the others wait; each is slowed by its own messages. */
static void test_slow(void)
{
	struct gf_slow_rank slow = {.rank = 3, .factor = 1.7};
	struct gf_what_if what = {.slow = &slow, .nslow = 1};
	uint64_t seed;

	for (seed = 1; seed <= 30; seed++) {
		struct gf_text notes = {0};
		struct problem_store s;
		struct gf_level level;
		struct gf_replayed r;
		struct gf_plan p;
		double work;

		store(&s, &level, seed);
		s.problem.algorithm = "ring";
		EXPECT(gf_policy_run(&gf_policy_wfbp, &s.problem, &p, NULL) ==
			       0,
		       "plan");
		EXPECT(gf_replay_plan(&p, &what, &r, &notes, NULL) == 0,
		       "replay");
		EXPECT_NEAR(r.outcome.iteration_s / r.model.iteration_s, 1,
			    TOLERANCE, "seed %zu", (size_t)seed);
		work = 1.7 * (s.model.forward_s + s.model.backward_s);
		EXPECT(r.outcome.backward_end_s >= work - TOLERANCE,
		       "seed %zu: backward ends at %g", (size_t)seed,
		       r.outcome.backward_end_s);
		gf_replayed_release(&r);
		gf_text_release(&notes);
		gf_plan_release(&p);
	}
}

/* One message in halves: a rank that is not slow waits for the all-gather where
 * its own forward needs it, and starts the message when its own backward is
 * through, whatever the slow rank does. */
static void test_slow_halves(void)
{
	struct gf_slow_rank slow = {.rank = 3, .factor = 1.7};
	struct gf_what_if what = {.slow = &slow, .nslow = 1};
	size_t late = 0;
	uint64_t seed;

	for (seed = 1; seed <= 30; seed++) {
		struct gf_text notes = {0};
		struct problem_store s;
		struct gf_level level;
		struct gf_replayed r;
		struct gf_plan p;
		double gather_s, wait_s, ready_s;

		store(&s, &level, seed);
		s.model.overlap_slowdown = 1;
		s.model.issue_s = 0;
		s.problem.algorithm = "ring";
		s.problem.threshold_bytes = SIZE_MAX;
		EXPECT(!gf_policy_run(&gf_policy_dear, &s.problem, &p, NULL),
		       "plan");
		EXPECT(p.nmessages == 1, "%zu messages", p.nmessages);
		gather_s = p.predicted->messages[0].end_s -
			   p.predicted->messages[0].start_s;
		ready_s = s.tensors[s.model.ntensors - 1].ready_s;
		wait_s = gather_s -
			 s.model.forward_s * (1 - ready_s / s.model.backward_s);
		late += wait_s > 0;
		EXPECT(!gf_replay_plan(&p, &what, &r, &notes, NULL), "replay");
		EXPECT_NEAR(r.outcome.messages[0].start_s,
			    s.model.forward_s + fmax(wait_s, 0) + ready_s,
			    TOLERANCE * r.model.iteration_s, "seed %zu",
			    (size_t)seed);
		gf_replayed_release(&r);
		gf_text_release(&notes);
		gf_plan_release(&p);
	}
	EXPECT(late > 10, "no rank waited but %zu times", late);
}

/* Two messages at once share the links: as much later as they are long. */
static void test_together(void)
{
	struct gf_what_if what = {0};
	struct gf_text notes = {0};
	struct problem_store s;
	struct gf_level level;
	struct gf_replayed r;
	struct gf_plan p;
	double alone_s;

	store(&s, &level, 1);
	s.model.ntensors = 2;
	s.model.forward_s = s.model.backward_s = 0;
	s.model.overlap_slowdown = 1;
	s.tensors[0].ready_s = s.tensors[1].ready_s = 0;
	s.tensors[0].count_elems = s.tensors[1].count_elems = 64000;
	s.problem.algorithm = "ring";
	EXPECT(gf_policy_run(&gf_policy_wfbp, &s.problem, &p, NULL) == 0,
	       "plan");
	alone_s = p.predicted->messages[0].end_s;
	p.lanes = 2;
	p.messages[1].mode = GF_MODE_SIMULTANEOUS;
	gf_plan_set_types(&p);
	EXPECT(gf_replay_plan(&p, &what, &r, &notes, NULL) == 0, "replay");
	EXPECT(r.messages[1].start_s == 0, "%g", r.messages[1].start_s);
	/* the links are full with one; only rounds' latencies are hidden */
	EXPECT(r.messages[0].end_s > 1.9 * alone_s &&
		       r.messages[1].end_s <= 2 * alone_s,
	       "want 1.9 to 2 times %g, got %g and %g", alone_s,
	       r.messages[0].end_s, r.messages[1].end_s);
	gf_replayed_release(&r);

	/* more steps than are replayed: the model's times are there */
	what.ranks = 1 << 14;
	EXPECT(gf_replay_plan(&p, &what, &r, &notes, NULL) == -E2BIG, "size");
	EXPECT(r.nmessages == 0 && r.model.iteration_s > 0, "closed form");
	gf_replayed_release(&r);
	gf_text_release(&notes);
	gf_plan_release(&p);
}

/* Every selection, each by what its entry says of the wire. Butterfly sends
 * whole messages, so that no number of elements is cut unevenly. */
static void test_selections(void)
{
	struct gf_what_if what = {0};
	struct gf_wire wires[GF_WIRES_MOST];
	size_t i, chained = 0;
	uint64_t seed;

	for (i = 0; gf_select_plans[i]; i++)
		for (seed = 1; seed <= 12; seed++) {
			const char *name = gf_select_names[i];
			struct gf_error err = {""};
			struct gf_text notes = {0};
			struct problem_store s;
			struct gf_level level;
			struct gf_replayed r;
			struct gf_plan p;

			store(&s, &level, seed);
			s.problem.algorithm = "butterfly";
			EXPECT(!gf_policy_run(&gf_policy_wfbp, &s.problem, &p,
					      &err),
			       "%s", err.text);
			p.selection =
				gf_selection_new(gf_select_plans[i],
						 gf_select_plans[i]->defaults);
			/* norms, too, are divisible by the ranks */
			if (gf_csc_params(&p.selection))
				((struct gf_csc_params *)p.selection.params)
					->chunk_elems = RANKS;
			EXPECT(!gf_replay_plan(&p, &what, &r, &notes, &err),
			       "%s: %s", name, err.text);
			expect_alike(&p, &r, seed, name);
			chained += gf_plan_wires(&p, 0, 0, wires) > 1;
			gf_replayed_release(&r);
			gf_text_release(&notes);
			gf_plan_release(&p);
		}
	EXPECT(chained > 0, "no message of two all-reduces");
}

int main(void)
{
	test_uniform();
	test_processing();
	test_beside();
	test_slow();
	test_slow_halves();
	test_together();
	test_selections();
	return TEST_END();
}
