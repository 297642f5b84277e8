/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/factors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "documents/algorithm_traits.h"

#define MOST_FACTORS 24 /* of the most ranks there can be */
/* The planner prices each way and keeps it. A price takes a time that rises with the root of the
 * ranks (crossing in cost/primitives.c). */
#define MOST_WAYS    10000
#define MOST_ON_ROOT 4e6

struct walk {
	const struct gf_factor_rules *rules;
	void (*each)(void *ctx, const struct gf_stage *stages, size_t nstages);
	void *ctx;
	int host; /* ranks that share memory; 0: unknown */
	size_t fewest, most;
	int *divisors; /* of the ranks, rising, without 1 */
	size_t ndivisors, divisor_capacity;
	size_t counted, most_ways; /* ways, while they are counted */
	struct gf_stage stages[MOST_FACTORS];
};

static void split(struct walk *w, size_t depth, int rest);

static void with(struct walk *w, size_t depth, int factor, int rest, const char *algorithm)
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
	const char *fixed = w->rules->nfixed ? w->rules->fixed[depth].algorithm : NULL;

	if (fixed) {
		with(w, depth, factor, rest / factor, fixed);
		return;
	}
	if (w->rules->rings_only) {
		with(w, depth, factor, rest / factor, "ring");
		return;
	}
	if (w->rules->gpus) {
		with(w, depth, factor, rest / factor, "nccl");
	} else if (depth == 0 && factor == w->host) {
		with(w, depth, factor, rest / factor, "shm");
		return;
	}
	with(w, depth, factor, rest / factor, "ring");
	if (factor > 2 && gf_stage_takes("halving", factor))
		with(w, depth, factor, rest / factor, "halving");
}

static void split(struct walk *w, size_t depth, int rest)
{
	if (rest == 1) {
		if (depth >= w->fewest)
			w->each(w->ctx, w->stages, depth);
		return;
	}
	if (w->rules->nfixed) {
		each_algorithm(w, depth, w->rules->fixed[depth].factor, rest);
		return;
	}
	if (depth == w->most || w->counted > w->most_ways)
		return;
	/* the last factor takes all that is left */
	if (depth + 1 == w->most) {
		each_algorithm(w, depth, rest, rest);
		return;
	}
	for (size_t i = 0; i < w->ndivisors && w->divisors[i] <= rest; i++)
		if (rest % w->divisors[i] == 0)
			each_algorithm(w, depth, w->divisors[i], rest);
}

static void find_divisors(struct walk *w)
{
	int n = w->rules->ranks, d;

	for (d = 1; d <= n / d; d++)
		if (n % d == 0)
			*gf_array_push(&w->divisors, &w->ndivisors, &w->divisor_capacity) = d;
	/* each has its partner; of a square's root, that is itself */
	for (size_t i = w->ndivisors; i-- > 0;)
		if (n / w->divisors[i] != w->divisors[i])
			*gf_array_push(&w->divisors, &w->ndivisors, &w->divisor_capacity) =
				n / w->divisors[i];
	memmove(w->divisors, w->divisors + 1, --w->ndivisors * sizeof(*w->divisors));
}

static void count(void *ctx, const struct gf_stage *stages, size_t nstages)
{
	(void)stages;
	(void)nstages;
	(*(size_t *)ctx)++;
}

/* Fewer factors where there would be too many ways. */
static void limit(struct walk *w)
{
	w->each = count;
	w->ctx = &w->counted;
	w->most_ways = (size_t)fmin(MOST_WAYS, MOST_ON_ROOT / sqrt(w->rules->ranks));
	for (w->most = w->rules->most; w->most > w->fewest && w->most > 1; w->most--) {
		w->counted = 0;
		split(w, 0, w->rules->ranks);
		if (w->counted <= w->most_ways)
			break;
	}
	w->counted = 0;
}

void gf_factors_each(const struct gf_factor_rules *rules,
		     void (*each)(void *ctx, const struct gf_stage *stages, size_t nstages),
		     void *ctx)
{
	struct walk w = {.rules = rules};

	if (rules->nlevels && strcmp(rules->levels->link, "shm") == 0)
		w.host = (int)rules->levels->size;
	w.fewest = rules->nfixed            ? rules->nfixed
		   : rules->fewest          ? rules->fewest
		   : w.host == rules->ranks ? 1
					    : 2;
	if (!rules->nfixed) {
		find_divisors(&w);
		limit(&w);
	}
	w.each = each;
	w.ctx = ctx;
	split(&w, 0, rules->ranks);
	free(w.divisors);
}
