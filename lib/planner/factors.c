/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/factors.h"

#include <string.h>

#define MOST_FACTORS 24 /* of the most ranks there can be */

struct walk {
	const struct gf_factor_rules *rules;
	void (*each)(void *ctx, const struct gf_stage *stages, size_t nstages);
	void *ctx;
	int host; /* ranks that share memory; 0: unknown */
	size_t fewest;
	struct gf_stage stages[MOST_FACTORS];
};

static void split(struct walk *w, size_t depth, int rest);

static void with(struct walk *w, size_t depth, int factor, int rest,
		 const char *algorithm)
{
	w->stages[depth] = (struct gf_stage){
		.factor = factor,
		.algorithm = (char *)algorithm,
	};
	split(w, depth + 1, rest);
}

/* One factor by every algorithm that suits it. */
static void each_algorithm(struct walk *w, size_t depth, int factor, int rest)
{
	const char *fixed =
		w->rules->nfixed ? w->rules->fixed[depth].algorithm : NULL;

	if (fixed) {
		with(w, depth, factor, rest / factor, fixed);
		return;
	}
	if (w->rules->rings_only) {
		with(w, depth, factor, rest / factor, "ring");
		return;
	}
	if (depth == 0 && factor == w->host) {
		with(w, depth, factor, rest / factor, "shm");
		return;
	}
	with(w, depth, factor, rest / factor, "ring");
	if (factor > 2 && (factor & (factor - 1)) == 0)
		with(w, depth, factor, rest / factor, "halving");
}

static void split(struct walk *w, size_t depth, int rest)
{
	int factor;

	if (rest == 1) {
		if (depth >= w->fewest)
			w->each(w->ctx, w->stages, depth);
		return;
	}
	if (w->rules->nfixed) {
		each_algorithm(w, depth, w->rules->fixed[depth].factor, rest);
		return;
	}
	if (depth == w->rules->most)
		return;
	for (factor = 2; factor <= rest; factor++) {
		/* the last factor takes all that is left */
		if (depth + 1 == w->rules->most)
			factor = rest;
		if (rest % factor == 0)
			each_algorithm(w, depth, factor, rest);
	}
}

void gf_factors_each(const struct gf_factor_rules *rules,
		     void (*each)(void *ctx, const struct gf_stage *stages,
				  size_t nstages),
		     void *ctx)
{
	struct walk w = {.rules = rules, .each = each, .ctx = ctx};

	if (rules->nlevels > 0 && strcmp(rules->levels[0].link, "shm") == 0)
		w.host = (int)rules->levels[0].size;
	w.fewest = rules->nfixed            ? rules->nfixed
		   : rules->fewest          ? rules->fewest
		   : w.host == rules->ranks ? 1
					    : 2;
	split(&w, 0, rules->ranks);
}
