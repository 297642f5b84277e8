/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>

#include "base/array.h"
#include "base/heap.h"
#include "coll/algorithm.h"
#include "coll/verify.h"
#include "comm/device_program.h"

/*
 * What is enqueued on a GPU's stream, turned back into schedules, is proved to
 * be an all-reduce: every algorithm, by step and by stage, any number of ranks,
 * sizes with and without a rest.
 */
static const size_t sizes[] = {0, 1, 2, 3, 5, 8, 12, 17, 64, 1001};

static const struct {
	int ranks;
	size_t n;
	int factors[4];
} decompositions[] = {
	{1, 1, {1}},     {2, 1, {2}},        {4, 2, {2, 2}},
	{6, 2, {3, 2}},  {6, 2, {2, 3}},     {8, 3, {2, 2, 2}},
	{9, 2, {3, 3}},  {12, 3, {3, 2, 2}}, {5, 2, {1, 5}},
	{16, 2, {4, 4}}, {12, 3, {2, 1, 6}},
};

static void prove(const struct gf_algorithm *a, struct gf_coll_args *args)
{
	const size_t p = (size_t)args->ranks;
	struct gf_device_program *programs = gf_xcalloc(p, sizeof(*programs));
	struct gf_schedule *s = gf_xcalloc(p, sizeof(*s));
	struct gf_error err = {""};
	int rank, rc = 0;

	for (rank = 0; rank < args->ranks; rank++) {
		rc = gf_device_program_new(a, args, rank, NULL, &programs[rank],
					   &err);
		EXPECT(!rc, "%s: %s", a->name, err.text);
		if (rc)
			break;
		gf_device_program_schedule(&programs[rank], &s[rank]);
	}
	rc = rc ? rc : gf_verify_allreduce(s, args->ranks, &err);
	EXPECT(!rc, "%s, %d ranks, %zu elements, %zu factors: %s", a->name,
	       args->ranks, args->count_elems, args->nfactors, err.text);
	for (rank = 0; rank < args->ranks; rank++) {
		gf_device_program_release(&programs[rank]);
		gf_schedule_release(&s[rank]);
	}
	free(programs);
	free(s);
}

static void test_algorithms(void)
{
	struct gf_coll_args args = {.elem_bytes = 4, .segment_elems = 7};
	size_t a, n;

	for (a = 0; gf_algorithms[a]; a++)
		for (args.ranks = 1; args.ranks <= 16; args.ranks++)
			for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
				args.count_elems = sizes[n];
				if (gf_algorithms[a]->applicable &&
				    gf_algorithms[a]->applicable(&args, NULL))
					continue;
				prove(gf_algorithms[a], &args);
			}
}

static void test_stages(void)
{
	const struct gf_algorithm *blueconnect =
		gf_algorithm_find("blueconnect");
	const struct gf_algorithm *hierarchical =
		gf_algorithm_find("hierarchical");
	size_t d, n;

	for (d = 0; d < GF_ARRAY_LENGTH(decompositions); d++)
		for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
			struct gf_coll_args args = {
				.ranks = decompositions[d].ranks,
				.count_elems = sizes[n],
				.elem_bytes = 4,
				.factors = decompositions[d].factors,
				.nfactors = decompositions[d].n,
			};

			prove(blueconnect, &args);
			prove(hierarchical, &args);
		}
}

/* 12 = 3 x 2 x 2 ranks, 25 elements: what rank 7 = (1, 0, 1) enqueues. */
static void test_stage_program(void)
{
	static const int factors[] = {3, 2, 2};
	static const struct {
		enum gf_device_op op;
		size_t first, count;
		int team_first, team_stride, team_size;
	} want[] = {
		{GF_DEVICE_REDUCE_SCATTER, 0, 24, 6, 1, 3},
		{GF_DEVICE_REDUCE_SCATTER, 8, 8, 7, 3, 2},
		{GF_DEVICE_REDUCE_SCATTER, 8, 4, 1, 6, 2},
		{GF_DEVICE_ALL_GATHER, 8, 4, 1, 6, 2},
		{GF_DEVICE_ALL_GATHER, 8, 8, 7, 3, 2},
		{GF_DEVICE_ALL_GATHER, 0, 24, 6, 1, 3},
		{GF_DEVICE_ALL_REDUCE, 24, 1, 0, 0, 0},
	};
	struct gf_coll_args args = {.ranks = 12,
				    .count_elems = 25,
				    .elem_bytes = 4,
				    .factors = factors,
				    .nfactors = 3};
	struct gf_device_program p;
	size_t i;

	EXPECT(!gf_device_program_new(gf_algorithm_find("blueconnect"), &args,
				      7, NULL, &p, NULL),
	       "made");
	EXPECT(p.nsteps == GF_ARRAY_LENGTH(want), "%zu steps", p.nsteps);
	for (i = 0; i < p.nsteps && i < GF_ARRAY_LENGTH(want); i++) {
		const struct gf_device_step *s = &p.steps[i];
		const struct gf_group *team = &p.teams[s->team];

		EXPECT(s->op == want[i].op && s->range.first == want[i].first &&
			       s->range.count == want[i].count,
		       "step %zu: op %d, %zu at %zu", i, (int)s->op,
		       s->range.count, s->range.first);
		if (want[i].team_size)
			EXPECT(team->first == want[i].team_first &&
				       team->stride == want[i].team_stride &&
				       team->size == want[i].team_size,
			       "step %zu: team %d + %d x %d", i, team->first,
			       team->stride, team->size);
	}
	gf_device_program_release(&p);
}

/* One rank sends another part than it should. */
static void another_part(struct gf_device_program *p)
{
	if (p->rank == 3)
		p->steps[1].range.first ^= 2;
}

/* Everybody's first group has the second receive, too, whose sender sends it
 * in its own second group: no first group ever ends. */
static void receive_early(struct gf_device_program *p)
{
	struct gf_device_step early = p->steps[7];

	EXPECT(early.op == GF_DEVICE_RECV && p->steps[2].op == GF_DEVICE_RECV,
	       "ring's second group");
	memmove(&p->steps[4], &p->steps[3], 4 * sizeof(early));
	early.wire_at = p->wire_bytes;
	p->wire_bytes *= 2;
	p->steps[3] = early;
}

/* The second group reads what the first has not been added to yet. */
static void reduce_late(struct gf_device_program *p)
{
	struct gf_device_step late = p->steps[4];

	EXPECT(late.op == GF_DEVICE_REDUCE_WIRE, "ring's first reduction");
	memmove(&p->steps[4], &p->steps[5], 4 * sizeof(late));
	p->steps[8] = late;
}

static const struct {
	void (*spoil)(struct gf_device_program *p);
	const char *says;
} faults[] = {
	{another_part, "element"},
	{receive_early, "waits for ever"},
	{reduce_late, "element"},
};

/* The proof must fail where a program is wrong. */
static void test_refusals(void)
{
	struct gf_coll_args args = {
		.ranks = 4, .count_elems = 8, .elem_bytes = 4};
	struct gf_device_program p[4];
	struct gf_schedule s[4];
	size_t fault;
	int rank;

	for (fault = 0; fault < GF_ARRAY_LENGTH(faults); fault++) {
		struct gf_error err = {""};

		for (rank = 0; rank < 4; rank++) {
			EXPECT(!gf_device_program_new(gf_algorithm_find("ring"),
						      &args, rank, NULL,
						      &p[rank], NULL),
			       "made");
			faults[fault].spoil(&p[rank]);
			gf_device_program_schedule(&p[rank], &s[rank]);
		}
		EXPECT(gf_verify_allreduce(s, 4, &err) == -EINVAL &&
			       strstr(err.text, faults[fault].says),
		       "fault %zu: %s", fault, err.text);
		for (rank = 0; rank < 4; rank++) {
			gf_device_program_release(&p[rank]);
			gf_schedule_release(&s[rank]);
		}
	}
}

int main(void)
{
	test_algorithms();
	test_stages();
	test_stage_program();
	test_refusals();
	return TEST_END();
}
