/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "base/array.h"
#include "base/heap.h"
#include "coll/algorithm.h"
#include "coll/verify.h"
#include "test.h"

static const int ranks_list[] = {1,  2,  3,  4,  5,  6,  7,	8,  9,	10, 11, 12,
				 13, 14, 15, 16, 17, 24, 32, 48, 64, 96};

/* Sizes as a factor and a term of p: 0, 1, p - 1, p, p + 1, odd, large. */
static const struct {
	size_t times, plus;
	int minus;
} sizes[] = {
	{0, 0, 0}, {0, 1, 0}, {1, 0, 1}, {1, 0, 0}, {1, 1, 0}, {0, 37, 0},
	{0, 1001, 0}, {48, 5, 0},
};

/* 0: whole; 1 and 7 cut everything; 100 leaves most whole. */
static const size_t segments[] = {0, 1, 7, 100};

static struct gf_schedule *build_all(const struct gf_algorithm *a,
				     const struct gf_coll_args *args,
				     struct gf_error *err)
{
	struct gf_schedule *s = gf_xcalloc((size_t)args->ranks, sizeof(*s));
	int rank;

	for (rank = 0; rank < args->ranks; rank++)
		if (gf_algorithm_schedule(a, args, rank, &s[rank], err)) {
			while (rank-- > 0)
				gf_schedule_release(&s[rank]);
			free(s);
			return NULL;
		}
	return s;
}

static void free_all(struct gf_schedule *s, int ranks)
{
	int rank;

	for (rank = 0; rank < ranks; rank++)
		gf_schedule_release(&s[rank]);
	free(s);
}

typedef int verify_fn(const struct gf_schedule *, int, struct gf_error *);

static void verify(const struct gf_algorithm *a, struct gf_coll_args *args)
{
	static verify_fn *const verifiers[] = {
		[GF_COLL_WHOLE] = gf_verify_allreduce,
		[GF_COLL_REDUCE_SCATTER] = gf_verify_reduce_scatter,
		[GF_COLL_ALL_GATHER] = gf_verify_all_gather,
	};
	enum gf_coll_half half;

	for (half = GF_COLL_WHOLE; half <= GF_COLL_ALL_GATHER; half++) {
		struct gf_error err = {""};
		struct gf_schedule *s;

		if (half != GF_COLL_WHOLE && !a->owned)
			continue;
		args->half = half;
		s = build_all(a, args, &err);
		EXPECT(s, "%s p %d: %s", a->name, args->ranks, err.text);
		if (!s)
			continue;
		EXPECT(!verifiers[half](s, args->ranks, &err),
		       "%s half %d p %d n %zu segment %zu: %s", a->name,
		       (int)half, args->ranks, args->count_elems,
		       args->segment_elems, err.text);
		free_all(s, args->ranks);
	}
}

static void test_verified(void)
{
	size_t i, p, n, g;

	for (i = 0; gf_algorithms[i]; i++) {
		if (!gf_algorithms[i]->build)
			continue;
		for (p = 0; p < GF_ARRAY_LENGTH(ranks_list); p++)
			for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++)
				for (g = 0; g < GF_ARRAY_LENGTH(segments); g++) {
					struct gf_coll_args args = {
						.ranks = ranks_list[p],
						.elem_bytes = 4,
						.segment_elems = segments[g],
					};

					args.count_elems =
						sizes[n].times *
							(size_t)args.ranks +
						sizes[n].plus -
						(size_t)sizes[n].minus;
					if (args.ranks > 17 && g == 1)
						continue;
					verify(gf_algorithms[i], &args);
				}
	}
}

/* The worked table of ring.c's header. */
static void test_ring_table(void)
{
	static const int sent[4][6] = {
		{3, 2, 1, 0, 3, 2},
		{0, 3, 2, 1, 0, 3},
		{1, 0, 3, 2, 1, 0},
		{2, 1, 0, 3, 2, 1},
	};
	struct gf_coll_args args = {
		.ranks = 4, .count_elems = 4, .elem_bytes = 4};
	struct gf_error err = {""};
	struct gf_schedule *s =
		build_all(gf_algorithm_find("ring"), &args, &err);
	size_t i, k;
	int rank;

	for (rank = 0; rank < 4; rank++)
		for (i = k = 0; i < s[rank].nsteps; i++) {
			const struct gf_step *step = &s[rank].steps[i];

			if (step->op != GF_STEP_SEND)
				continue;
			EXPECT((int)step->range.first == sent[rank][k] &&
				       step->peer == (rank + 1) % 4,
			       "rank %d round %zu: %zu to %d", rank, k,
			       step->range.first, step->peer);
			k++;
		}
	free_all(s, 4);
}

int main(void)
{
	test_verified();
	test_ring_table();
	return TEST_END();
}
