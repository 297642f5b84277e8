/* SPDX-License-Identifier: BSD-3-Clause */
/* The best algorithm per size, as a rule plan. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "bench/report.h"

/* A size is large enough to be worth a message of its own when its time per
 * byte is within this of the best. */
static const double near_best = 1.1;

static const struct gf_bench_row *best_at(const struct gf_bench_report *r,
					  size_t size_bytes)
{
	const struct gf_bench_row *best = NULL;
	size_t i;

	for (i = 0; i < r->nrows; i++) {
		const struct gf_bench_row *row = &r->rows[i];

		/* a rule is about dense messages */
		if (row->size_bytes != size_bytes || row->way.density > 0)
			continue;
		if (!best || row->reading[GF_IN_PLACE].median_s <
				     best->reading[GF_IN_PLACE].median_s)
			best = row;
	}
	return best;
}

/* From that size on a message is worth its startup. */
static size_t threshold_of(const struct gf_bench_report *r)
{
	double least = INFINITY, rate;
	size_t i, threshold = 1;
	int pass;

	for (pass = 0; pass < 2; pass++)
		for (i = r->nrows; i-- > 0;) {
			const struct gf_bench_row *row =
				best_at(r, r->rows[i].size_bytes);

			if (!row || !row->size_bytes)
				continue;
			rate = row->reading[GF_IN_PLACE].median_s /
			       (double)row->size_bytes;
			if (pass == 0)
				least = fmin(least, rate);
			else if (rate <= near_best * least)
				threshold = row->size_bytes;
		}
	return threshold;
}

/* Where the ranks of a host went first, binding the rule needs to know them.
 * Rates decide nothing then; they are what is assumed of such links. */
static void add_levels(const struct gf_bench_report *r, struct gf_plan *p)
{
	static char host[] = "host", shm[] = "shm", net[] = "net",
		    ethernet[] = "ethernet";
	static const struct gf_level assumed[] = {
		{.name = host,
		 .link = shm,
		 .bandwidth_bytes_per_s = 8e9,
		 .latency_s = 1e-6},
		{.name = net,
		 .link = ethernet,
		 .bandwidth_bytes_per_s = 1.25e8,
		 .latency_s = 5e-5},
	}; /* of GF_ORIGIN_ASSUMED, which is 0 */
	size_t i, k;

	for (i = 0; i < r->nrows && !p->levels; i++) {
		const struct gf_way *way = &r->rows[i].way;

		if (way->nfactors != GF_ARRAY_LENGTH(assumed))
			continue;
		p->nlevels = way->nfactors;
		p->levels = gf_levels_copy(assumed, way->nfactors);
		for (k = 0; k < way->nfactors; k++)
			p->levels[k].size = (size_t)way->factors[k];
	}
}

int gf_bench_report_rule(const struct gf_bench_report *r, struct gf_plan *p,
			 struct gf_error *err)
{
	struct gf_rule *rule = gf_xcalloc(1, sizeof(*rule));
	struct gf_rule_algorithm *last = NULL;
	size_t capacity = 0, i;

	memset(p, 0, sizeof(*p));
	p->rule = rule;
	for (i = 0; i < r->nrows && !r->plan; i++) {
		const struct gf_bench_row *row =
			best_at(r, r->rows[i].size_bytes);

		if (!row || (last && (row->size_bytes <= last->min_bytes ||
				      strcmp(last->algorithm,
					     row->way.algorithm->name) == 0)))
			continue;
		last = gf_array_push(&rule->algorithms, &rule->nalgorithms,
				     &capacity);
		last->min_bytes = rule->nalgorithms > 1 ? row->size_bytes : 0;
		last->algorithm = gf_xstrdup(row->way.algorithm->name);
	}
	rule->threshold_bytes = threshold_of(r);
	add_levels(r, p);
	rule->lanes = r->config->lanes;
	p->lanes = rule->lanes;
	p->producer = gf_xstrdup("gf-allreduce " GF_VERSION);
	p->system = gf_xstrdup("auto");
	p->policy = gf_xstrdup("threshold");
	p->selection.decay = NAN;
	p->staleness = 1;
	if (rule->nalgorithms)
		return 0;
	gf_plan_release(p);
	return gf_error_set(err, -EINVAL,
			    "no algorithm was measured to choose from");
}
