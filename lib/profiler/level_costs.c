/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/network_parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "cost/stat.h"

void gf_measure_level_peers(const struct gf_level *levels, size_t level, int rank, int *to,
			    int *from)
{
	int stride = 1, size = (int)levels[level].size, digit, first;
	size_t i;

	for (i = 0; i < level; i++)
		stride *= (int)levels[i].size;
	*to = *from = -1;
	if (size < 2 || rank % stride != 0)
		return;
	digit = rank / stride % size;
	first = rank - digit * stride;
	*to = first + (digit + 1) % size * stride;
	*from = first + (digit + size - 1) % size * stride;
}

/* A level, or adding up alone (both peers -1). */
struct subject {
	const struct gf_measure_mover *mover;
	int to, from;
	bool reduce;
	const struct gf_measure_sitting *sitting;
};

static int run(void *ctx, double *times, int repeats, struct gf_error *err)
{
	const struct subject *s = ctx;
	const struct gf_measure_sitting *sitting = s->sitting;
	bool together = sitting->lanes > 1;
	struct gf_measure_hop hop = {
		.to = s->to,
		.from = s->from,
		.bytes = sitting->bytes,
		.rounds = together ? 1 : sitting->messages,
		.messages = together ? sitting->messages : 1,
		.reduce = s->reduce,
	};

	return s->mover->run(s->mover->ctx, &hop, times, repeats, err);
}

static int sit(void *ctx, const struct gf_measure_sitting *sitting,
	       struct gf_measure_samples *samples, struct gf_error *err)
{
	struct subject *s = ctx;

	s->sitting = sitting;
	return gf_measure_repeat(s->mover->comm, run, s, &sitting->budget, samples, err);
}

/* Adding up, by itself or on top of a transfer, at a size that fills no cache more than a segment
 * does. */
static int measure_reduce(struct subject s, const struct gf_measure_curve *plain,
			  double *per_byte_s, struct gf_error *err)
{
	struct gf_measure_sitting sitting = {(size_t)1 << 20, 4, 1, {0.02, 5, 50}};
	struct gf_measure_subject subject = {"adding up", sit, &s};
	struct gf_measure_samples samples = {0};
	struct gf_cost_lines lines = {0};
	double time_s, bytes;
	int rc;

	s.reduce = true;
	if (!plain)
		s.to = s.from = -1;
	else
		lines = gf_measure_curve_lines(plain);
	rc = subject.sit(&s, &sitting, &samples, err);
	if (rc == 0) {
		bytes = (double)sitting.bytes;
		time_s = gf_stat_median(samples.values, samples.count) / sitting.messages;
		if (plain)
			time_s -= gf_cost_lines_s(&lines, bytes);
		*per_byte_s = fmax(0, time_s / bytes);
	}
	gf_measure_samples_release(&samples);
	return rc;
}

/* Does any rank's receive on this level add without a buffer? */
static int adds_on_the_way(const struct subject *s, double *any, struct gf_error *err)
{
	const struct gf_measure_mover *m = s->mover;

	*any = s->from >= 0 && m->adds && m->adds(m->ctx, s->from);
	return gf_measure_slowest(m->comm, any, 1, err);
}

static int measure_level(const struct gf_measure_levels *c, size_t level,
			 struct gf_level_cost *cost, struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_curve_config config = c->curve;
	struct subject s = {.mover = &c->mover};
	char *name = gf_xasprintf("level %s", c->levels[level].name);
	struct gf_measure_subject subject = {name, sit, &s};
	struct gf_measure_curve curve = {0};
	double fused = 0;
	int rc;

	gf_measure_level_peers(c->levels, level, c->mover.comm->rank, &s.to, &s.from);
	rc = gf_measure_curve(&config, &subject, &curve, remarks, err);
	if (rc == 0)
		rc = adds_on_the_way(&s, &fused, err);
	if (rc == 0)
		rc = measure_reduce(s, fused > 0 ? &curve : NULL, &cost->reduce_s_per_byte, err);
	if (rc == 0) {
		cost->name = gf_xstrdup(c->levels[level].name);
		cost->alpha_s = curve.startup_s;
		cost->beta_s_per_byte = curve.per_byte_s;
		cost->larger = curve.larger;
		cost->nlarger = curve.nlarger;
		cost->contention = curve.contention;
		cost->fit = curve.fit;
	} else {
		gf_measure_curve_release(&curve);
		gf_error_prefix(err, "%s", name);
	}
	free(name);
	return rc;
}

int gf_measure_levels(const struct gf_measure_levels *c, struct gf_network *net,
		      struct gf_text *remarks, struct gf_error *err)
{
	struct gf_measure_levels one = *c;
	size_t i;
	int rc = 0;

	one.curve.limits.budget_s /= (double)(c->nlevels ? c->nlevels : 1);
	net->levels = gf_xcalloc(c->nlevels + 1, sizeof(*net->levels));
	for (i = 0; i < c->nlevels && rc == 0; i++) {
		if (c->levels[i].size < 2)
			continue;
		rc = measure_level(&one, i, &net->levels[net->nlevels], remarks, err);
		net->nlevels += rc == 0;
	}
	return rc;
}
