/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner of shards against every plan there is, each simulated by a model of its own. */
#include <errno.h>

#include "base/rng.h"
#include "planner/make.h"
#include "planner_cases.h"
#include "shard_model.h"
#include "test.h"

#define RANKS     4
#define TOLERANCE 1e-9

struct rig {
	struct problem_store store;
	char names[CASE_TENSORS][32];
	size_t n;
	double forward_s;
};

/* Layers of one tensor each: their sizes, and a startup of about what a middling one takes. */
static void fill(struct rig *g, struct gf_rng *rng, size_t n)
{
	struct problem_case c = {.name = "layers", .ntensors = n, .b = 1};
	size_t i;

	memset(g, 0, sizeof(*g));
	c.a = 10 * gf_rng_uniform(rng);
	for (i = 0; i < n; i++) {
		c.bytes[i] = 1 + gf_rng_below(rng, 30);
		c.backward_s[i] = 20 * gf_rng_uniform(rng);
		c.forward_s += c.backward_s[i] / 2;
	}
	store_case(&g->store, &c, 0);
	for (i = 0; i < n; i++) {
		snprintf(g->names[i], sizeof(g->names[i]), "l%zu.weight", n - i);
		g->store.tensors[i].name = g->names[i];
	}
	g->store.network.ranks = RANKS;
	g->store.model.update_s = 2;
	g->n = n;
	g->forward_s = c.forward_s;
}

static int plan(const struct rig *g, const char *units, int ahead, size_t limit, struct gf_plan *p,
		struct gf_error *err)
{
	struct gf_axes axes;
	struct gf_request r = {
		.model = &g->store.model,
		.fabric = {.network = &g->store.network, .ranks = RANKS},
		.axes = &axes,
	};

	gf_axes_init(&axes);
	axes.shard = gf_names_index(gf_shard_plans_names, "zero3");
	axes.shard_units = (char *)units;
	axes.shard_ahead = ahead < 0 ? SIZE_MAX : (size_t)ahead;
	axes.memory = (struct gf_memory_plan){.limit_bytes = limit, .state_bytes = 8};
	return gf_request_plan(&r, p, NULL, err);
}

/* What a rank holds at all times: a quarter of parameters, gradients, and twice that of state. */
static double static_bytes(const struct rig *g)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < g->n; i++)
		sum += 4.0 * (double)g->store.tensors[i].count_elems;
	return sum;
}

/* The cut, keeps, units ahead and lanes, for the other model. A message costs half of the
 * all-reduce in each half. */
static void pose(const struct rig *g, unsigned cut, unsigned keep, int ahead, int lanes,
		 struct shard_model *m)
{
	const struct gf_allreduce_cost *cost = &g->store.costs[0];
	double bytes = 0;
	size_t i;

	*m = (struct shard_model){
		.lanes = lanes,
		.ahead = ahead,
		.dropped = true,
		.forward_s = g->store.model.forward_s,
		.backward_s = g->store.model.backward_s,
		.update_s = g->store.model.update_s / RANKS,
		.gamma = {1, 1.5, 2.25, 3},
	};
	for (i = 0; i < g->n; i++) {
		const int u = m->units;

		bytes += 4.0 * (double)g->store.tensors[i].count_elems;
		if (i + 1 < g->n && !(cut >> i & 1))
			continue;
		m->bytes[u] = bytes;
		m->made_s[u] = g->store.tensors[i].ready_s;
		m->need_s[u] = m->forward_s * (1 - m->made_s[u] / m->backward_s);
		m->keep[u] = u && (keep >> (u - 1) & 1);
		m->alone[u] = lanes == 1;
		m->startup_s[0][u] = m->startup_s[1][u] = cost->startup_s / 2;
		m->drain_s[0][u] = m->drain_s[1][u] = cost->per_byte_s * bytes / 2;
		m->units++;
		bytes = 0;
	}
}

struct found {
	double time_s, bytes;
};

/* Every plan; returns how many. */
static size_t enumerate(const struct rig *g, struct found *all)
{
	struct shard_model m;
	size_t count = 0;
	unsigned cut, keep;
	int ahead, lanes;

	for (cut = 0; cut < 1U << (g->n - 1); cut++) {
		pose(g, cut, 0, 0, 1, &m);
		const int units = m.units;

		for (keep = 0; keep < 1U << (units - 1); keep++)
			for (ahead = 0; ahead <= units; ahead++)
				for (lanes = 1; lanes <= 2; lanes++) {
					pose(g, cut, keep, ahead, lanes, &m);
					shard_simulate(&m);
					all[count++] = (struct found){
						m.iteration_s,
						static_bytes(g) + (1 - 1.0 / RANKS) * m.peak_bytes};
				}
	}
	return count;
}

static void test_exact(void)
{
	static struct found all[20000];
	struct gf_rng rng;
	size_t k, i, count, limit;
	int fits;

	gf_rng_init(&rng, 5, 8);
	for (k = 0; k < 24; k++) {
		struct rig g;

		if (!test_tries(k, 2))
			continue;
		fill(&g, &rng, 2 + k % 4);
		count = enumerate(&g, all);
		for (fits = 0; fits < 5; fits++) {
			double best_s = INFINITY;
			struct gf_error err;
			struct gf_plan p;
			int rc;

			/* 3 bytes are what rounding may add */
			limit = fits == 4 ? 0 : (size_t)(all[gf_rng_below(&rng, count)].bytes) + 4;
			for (i = 0; i < count; i++)
				if (!limit || all[i].bytes <= (double)limit - 3)
					best_s = fmin(best_s, all[i].time_s);
			rc = plan(&g, NULL, -1, limit, &p, &err);
			EXPECT(rc == 0, "case %zu: %s", k, err.text);
			if (rc)
				continue;
			EXPECT(p.predicted->iteration_s <= best_s * (1 + TOLERANCE),
			       "case %zu, %zu bytes: want %g, got %g", k, limit, best_s,
			       p.predicted->iteration_s);
			EXPECT(!limit || p.predicted->memory.peak_bytes <= (double)limit,
			       "case %zu: %g of %zu", k, p.predicted->memory.peak_bytes, limit);
			EXPECT(p.predicted->lower_bound_s <=
				       p.predicted->iteration_s * (1 + TOLERANCE),
			       "case %zu: bound %g of %g", k, p.predicted->lower_bound_s,
			       p.predicted->iteration_s);
			gf_plan_release(&p);
		}
	}
}

/* Of 24 layers: never worse than a rule, more memory is never slower, and the bound holds. */
static void test_never_worse(void)
{
	static const char *const rules[] = {"layer",     "model",    "block", "fsdp2",
					    "deepspeed", "megatron", "64"};
	struct gf_rng rng;
	size_t k, i;

	gf_rng_init(&rng, 9, 1);
	for (k = 0; k < 12; k++) {
		double before_s = INFINITY, least = 0, most = 0;
		struct gf_error err;
		struct gf_plan p;
		struct rig g;

		fill(&g, &rng, 24);
		if (!test_tries(k, 2))
			continue;
		EXPECT(plan(&g, NULL, -1, 0, &p, &err) == 0, "%s", err.text);
		most = p.predicted->memory.peak_bytes;
		for (i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
			struct gf_plan other;

			EXPECT(plan(&g, rules[i], -1, 0, &other, &err) == 0, "%s: %s", rules[i],
			       err.text);
			EXPECT(p.predicted->iteration_s <=
				       other.predicted->iteration_s * (1 + TOLERANCE),
			       "case %zu: %g by %s, %g", k, other.predicted->iteration_s, rules[i],
			       p.predicted->iteration_s);
			gf_plan_release(&other);
		}
		gf_plan_release(&p);
		for (least = static_bytes(&g) * 1.02; least < most * 1.2; least *= 1.05) {
			int rc = plan(&g, NULL, -1, (size_t)least, &p, &err);

			if (rc < 0)
				continue;
			EXPECT(p.predicted->iteration_s <= before_s * (1 + TOLERANCE),
			       "case %zu: %g B take %g, less take %g", k, least,
			       p.predicted->iteration_s, before_s);
			before_s = p.predicted->iteration_s;
			gf_plan_release(&p);
		}
	}
}

/* What is asked for is what there is. */
static void test_asked(void)
{
	struct gf_error err;
	struct gf_rng rng;
	struct gf_plan p;
	struct rig g;

	gf_rng_init(&rng, 2, 2);
	fill(&g, &rng, 10);
	EXPECT(plan(&g, "layer", 3, 0, &p, &err) == 0, "%s", err.text);
	EXPECT(p.nmessages == 10 && p.shard.ahead == 3, "%zu units, %zu ahead", p.nmessages,
	       p.shard.ahead);
	EXPECT_TEXT(p.policy, "layer");
	gf_plan_release(&p);
	EXPECT(plan(&g, "model", 0, 0, &p, &err) == 0 && p.nmessages == 1, "%s", err.text);
	gf_plan_release(&p);
	EXPECT(plan(&g, NULL, -1, 10, &p, &err) == -ENOTSUP, "10 bytes fit");
	EXPECT(strstr(err.text, "want a plan that fits into 10 B"), "%s", err.text);
	EXPECT(plan(&g, "lay", -1, 0, &p, &err) == -EINVAL, "lay is a rule");
}

int main(void)
{
	test_asked();
	test_exact();
	test_never_worse();
	return TEST_END();
}
