/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search where messages and backward slow each other, against every choice there is, and the
 * bound below both.
 */
#include "base/array.h"
#include "planner/policies/policy.h"
#include "planner/search/search.h"
#include "planner_cases.h"
#include "test.h"

struct choices {
	const struct gf_workbench *w;
	enum gf_half half;
	struct gf_draft d;
	double best_s;
};

static void try_all(struct choices *c, size_t first)
{
	const struct gf_workbench *w = c->w;
	int mode, modes = c->d.lanes > 1 && first > 0 ? 2 : 1;
	size_t last, o;

	if (first == w->ntensors) {
		gf_workbench_predict(w, &c->d);
		c->best_s = fmin(c->best_s, c->d.iteration_s);
		return;
	}
	for (last = first; last < w->ntensors; last++)
		for (mode = 0; mode < modes; mode++)
			for (o = 0; o < w->menu.noptions; o++) {
				struct gf_send *s = gf_draft_send(&c->d, w, first, last);

				s->mode = mode ? GF_MODE_SIMULTANEOUS : GF_MODE_NORMAL;
				s->option = o;
				s->half = c->half;
				if (gf_line_holds(&w->menu.options[o].line,
						  gf_workbench_bytes(w, first, last)))
					try_all(c, last + 1);
				c->d.nsends--;
			}
}

/* What each algorithm and backward do to each other, and issue_s. */
static void add_beside(struct problem_store *s, double slow[3][2], uint64_t seed, bool issue,
		       bool drag)
{
	struct gf_rng rng;
	size_t i;

	gf_rng_init(&rng, seed, 1);
	s->model.issue_s = issue ? gf_rng_uniform(&rng) : 0;
	for (i = 0; i < s->network.nallreduce; i++) {
		struct gf_beside_backward *b = &s->costs[i].beside;

		slow[i][0] = 1 + gf_rng_uniform(&rng);
		slow[i][1] = slow[i][0] * (1 + gf_rng_uniform(&rng));
		if (gf_rng_below(&rng, 4)) {
			b->compute_slowdown = slow[i];
			b->ncompute_slowdown = 2;
		}
		if (drag && gf_rng_below(&rng, 3))
			b->message_slowdown = 1 + 2 * gf_rng_uniform(&rng);
		if (drag && gf_rng_below(&rng, 3))
			b->startup_extra_s = gf_rng_uniform(&rng);
	}
}

static void test_optimal(void)
{
	/* With both, the ends of parts of a plan are not quite exact (serial.c): dear has nothing
	 * else to go by. Nor do its parts know what all-gathers and forward do to each other. */
	static const struct {
		const struct gf_policy *policy;
		int lanes;
		size_t ntensors, instances;
		bool issue, drag;
		double tolerance;
	} cases[] = {
		{&gf_policy_optimal, 1, 7, 80, true, false, 1e-12},
		{&gf_policy_optimal, 1, 7, 80, false, true, 1e-12},
		{&gf_policy_optimal, 1, 7, 80, true, true, 1e-12},
		{&gf_policy_optimal, 2, 5, 60, true, false, 1e-3},
		{&gf_policy_optimal, 2, 5, 60, false, true, 1e-3},
		{&gf_policy_optimal, 2, 5, 60, true, true, 1e-3},
		{&gf_policy_dear, 1, 7, 80, true, false, 1e-12},
		{&gf_policy_dear, 1, 7, 80, false, true, 1e-3},
		{&gf_policy_dear, 1, 7, 80, true, true, 1e-2},
	};
	struct problem_store s;
	double slow[3][2];
	size_t i, seed;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (seed = 1; seed <= cases[i].instances; seed++) {
			int lanes = cases[i].lanes;
			bool halves = cases[i].policy->halves;
			struct choices c = {.d.lanes = lanes,
					    .half = halves ? GF_HALF_SPLIT : GF_HALF_ALL,
					    .best_s = INFINITY};
			double bound_s;
			struct gf_workbench w;
			struct gf_draft d;

			store_random(&s, seed, cases[i].ntensors, lanes);
			add_beside(&s, slow, seed, cases[i].issue, cases[i].drag);
			s.problem.halves = halves;
			EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
			c.w = &w;
			try_all(&c, 0);
			gf_draft_make(&d, &w, cases[i].policy, lanes);
			EXPECT(d.iteration_s <= c.best_s * (1 + cases[i].tolerance),
			       "case %zu, seed %zu: want %.17g, got %.17g", i, seed, c.best_s,
			       d.iteration_s);
			bound_s = halves ? gf_workbench_split_bound_s(&w, lanes)
					 : gf_workbench_bound_s(&w, lanes);
			EXPECT(bound_s <= c.best_s * (1 + 1e-12),
			       "case %zu, seed %zu: bound %.17g above %.17g", i, seed, bound_s,
			       c.best_s);
			gf_draft_release(&c.d);
			gf_draft_release(&d);
			gf_workbench_release(&w);
		}
}

int main(void)
{
	test_optimal();
	return TEST_END();
}
