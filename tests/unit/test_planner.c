/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "planner/policies/policy.h"
#include "planner/search/search.h"
#include "planner/workbench.h"
#include "planner_cases.h"
#include "entry_facts.h"
#include "test.h"

#define TOLERANCE 1e-9

static void print_cuts(const struct gf_plan *p, char *out, size_t size)
{
	size_t i, n = 0;

	out[0] = '\0';
	for (i = 0; i < p->nmessages && n < size; i++) {
		const struct gf_message *m = &p->messages[i];

		n += (size_t)snprintf(out + n, size - n, "%s%zu-%zu%s", i ? " " : "", m->first,
				      m->last, m->mode == GF_MODE_SIMULTANEOUS ? "s" : "");
	}
}

/* tests/data/vectors.md: the time model and its policies. */
static const struct problem_case *const problems[] = {&six, &chain, &pair, &staggered};

/* "plans PROBLEM lanes N threshold UNITS: SECONDS CUTS", as tests/entries/README has it. */
static void expect_plan(const struct gf_policy *policy, const char *line)
{
	const struct problem_case *problem = NULL;
	char name[32], cuts[128];
	struct gf_error err = {""};
	struct problem_store s;
	struct gf_plan p;
	size_t threshold, i;
	int lanes, cut = 0;
	double want_s;

	if (sscanf(line, "plans %31s lanes %d threshold %zu: %lf %n", name, &lanes, &threshold,
		   &want_s, &cut) < 4)
		return;
	for (i = 0; i < GF_ARRAY_LENGTH(problems); i++)
		if (strcmp(problems[i]->name, name) == 0)
			problem = problems[i];
	EXPECT(problem, "%s: no problem %s", policy->name, name);
	if (!problem)
		return;
	store_case(&s, problem, lanes);
	s.problem.threshold_bytes = 4 * threshold;
	if (gf_policy_run(policy, &s.problem, &p, &err)) {
		EXPECT(false, "%s: %s", line, err.text);
		return;
	}
	EXPECT_NEAR(p.predicted->iteration_s, want_s, TOLERANCE, "%s: %s", policy->name, line);
	EXPECT(p.predicted->lower_bound_s <= p.predicted->iteration_s + TOLERANCE, "%s: %s",
	       policy->name, line);
	print_cuts(&p, cuts, sizeof(cuts));
	if (cut && line[cut])
		EXPECT_TEXT(cuts, line + cut);
	gf_plan_release(&p);
}

static void test_vectors(void)
{
	size_t i;

	for (i = 0; gf_policies[i]; i++) {
		char *text = entry_lines("policy", gf_policies[i]->name), *line, *rest = text;

		while ((line = strsep(&rest, "\n")))
			expect_plan(gf_policies[i], line);
		free(text);
	}
}

/* --- against every choice there is --------------------------------------- */

struct choices {
	const struct gf_workbench *w;
	struct gf_draft d;
	bool options; /* also every option of the menu */
	double best_s;
};

static void try_all(struct choices *c, size_t first)
{
	const struct gf_workbench *w = c->w;
	size_t options = c->options ? w->menu.noptions : 1, last, o;
	int mode, modes = c->d.lanes > 1 && first > 0 ? 2 : 1;

	if (first == w->ntensors) {
		gf_workbench_predict(w, &c->d);
		c->best_s = fmin(c->best_s, c->d.iteration_s);
		return;
	}
	for (last = first; last < w->ntensors; last++)
		for (mode = 0; mode < modes; mode++)
			for (o = 0; o < options; o++) {
				struct gf_send *s = gf_draft_send(&c->d, w, first, last);

				s->mode = mode ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
				if (c->options)
					s->option = o;
				if (gf_line_holds(&w->menu.options[s->option].line,
						  gf_workbench_bytes(w, first, last)))
					try_all(c, last + 1);
				c->d.nsends--;
			}
}

/* optimal against exhaustive search, and the bound below both. */
static void test_optimal(void)
{
	static const struct {
		int lanes;
		size_t ntensors, instances;
		bool options;
		double tolerance;
	} cases[] = {
		{1, 3, 40, false, 1e-12}, {1, 7, 60, true, 1e-12}, {1, 12, 40, false, 1e-12},
		{2, 5, 60, true, 1e-3},   {2, 7, 40, false, 1e-3}, {2, 12, 4, false, 1e-3},
		{3, 6, 40, false, 1e-3},  {4, 7, 10, false, 1e-3},
	};
	struct problem_store s;
	size_t i, seed;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (seed = 1; seed <= cases[i].instances; seed++) {
			int lanes = cases[i].lanes;
			struct choices c = {.options = cases[i].options};
			struct gf_workbench w;
			struct gf_draft d;

			if (!test_tries(seed + seed / 2, 1)) /* of both kinds */
				continue;
			(seed % 2 ? store_lines : store_random)(&s, seed, cases[i].ntensors, lanes);
			EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
			c.w = &w;
			c.d.lanes = lanes;
			c.best_s = INFINITY;
			try_all(&c, 0);
			gf_draft_make(&d, &w, &gf_policy_optimal, lanes);
			EXPECT(d.iteration_s <= c.best_s * (1 + cases[i].tolerance),
			       "lanes %d, %zu tensors, seed %zu: want %.17g, got %.17g", lanes,
			       cases[i].ntensors, seed, c.best_s, d.iteration_s);
			EXPECT(gf_workbench_bound_s(&w, lanes) <= c.best_s * (1 + 1e-12),
			       "lanes %d, seed %zu: bound %.17g above %.17g", lanes, seed,
			       gf_workbench_bound_s(&w, lanes), c.best_s);
			gf_draft_release(&c.d);
			gf_draft_release(&d);
			gf_workbench_release(&w);
		}
}

/* One lane: as good as every choice, tried one by one. */
static void test_line(void)
{
	struct problem_store s;
	size_t seed;

	for (seed = 1; seed <= 400; seed++) {
		struct gf_draft all = {.lanes = 1}, serial = {.lanes = 1};
		double optimum_s;
		struct gf_workbench w;

		(seed % 2 ? store_lines : store_random)(&s, seed, 4 + seed % 9, 1);
		s.model.overlap_slowdown = 1;
		EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
		EXPECT(gf_search_exhaust(&w, INFINITY, 1e6, &all), "budget");
		gf_search_serial(&w, INFINITY, &serial);
		gf_workbench_predict(&w, &all);
		gf_workbench_predict(&w, &serial);
		EXPECT_NEAR(all.iteration_s, serial.iteration_s, 1e-12, "seed %zu", seed);
		optimum_s = serial.iteration_s;
		gf_draft_release(&all);
		gf_draft_release(&serial);
		gf_search_serial(&w, optimum_s * (1 - 1e-9), &serial);
		EXPECT(serial.nsends == 0, "nothing beats the optimum");
		gf_draft_release(&serial);
		/* what prunes the search leaves the optimum in it */
		serial = (struct gf_draft){.lanes = 1};
		gf_search_serial(&w, optimum_s * (1 + 1e-9), &serial);
		EXPECT(serial.nsends > 0, "seed %zu: the optimum is cut off", seed);
		gf_draft_release(&serial);
		gf_workbench_release(&w);
	}
}

/* optimal is never worse than any automatic policy; every draft covers every tensor once, in order;
 * the split bound holds for dear. */
static void test_never_worse(void)
{
	struct problem_store s;
	size_t seed, i, k;

	for (seed = 1; seed <= 30; seed++) {
		int lanes = 1 + (int)(seed % 3);
		struct gf_draft best, d;
		struct gf_problem split;
		struct gf_workbench w, split_w;

		if (!test_tries(seed + seed / 6, 1)) /* of both kinds, on all numbers of lanes */
			continue;
		(seed % 2 ? store_lines : store_random)(&s, seed, 12, lanes);
		split = s.problem;
		split.halves = true;
		EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
		EXPECT(gf_workbench_init(&split_w, &split, NULL) == 0, "work");
		gf_draft_make(&best, &w, &gf_policy_optimal, lanes);
		for (i = 0; gf_policies[i]; i++) {
			const char *name = gf_policies[i]->name;
			size_t next = 0;

			gf_draft_make(&d, gf_policies[i]->halves ? &split_w : &w, gf_policies[i],
				      lanes);
			for (k = 0; k < d.nsends; k++) {
				EXPECT(d.sends[k].first == next && d.sends[k].last >= next,
				       "%s, seed %zu", name, seed);
				next = d.sends[k].last + 1;
			}
			EXPECT(next == w.ntensors, "%s, seed %zu", name, seed);
			if (gf_policies[i]->automatic)
				EXPECT(best.iteration_s <= d.iteration_s,
				       "%s, seed %zu: %.17g, %.17g", name, seed, best.iteration_s,
				       d.iteration_s);
			else
				EXPECT(gf_workbench_split_bound_s(&split_w, lanes) <=
					       d.iteration_s * (1 + 1e-12),
				       "%s, seed %zu", name, seed);
			gf_draft_release(&d);
		}
		gf_draft_release(&best);
		gf_workbench_release(&split_w);
		gf_workbench_release(&w);
	}
}

/* One tensor on one lane leaves nothing to choose: the bounds are its time, but for the forward
 * pass, which the split bound lets hide it: the only tensor is needed at once. */
static void test_bound_reached(void)
{
	static const double forwards_s[] = {0, 2, 9};
	struct problem_store s;
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(forwards_s); i++) {
		struct problem_case c = {.name = "one",
					 .ntensors = 1,
					 .forward_s = forwards_s[i],
					 .backward_s = {3},
					 .bytes = {10},
					 .a = 1,
					 .b = .5};
		struct gf_draft whole, halves;
		struct gf_problem split;
		struct gf_workbench w, split_w;

		store_case(&s, &c, 1);
		split = s.problem;
		split.halves = true;
		EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
		EXPECT(gf_workbench_init(&split_w, &split, NULL) == 0, "work");
		gf_draft_make(&whole, &w, &gf_policy_optimal, 1);
		gf_draft_make(&halves, &split_w, gf_policy_find("dear"), 1);
		EXPECT_NEAR(gf_workbench_bound_s(&w, 1), whole.iteration_s, 1e-12, "forward %g s",
			    forwards_s[i]);
		/* two halves of 3 s */
		EXPECT_NEAR(gf_workbench_split_bound_s(&split_w, 1) + fmin(forwards_s[i], 3),
			    halves.iteration_s, 1e-12, "forward %g s, in halves", forwards_s[i]);
		gf_draft_release(&whole);
		gf_draft_release(&halves);
		gf_workbench_release(&split_w);
		gf_workbench_release(&w);
	}
}

/* The searched threshold against every theta that makes a difference. */
static void test_threshold(void)
{
	struct problem_store s;
	size_t seed, i, k;

	for (seed = 1; seed <= 40; seed++) {
		struct gf_draft searched, given;
		struct gf_workbench w;
		double best_s = INFINITY;

		store_random(&s, seed, 10, 1);
		EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
		gf_draft_make(&searched, &w, &gf_policy_threshold, 1);
		for (i = 0; i < w.ntensors; i++)
			for (k = i; k < w.ntensors; k++) {
				s.problem.threshold_bytes = (size_t)gf_workbench_bytes(&w, i, k);
				gf_draft_make(&given, &w, &gf_policy_threshold, 1);
				best_s = fmin(best_s, given.iteration_s);
				gf_draft_release(&given);
			}
		EXPECT(searched.iteration_s <= best_s * (1 + 1e-12),
		       "seed %zu: want %.17g, got %.17g", seed, best_s, searched.iteration_s);
		gf_draft_release(&searched);
		gf_workbench_release(&w);
	}
}

/* A message has one data type. */
static void test_runs(void)
{
	struct problem_store s;
	size_t i, k;

	for (i = 0; gf_policies[i]; i++) {
		struct gf_plan p;

		store_case(&s, &six, 2);
		s.tensors[2].dtype = s.tensors[3].dtype = GF_F16;
		EXPECT(gf_policy_run(gf_policies[i], &s.problem, &p, NULL) == 0, "%s",
		       gf_policies[i]->name);
		for (k = 0; k < p.nmessages; k++)
			EXPECT(s.tensors[p.messages[k].first].dtype ==
				       s.tensors[p.messages[k].last].dtype,
			       "%s message %zu", gf_policies[i]->name, k);
		gf_plan_release(&p);
	}
}

static void test_refusals(void)
{
	struct problem_store s;
	struct gf_error err;
	struct gf_plan p;

	store_case(&s, &six, 2);
	s.problem.algorithm = "library";
	EXPECT(gf_policy_run(&gf_policy_wfbp, &s.problem, &p, &err) == -ENOTSUP,
	       "no such algorithm");
	store_case(&s, &six, 2);
	s.costs[0].per_byte_s = 1e308;
	EXPECT(gf_policy_run(&gf_policy_wfbp, &s.problem, &p, &err) == -EINVAL, "overflow");
	s.model.ntensors = 0;
	EXPECT(gf_policy_run(&gf_policy_wfbp, &s.problem, &p, &err) == -EINVAL, "no tensors");
	EXPECT_TEXT(err.text, "want at least one tensor, found none");
}

/* auto: the best of all, named after the simplest policy that reaches it. */
static void test_auto(void)
{
	struct problem_store s;
	struct gf_plan p;

	store_case(&s, &six, 0);
	EXPECT(gf_policy_auto(&s.problem, &p, NULL) == 0, "six");
	EXPECT_NEAR(p.predicted->iteration_s, 41.583333333333336, TOLERANCE,
		    "three lanes measured");
	EXPECT_TEXT(p.policy, "optimal");
	gf_plan_release(&p);
	store_case(&s, &six, 0);
	s.model.backward_s += 100;
	EXPECT(gf_policy_auto(&s.problem, &p, NULL) == 0, "all hidden");
	EXPECT_TEXT(p.policy, "single");
	EXPECT(p.lanes == 1, "lanes %d", p.lanes);
	gf_plan_release(&p);
}

int main(void)
{
	test_vectors();
	test_optimal();
	test_line();
	test_never_worse();
	test_bound_reached();
	test_threshold();
	test_runs();
	test_refusals();
	test_auto();
	return TEST_END();
}
