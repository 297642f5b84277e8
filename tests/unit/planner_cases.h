/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_PLANNER_CASES_H
#define GF_TESTS_PLANNER_CASES_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/rng.h"
#include "planner/policies/policy.h"

/*
 * Small problems as structs: those of tests/data/vectors.md and seeded random ones. Sizes are in
 * bytes of f32, so that b is per byte.
 */
#define CASE_TENSORS 40

struct problem_case {
	const char *name;
	size_t ntensors;
	double forward_s;
	double backward_s[CASE_TENSORS]; /* per tensor */
	size_t bytes[CASE_TENSORS];      /* in units of 4 bytes */
	double a, b;                     /* b per unit */
};

static const struct problem_case six = {
	"six", 6, 3, {1, 3, 2, 3, 3, 5}, {6, 12, 8, 10, 6, 3}, 3, 1,
};
static const struct problem_case chain = {
	"chain", 5, 0, {1, 1, 1, 1, 1}, {8, 1, 1, 1, 1}, 2, 1,
};
static const struct problem_case pair = {
	"pair", 2, 0, {0, 0}, {4, 4}, 1, 1,
};
static const struct problem_case staggered = {
	"staggered", 2, 0, {0, 2}, {4, 4}, 1, 1,
};

struct problem_store {
	struct gf_model_profile model;
	struct gf_tensor tensors[CASE_TENSORS];
	struct gf_network network;
	struct gf_allreduce_cost costs[3];
	struct gf_contention_entry entries[3][2];
	double gamma[3][2][4];
	struct gf_cost_line larger[3][2];
	struct gf_problem problem;
};

/* One algorithm, gamma 1, 1.5, 2.25. */
static inline void store_case(struct problem_store *s, const struct problem_case *c, int lanes)
{
	double ready = 0;
	size_t i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < c->ntensors; i++) {
		ready += c->backward_s[i];
		s->tensors[i].name = (char *)"t";
		s->tensors[i].count_elems = c->bytes[i];
		s->tensors[i].dtype = GF_F32;
		s->tensors[i].ready_s = ready;
		s->tensors[i].need_s = NAN;
	}
	s->model.name = (char *)c->name;
	s->model.device = (char *)"cpu";
	s->model.forward_s = c->forward_s;
	s->model.backward_s = ready;
	s->model.overlap_slowdown = 1;
	s->model.tensors = s->tensors;
	s->model.ntensors = c->ntensors;
	s->gamma[0][0][0] = 1;
	s->gamma[0][0][1] = 1.5;
	s->gamma[0][0][2] = 2.25;
	s->entries[0][0].gamma = s->gamma[0][0];
	s->entries[0][0].ngamma = 3;
	s->costs[0].algorithm = (char *)"ring";
	s->costs[0].startup_s = c->a;
	s->costs[0].per_byte_s = c->b / 4;
	s->costs[0].contention.entries = s->entries[0];
	s->costs[0].contention.nentries = 1;
	s->network.ranks = 4;
	s->network.allreduce = s->costs;
	s->network.nallreduce = 1;
	s->problem.model = &s->model;
	s->problem.fabric.network = &s->network;
	s->problem.fabric.ranks = 4;
	s->problem.lanes = lanes;
}

/* Up to two lines more for an algorithm: another slope, and a jump upwards or downwards. */
static inline void add_lines(struct problem_store *s, size_t cost, struct gf_rng *rng)
{
	struct gf_allreduce_cost *c = &s->costs[cost];
	struct gf_cost_line before = {0, c->startup_s, c->per_byte_s, NULL};

	c->larger = s->larger[cost];
	for (c->nlarger = 0; c->nlarger < gf_rng_below(rng, 3);) {
		struct gf_cost_line *l = &c->larger[c->nlarger++];
		double from, jump = 3 * gf_rng_uniform(rng), ends_s;
		uint64_t way = gf_rng_below(rng, 3);

		l->from_bytes = before.from_bytes + 1 + (size_t)gf_rng_below(rng, 80);
		from = (double)l->from_bytes;
		l->per_byte_s = before.per_byte_s * (0.3 + 1.5 * gf_rng_uniform(rng));
		ends_s = before.startup_s + before.per_byte_s * from;
		ends_s = way == 0 ? ends_s : way == 1 ? ends_s + jump : ends_s / (1 + jump);
		l->startup_s = ends_s - l->per_byte_s * from;
		if (l->startup_s < 0) {
			l->per_byte_s += l->startup_s / from;
			l->startup_s = 0;
		}
		before = *l;
	}
}

/* A random instance: sometimes bound by compute, sometimes by the network, with ties, several
 * algorithms, gamma by size and algorithm, slow overlap. */
static inline void store_random(struct problem_store *s, uint64_t seed, size_t ntensors, int lanes)
{
	struct problem_case c = {.name = "random", .ntensors = ntensors};
	struct gf_rng rng;
	double scale;
	size_t i, k;

	gf_rng_init(&rng, seed, 0);
	scale = pow(10, 2 * gf_rng_uniform(&rng) - 1);
	c.forward_s = (double)gf_rng_below(&rng, 4);
	for (i = 0; i < ntensors; i++) {
		c.backward_s[i] = gf_rng_below(&rng, 4) ? 3 * gf_rng_uniform(&rng) : 0;
		c.bytes[i] = (size_t)(1 + 15 * scale * pow(gf_rng_uniform(&rng), 2));
	}
	c.a = gf_rng_below(&rng, 5) ? 6 * gf_rng_uniform(&rng) : 0.01;
	c.b = 0.2 + gf_rng_uniform(&rng);
	store_case(s, &c, lanes);
	s->gamma[0][0][1] = 1 + gf_rng_uniform(&rng);
	s->gamma[0][0][2] = s->gamma[0][0][1] * (1 + gf_rng_uniform(&rng) / 2);
	if (gf_rng_below(&rng, 2)) {
		s->entries[0][0].size_bytes = 16;
		s->entries[0][1] = s->entries[0][0];
		s->entries[0][1].size_bytes = 256;
		s->entries[0][1].gamma = s->gamma[0][1];
		for (k = 0; k < 3; k++)
			s->gamma[0][1][k] = 1 + 0.9 * (double)k;
		s->costs[0].contention.nentries = 2;
	}
	if (gf_rng_below(&rng, 2))
		s->model.overlap_slowdown = 1 + gf_rng_uniform(&rng);
	if (gf_rng_below(&rng, 3) == 0) {
		s->costs[1] = s->costs[0];
		s->costs[1].algorithm = (char *)"butterfly";
		s->costs[1].startup_s *= 0.4;
		s->costs[1].per_byte_s *= 1.7;
		s->network.nallreduce = 2;
	}
	if (gf_rng_below(&rng, 3) == 0)
		s->model.backward_s += 2;
	s->model.update_s = (double)gf_rng_below(&rng, 2);
	if (gf_rng_below(&rng, 3) == 0) {
		/* dearer alone, and better beside others */
		k = s->network.nallreduce++;
		s->costs[k] = s->costs[0];
		s->costs[k].algorithm = (char *)"rhd";
		s->costs[k].startup_s *= 1.1;
		s->costs[k].per_byte_s *= 1 + gf_rng_uniform(&rng) / 5;
		s->entries[2][0].gamma = s->gamma[2][0];
		s->entries[2][0].ngamma = 3;
		s->gamma[2][0][0] = 1;
		s->gamma[2][0][1] = 1 + gf_rng_uniform(&rng) / 5;
		s->gamma[2][0][2] = s->gamma[2][0][1] + 0.2;
		s->costs[k].contention.entries = s->entries[2];
		s->costs[k].contention.nentries = 1;
	}
}

/* The same with several lines per algorithm, most of the time. */
static inline void store_lines(struct problem_store *s, uint64_t seed, size_t ntensors, int lanes)
{
	struct gf_rng rng;
	size_t k;

	store_random(s, seed, ntensors, lanes);
	gf_rng_init(&rng, seed, 1);
	for (k = 0; k < s->network.nallreduce; k++)
		if (gf_rng_below(&rng, 3))
			add_lines(s, k, &rng);
}

#endif
