/* SPDX-License-Identifier: BSD-3-Clause */
/* What gradients are like (trainer/statistics.h): of gradients whose statistics are known. */
#include "base/heap.h"
#include "base/rng.h"
#include "ranks.h"
#include "trainer/optim/optimizer.h"
#include "trainer/statistics.h"

enum { BIAS = 10, WEIGHT = 5000, ALL = BIAS + WEIGHT, STEPS = 400 };

static const struct known {
	int ranks;
	double common; /* the share of a gradient's variance that all ranks have in common */
	double zeros;  /* the share of zeros */
	double scale;
	double off;   /* of the means that are applied, relative */
	bool applied; /* they are compared */
} knowns[] = {
	{1, 0, 0, 1, 1e-2, true},    {2, 0, 0, 1e-6, 1e-3, true}, {3, 1, 0, 1e4, 0.1, true},
	{4, 0.5, 0.25, 1, 0, false}, {2, 1, 0, 1, 0, true},
};

static void fill(const struct known *k, int rank, size_t step, float *gradients)
{
	struct gf_rng own, common;

	gf_rng_init(&common, step, 1);
	gf_rng_init(&own, step, 2 + (uint64_t)rank);
	for (size_t i = 0; i < ALL; i++) {
		const double c = gf_rng_normal(&common), o = gf_rng_normal(&own);
		const bool none = gf_rng_uniform(&common) < k->zeros;

		gradients[i] =
			none ? 0
			     : (float)(k->scale * (sqrt(k->common) * c + sqrt(1 - k->common) * o));
	}
}

static void judge(const struct known *k, const struct gf_statistics_result *r)
{
	for (size_t t = 0; t < 2; t++) {
		const struct gf_gradient *g = &r->gradients[t];
		const double room = t ? 0.03 : 0.15;

		EXPECT(fabs(g->rms / k->scale / sqrt(1 - k->zeros) - 1) < room, "%zu: rms %g", t,
		       g->rms);
		EXPECT(fabs(g->zeros - k->zeros) < room, "%zu: zeros %g", t, g->zeros);
		EXPECT(fabs(g->correlation - (k->ranks > 1 ? k->common : 0)) < 2 * room,
		       "%zu: correlation %g", t, g->correlation);
		EXPECT(k->zeros > 0 || !t || fabs(g->peak / 3.45 - 1) < 0.05, "peak %g", g->peak);
	}
	EXPECT(fabs(r->error - (k->applied ? k->off : 0)) <= 0.01 * k->off + 1e-7,
	       "error %g, not %g", r->error, k->off);
	EXPECT(r->most >= r->error * 0.99 && r->tensor < 2, "most %g, of %zu", r->most, r->tensor);
}

static void look_on(struct gf_comm *c, void *ctx)
{
	const struct known *k = ctx;
	struct gf_tensor tensors[] = {{.name = "bias", .count_elems = BIAS},
				      {.name = "weight", .count_elems = WEIGHT}};
	const struct gf_model_profile model = {.tensors = tensors, .ntensors = 2};
	struct gf_statistics *s = gf_statistics_new(&model);
	struct gf_team team = {.comm = c};
	float *own = gf_xcalloc(ALL, sizeof(*own)), *sums = gf_xcalloc(ALL, sizeof(*sums));
	const struct gf_optim_piece piece = {0, ALL, sums};
	const struct gf_select_sums came = {&piece, 1, 1.0f / (float)k->ranks};
	struct gf_statistics_result r;
	struct gf_error err = {""};

	EXPECT(gf_statistics_conclude(s, &team, &r, &err) == 0 && !r.gradients, "of no step");
	for (size_t step = 1; step <= STEPS; step++) {
		memset(sums, 0, ALL * sizeof(*sums));
		for (int rank = 0; rank < k->ranks && step % 10 == 0; rank++) {
			fill(k, rank, step, own);
			for (size_t i = 0; i < ALL; i++)
				sums[i] += own[i] * (float)(1 + k->off);
		}
		fill(k, c->rank, step, own);
		gf_statistics_begin(s, step);
		gf_statistics_take(s, 0, own);
		gf_statistics_take(s, 1, own);
		if (k->applied)
			gf_statistics_came(s, &came);
		EXPECT(gf_statistics_meet(s, &team, &err) == 0, "%s", err.text);
	}
	EXPECT(gf_statistics_conclude(s, &team, &r, &err) == 0, "%s", err.text);
	judge(k, &r);
	free(r.gradients);
	gf_statistics_free(s);
	free(own);
	free(sums);
}

int main(void)
{
	watchdog(120);
	for (size_t i = 0; i < sizeof(knowns) / sizeof(*knowns); i++)
		on_ranks(knowns[i].ranks, look_on, (void *)&knowns[i]);
	gf_statistics_begin(NULL, 10);
	gf_statistics_take(NULL, 0, NULL);
	gf_statistics_free(NULL);
	return TEST_END();
}
