/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dozen tensors on several lanes with several algorithms: no plan at all is better than optimal's
 * by more than a thousandth. And more choice is never worse: more lanes, and any set of up to three
 * algorithms inside another.
 */
#include "planner/policies/policy.h"
#include "planner/search/search.h"
#include "planner_cases.h"
#include "test.h"

#define TOLERANCE  1e-3
#define SAME       1e-12 /* sums in another order */
#define TREE       2e7   /* starts of messages */
#define INSTANCES  12
#define ENDLESS    2 /* whose trees may not end within that */
#define ALGORITHMS 3
#define SETS       (1 << ALGORITHMS)

/* Several algorithms, all on several lanes. */
static void store(struct problem_store *s, uint64_t seed, size_t ntensors, int lanes)
{
	do
		(seed % 2 ? store_lines : store_random)(s, seed, ntensors, lanes);
	while (s->network.nallreduce < 2 && (seed += 1000));
}

static double optimal_s(const struct problem_store *s)
{
	struct gf_draft d;
	struct gf_workbench w;
	double iteration_s;

	EXPECT(gf_workbench_init(&w, &s->problem, NULL) == 0, "work");
	gf_draft_make(&d, &w, &gf_policy_optimal, s->problem.lanes);
	iteration_s = d.iteration_s;
	gf_draft_release(&d);
	gf_workbench_release(&w);
	return iteration_s;
}

/* Every partition, mode and option that could be that much better is tried. */
static void test_dozen(void)
{
	struct problem_store s;
	size_t ended = 0, tried = 0;
	uint64_t seed;

	for (seed = 1; seed <= INSTANCES; seed++) {
		int lanes = 2 + (int)(seed % 3);
		struct gf_draft better = {.lanes = lanes};
		struct gf_workbench w;
		double found_s;

		if (!test_tries(seed + seed / 4, 3)) /* of both kinds, on all numbers of lanes */
			continue;
		tried++;
		store(&s, seed, 12, lanes);
		found_s = optimal_s(&s);
		EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
		ended += gf_search_exhaust(&w, found_s * (1 - TOLERANCE), TREE, &better);
		EXPECT(better.nsends == 0, "seed %llu, %d lanes: %.17g", (unsigned long long)seed,
		       lanes, found_s);
		gf_draft_release(&better);
		gf_workbench_release(&w);
	}
	EXPECT(ended + ENDLESS >= tried, "%zu of %zu trees were tried whole", ended, tried);
}

/* The problem with these algorithms alone. */
static double with(const struct problem_store *s, int set, int lanes)
{
	struct gf_allreduce_cost costs[ALGORITHMS];
	struct problem_store part = *s;
	size_t k;

	part.problem.model = &s->model;
	part.problem.fabric.network = &part.network;
	part.problem.lanes = lanes;
	part.network.allreduce = costs;
	part.network.nallreduce = 0;
	for (k = 0; k < s->network.nallreduce; k++)
		if (set >> k & 1)
			costs[part.network.nallreduce++] = s->costs[k];
	return optimal_s(&part);
}

static void test_monotone(void)
{
	struct problem_store s;
	uint64_t seed;

	for (seed = 1; seed <= 3; seed++) {
		double best_s[SETS] = {0}, fewer_s[SETS] = {0};
		int lanes, set, part;

		if (!test_tries(seed, 1))
			continue;
		store(&s, seed, 24, 1);
		for (lanes = 1; lanes <= 4; lanes++) {
			for (set = 1; set < 1 << s.network.nallreduce; set++) {
				best_s[set] = with(&s, set, lanes);
				for (part = 1; part < set; part++)
					if ((part & set) == part)
						EXPECT(best_s[set] <= best_s[part] * (1 + SAME),
						       "seed %llu, %d lanes: set %d %.17g, part %d "
						       "%.17g",
						       (unsigned long long)seed, lanes, set,
						       best_s[set], part, best_s[part]);
				EXPECT(lanes == 1 || best_s[set] <= fewer_s[set] * (1 + SAME),
				       "seed %llu, set %d, %d lanes: %.17g, one less: %.17g",
				       (unsigned long long)seed, set, lanes, best_s[set],
				       fewer_s[set]);
				fewer_s[set] = best_s[set];
			}
		}
	}
}

int main(void)
{
	test_dozen();
	test_monotone();
	return TEST_END();
}
