/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_PLANS_H
#define GF_TESTS_PLANS_H

#include <math.h>

#include "base/heap.h"
#include "documents/plan.h"
#include "documents/plan_rule.h"
#include "documents/profile.h"
#include "collectives/runnable.h"
#include "test.h"

/* A model whose i-th tensor, "t<i>", has counts[i] elements. */
static inline struct gf_model_profile *model_of(const size_t *counts, size_t n)
{
	struct gf_model_profile *m = gf_xcalloc(1, sizeof(*m));
	size_t i;

	m->name = gf_xstrdup("test");
	m->device = gf_xstrdup("cpu");
	m->overlap_slowdown = 1;
	m->ntensors = n;
	m->tensors = gf_xcalloc(n, sizeof(*m->tensors));
	for (i = 0; i < n; i++) {
		m->tensors[i].name = gf_xasprintf("t%zu", i);
		m->tensors[i].count_elems = counts[i];
		m->tensors[i].need_s = NAN;
	}
	return m;
}

/* A rule with one algorithm up to small_bytes and another from there on. */
static inline void rule_of(struct gf_plan *p, size_t threshold_bytes, int lanes, const char *small,
			   size_t small_bytes, const char *large)
{
	size_t n = small ? 2 : 1;
	struct gf_rule *r = gf_xcalloc(1, sizeof(*r));

	*p = (struct gf_plan){
		.producer = gf_xstrdup("test"),
		.system = gf_xstrdup("auto"),
		.policy = gf_xstrdup("threshold"),
		.lanes = lanes,
		.staleness = 1,
		.rule = r,
	};
	r->threshold_bytes = threshold_bytes;
	r->lanes = lanes;
	r->nalgorithms = n;
	r->algorithms = gf_xcalloc(n, sizeof(*r->algorithms));
	r->algorithms[n - 1].algorithm = gf_xstrdup(large);
	if (small) {
		r->algorithms[0].algorithm = gf_xstrdup(small);
		r->algorithms[1].min_bytes = small_bytes;
	}
}

/* A whole plan by threshold, with one algorithm; 4 ranks are two pairs. */
static inline void plan_of(struct gf_plan *whole, const size_t *counts, size_t n, int ranks,
			   size_t threshold_bytes, int lanes, const char *algorithm)
{
	struct gf_level pairs[] = {
		{.name = "pair", .size = 2, .link = "shm", .bandwidth_bytes_per_s = 1e9},
		{.name = "net", .size = 2, .link = "ethernet", .bandwidth_bytes_per_s = 1e9},
	};
	struct gf_model_profile *m = model_of(counts, n);
	struct gf_plan rule;
	struct gf_error err = {""};

	rule_of(&rule, threshold_bytes, lanes, NULL, 0, algorithm);
	rule.levels = gf_levels_copy(pairs, 2);
	rule.nlevels = 2;
	if (gf_plan_bind(&rule, m, ranks, whole, &err)) {
		printf("%s\n", err.text);
		abort();
	}
	gf_plan_release(&rule);
	gf_model_profile_free(m);
}

#endif
