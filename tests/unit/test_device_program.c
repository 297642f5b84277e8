/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "collectives/verify.h"
#include "cuda/lanes/program.h"

/*
 * The work enqueued on a GPU's stream, turned back into schedules, is proved to be an all-reduce,
 * or half of one. The cases are every algorithm, by step and by stage, in every codec; any number
 * of ranks; sizes with and without a rest, and larger than an int.
 */
static const size_t sizes[] = {0, 1, 2, 3, 5, 8, 12, 17, 64, 1001};
static const int many[] = {17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 128};
static const size_t large[] = {1000003, 5000000017};
static const char *const names[] = {NULL, "f16", "bf16", "trunc16", "q8", "fp8", "fp4"};

static const struct {
	int ranks;
	size_t n;
	int factors[4];
} decompositions[] = {
	{1, 1, {1}},    {2, 1, {2}},       {4, 2, {2, 2}},     {6, 2, {3, 2}},
	{6, 2, {2, 3}}, {8, 3, {2, 2, 2}}, {9, 2, {3, 3}},     {12, 3, {3, 2, 2}},
	{5, 2, {1, 5}}, {16, 2, {4, 4}},   {12, 3, {2, 1, 6}},
};

static size_t end_of(const struct gf_lane_program *p, const struct gf_lane_step *step)
{
	return step->wire_at + gf_lane_program_wire_bytes(p, step->range.count);
}

/* The verifier sees elements; headers of blocks are besides. So: what goes together lies apart, to
 * the byte, but for one code that goes to many. */
static void check_wire(const struct gf_lane_program *p)
{
	size_t group = 0, i, k;

	for (i = 0; i < p->nsteps; i++) {
		const struct gf_lane_step *a = &p->steps[i], *b;

		if (a->op == GF_LANE_GROUP)
			group = i;
		if ((a->op != GF_LANE_SEND && a->op != GF_LANE_RECV) || !a->on_wire)
			continue;
		EXPECT(end_of(p, a) <= p->wire_bytes, "%zu of %zu bytes", end_of(p, a),
		       p->wire_bytes);
		for (k = group; k < i; k++) {
			b = &p->steps[k];
			if (b->on_wire && end_of(p, b) > a->wire_at && end_of(p, a) > b->wire_at)
				EXPECT(a->op == GF_LANE_SEND && b->op == GF_LANE_SEND &&
					       a->wire_at == b->wire_at &&
					       a->range.first == b->range.first,
				       "steps %zu and %zu share the wire", k, i);
		}
	}
}

/* Transfers begin at whole grains in memory, but for what is shorter. */
static void check_grains(const struct gf_lane_program *p)
{
	const size_t grain = GF_LANE_GRAIN_ELEMS * sizeof(float);
	size_t i, at;

	for (i = 0; i < p->nsteps; i++) {
		const struct gf_lane_step *t = &p->steps[i];

		if (t->op != GF_LANE_SEND && t->op != GF_LANE_RECV)
			continue;
		at = t->on_wire ? t->wire_at : t->range.first * sizeof(float);
		if (!t->on_wire && t->range.buffer == GF_BUFFER_DATA)
			at += p->skew_elems * sizeof(float);
		EXPECT(at % grain == 0 || t->range.count < GF_LANE_GRAIN_ELEMS,
		       "step %zu: %zu elements at byte %zu", i, t->range.count, at);
	}
}

static int verify(const struct gf_schedule *s, const struct gf_coll_args *args,
		  struct gf_error *err)
{
	return gf_verify(s, args->ranks, args->half, err);
}

static void prove_one(const struct gf_algorithm *a, const struct gf_coll_args *args,
		      const char *name)
{
	const struct gf_codec *codec = name ? gf_codec_find(name) : NULL;
	const size_t p = (size_t)args->ranks;
	struct gf_lane_program *programs = gf_xcalloc(p, sizeof(*programs));
	struct gf_schedule *s = gf_xcalloc(p, sizeof(*s));
	struct gf_error err = {""};
	int rank, rc = 0;

	for (rank = 0; rank < args->ranks; rank++) {
		rc = gf_lane_program_new(a, args, rank, codec, &programs[rank], &err);
		EXPECT(!rc, "%s: %s", a->name, err.text);
		if (rc)
			break;
		check_wire(&programs[rank]);
		check_grains(&programs[rank]);
		gf_lane_program_schedule(&programs[rank], &s[rank]);
	}
	rc = rc ? rc : verify(s, args, &err);
	EXPECT(!rc, "%s, %d ranks, %d servers, %zu elements at %zu, %zu factors, half %d, %s: %s",
	       a->name, args->ranks, args->servers, args->count_elems, args->skew_elems,
	       args->nfactors, (int)args->half, name ? name : "f32", err.text);
	for (rank = 0; rank < args->ranks; rank++) {
		gf_lane_program_release(&programs[rank]);
		gf_schedule_release(&s[rank]);
	}
	free(programs);
	free(s);
}

/* Values that go as they are also from the middle of a grain. */
static void prove(const struct gf_algorithm *a, struct gf_coll_args *args, const char *name)
{
	prove_one(a, args, name);
	if (name)
		return;
	args->skew_elems = 13;
	prove_one(a, args, name);
	args->skew_elems = 0;
}

static bool applies(const struct gf_algorithm *a, const struct gf_coll_args *args, size_t codec)
{
	return (a->build || !codec) && !(a->applicable && a->applicable(args, NULL));
}

static void test_algorithms(void)
{
	struct gf_coll_args args = {.elem_bytes = 4, .segment_elems = 7};
	size_t a, n, c;

	for (a = 0; gf_algorithms[a]; a++)
		for (c = 0; c < GF_ARRAY_LENGTH(names); c++)
			for (args.ranks = 1; args.ranks <= 16; args.ranks++)
				for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
					args.count_elems = sizes[n];
					if (!test_tries((size_t)args.ranks + n + c, 4))
						continue;
					if (applies(gf_algorithms[a], &args, c))
						prove(gf_algorithms[a], &args, names[c]);
				}
}

/* Of these f16 stands for codecs without blocks. */
static void test_many_ranks(void)
{
	struct gf_coll_args args = {.elem_bytes = 4};
	size_t a, r, n, c;

	for (a = 0; gf_algorithms[a]; a++)
		for (r = 0; r < GF_ARRAY_LENGTH(many); r++)
			for (n = 0; n < GF_ARRAY_LENGTH(large); n++)
				for (c = 0; c < 2; c++) {
					args.ranks = many[r];
					args.count_elems = large[n];
					if (test_tries(r + n + c, 2) &&
					    applies(gf_algorithms[a], &args, c))
						prove(gf_algorithms[a], &args, names[c]);
				}
}

static void test_halves(void)
{
	struct gf_coll_args args = {.elem_bytes = 4};
	size_t a, n, c;
	int half;

	for (a = 0; gf_algorithms[a]; a++)
		for (half = GF_COLL_REDUCE_SCATTER; half <= GF_COLL_ALL_GATHER; half++)
			for (args.ranks = 1; args.ranks <= 12; args.ranks++)
				for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++)
					for (c = 0; c < GF_ARRAY_LENGTH(names); c += 2) {
						args.half = half;
						args.count_elems = sizes[n];
						if (test_tries((size_t)args.ranks + n + c / 2, 2) &&
						    gf_algorithms[a]->owned &&
						    applies(gf_algorithms[a], &args, c))
							prove(gf_algorithms[a], &args, names[c]);
					}
}

/* --- scratch --------------------------------------------------------------- */

/* Everybody's message to everybody: peer k's lies in copy k of scratch, after `slip` elements. The
 * sums begin with rank 0's. */
static size_t slip;

static void build_in_scratch(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	const size_t n = args->count_elems, p = (size_t)args->ranks;
	struct gf_range copy = gf_schedule_scratch(s, p * n + slip);
	int peer;

	copy.count = n;
	for (peer = 0; peer < args->ranks; peer++) {
		copy.first = (size_t)peer * n + slip;
		if (peer == rank) {
			gf_schedule_copy(s, copy, gf_data(0, n));
			continue;
		}
		gf_schedule_send(s, peer, gf_data(0, n));
		gf_schedule_recv(s, peer, copy);
	}
	for (peer = 0; peer < args->ranks; peer++) {
		copy.first = (size_t)peer * n + slip;
		if (peer)
			gf_schedule_reduce(s, gf_data(0, n), copy);
		else
			gf_schedule_copy(s, gf_data(0, n), copy);
	}
}

static void test_scratch(void)
{
	const struct gf_algorithm fake = {.name = "fake", .build = build_in_scratch};
	struct gf_coll_args args = {.elem_bytes = 4};
	struct gf_lane_program program;
	struct gf_error err = {""};
	size_t n;

	for (args.ranks = 1; args.ranks <= 5; args.ranks++)
		for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
			args.count_elems = sizes[n];
			prove(&fake, &args, NULL);
		}
	slip = 1;
	args.ranks = 3;
	args.count_elems = 1000 * GF_LANE_GRAIN_ELEMS;
	EXPECT(gf_lane_program_new(&fake, &args, 0, NULL, &program, &err) == -EINVAL, "slip");
	EXPECT_TEXT(err.text, "fake between GPUs: want ranges of scratch in one copy of the "
			      "message each, got one in several");
	slip = 0;
}

/* Workers and up to three servers, which contribute nothing. */
static void test_servers(void)
{
	struct gf_coll_args args = {.elem_bytes = 4};
	size_t n, c;

	for (args.servers = 1; args.servers <= 3; args.servers++)
		for (args.ranks = args.servers + 1; args.ranks <= 9; args.ranks++)
			for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++)
				for (c = 0; c < GF_ARRAY_LENGTH(names); c++) {
					args.count_elems = sizes[n];
					prove(gf_algorithm_find("ps"), &args, names[c]);
				}
}

/* Sparse sets: each rank's to everybody, or merged along the tree as if they were added. */
static void prove_sets(const struct gf_algorithm *a, int ranks)
{
	static const struct gf_lane_sets form = {.size_bytes = 512};
	const bool gathers = a == gf_sparse_find("gather");
	const struct gf_coll_args args = {.ranks = ranks,
					  .count_elems = gathers ? (size_t)ranks : 1,
					  .elem_bytes = form.size_bytes,
					  .half = gathers ? GF_COLL_ALL_GATHER : GF_COLL_WHOLE};
	struct gf_schedule *s = gf_xcalloc((size_t)ranks, sizeof(*s));
	struct gf_error err = {""};
	int rank, rc;

	for (rank = 0; rank < ranks; rank++) {
		struct gf_lane_program p;
		struct gf_schedule own;

		EXPECT(!gf_algorithm_schedule(a, &args, rank, &own, &err), "%s", err.text);
		gf_lane_program_of_sets(&own, &form, &p);
		gf_lane_program_schedule(&p, &s[rank]);
		gf_lane_program_release(&p);
		gf_schedule_release(&own);
	}
	rc = verify(s, &args, &err);
	EXPECT(!rc, "%s, %d ranks: %s", a->name, ranks, err.text);
	for (rank = 0; rank < ranks; rank++)
		gf_schedule_release(&s[rank]);
	free(s);
}

static void test_sets(void)
{
	size_t a, r;
	int ranks;

	for (a = 0; gf_sparse_algorithms[a]; a++) {
		for (ranks = 1; ranks <= 16; ranks++)
			prove_sets(gf_sparse_algorithms[a], ranks);
		for (r = 0; r < GF_ARRAY_LENGTH(many); r++)
			prove_sets(gf_sparse_algorithms[a], many[r]);
	}
}

static void test_stages(void)
{
	const struct gf_algorithm *blueconnect = gf_algorithm_find("blueconnect");
	const struct gf_algorithm *hierarchical = gf_algorithm_find("hierarchical");
	size_t d, n, c;

	for (d = 0; d < GF_ARRAY_LENGTH(decompositions); d++)
		for (n = 0; n < GF_ARRAY_LENGTH(sizes) + GF_ARRAY_LENGTH(large); n++)
			for (c = 0; c < GF_ARRAY_LENGTH(names); c++) {
				const size_t few = GF_ARRAY_LENGTH(sizes);
				struct gf_coll_args args = {
					.ranks = decompositions[d].ranks,
					.count_elems = n < few ? sizes[n] : large[n - few],
					.elem_bytes = 4,
					.factors = decompositions[d].factors,
					.nfactors = decompositions[d].n,
				};

				prove(blueconnect, &args, names[c]);
				prove(hierarchical, &args, names[c]);
			}
}

static size_t count_ops(const struct gf_lane_program *p, enum gf_lane_op op)
{
	size_t n = 0, i;

	for (i = 0; i < p->nsteps; i++)
		n += p->steps[i].op == op;
	return n;
}

/* Kernels of rank 2 of 4: what is gathered is encoded by its owner alone, and decoded once by
 * everybody. */
static const struct {
	const char *algorithm;
	size_t encode, decode, add, groups;
} kernels[] = {
	{"ring", 4, 7, 3, 6},
	{"ps", 4, 7, 3, 2},
	{"direct", 4, 7, 3, 2},
	/* 2 merges 3's, sends to 0, hears from 0 and tells 3 */
	{"tree", 1, 2, 1, 3},
};

static void test_encoded_once(void)
{
	struct gf_coll_args args = {.ranks = 4, .count_elems = 1000, .elem_bytes = 4};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(kernels); i++) {
		struct gf_lane_program p;

		EXPECT(!gf_lane_program_new(gf_algorithm_find(kernels[i].algorithm), &args, 2,
					    gf_codec_find("q8"), &p, NULL),
		       "made");
		EXPECT(count_ops(&p, GF_LANE_ENCODE) == kernels[i].encode &&
			       count_ops(&p, GF_LANE_DECODE) == kernels[i].decode &&
			       count_ops(&p, GF_LANE_REDUCE_WIRE) == kernels[i].add &&
			       count_ops(&p, GF_LANE_GROUP) == kernels[i].groups,
		       "%s: %zu encoded, %zu decoded, %zu added, %zu groups", kernels[i].algorithm,
		       count_ops(&p, GF_LANE_ENCODE), count_ops(&p, GF_LANE_DECODE),
		       count_ops(&p, GF_LANE_REDUCE_WIRE), count_ops(&p, GF_LANE_GROUP));
		gf_lane_program_release(&p);
	}
}

/* 12 = 3 x 2 x 2 ranks, 25 elements, fewer than grains for all: what rank 7 = (1, 0, 1)
 * enqueues. */
static void test_stage_program(void)
{
	static const int factors[] = {3, 2, 2};
	static const struct {
		enum gf_lane_op op;
		size_t first, count;
		int team_first, team_stride, team_size;
	} want[] = {
		{GF_LANE_REDUCE_SCATTER, 0, 24, 6, 1, 3}, {GF_LANE_REDUCE_SCATTER, 8, 8, 7, 3, 2},
		{GF_LANE_REDUCE_SCATTER, 8, 4, 1, 6, 2},  {GF_LANE_ALL_GATHER, 8, 4, 1, 6, 2},
		{GF_LANE_ALL_GATHER, 8, 8, 7, 3, 2},      {GF_LANE_ALL_GATHER, 0, 24, 6, 1, 3},
		{GF_LANE_ALL_REDUCE, 24, 1, 0, 0, 0},
	};
	struct gf_coll_args args = {
		.ranks = 12, .count_elems = 25, .elem_bytes = 4, .factors = factors, .nfactors = 3};
	struct gf_lane_program p;
	size_t i;

	EXPECT(!gf_lane_program_new(gf_algorithm_find("blueconnect"), &args, 7, NULL, &p, NULL),
	       "made");
	EXPECT(p.nsteps == GF_ARRAY_LENGTH(want), "%zu steps", p.nsteps);
	for (i = 0; i < p.nsteps && i < GF_ARRAY_LENGTH(want); i++) {
		const struct gf_lane_step *s = &p.steps[i];
		const struct gf_group *team = &p.teams[s->team];

		EXPECT(s->op == want[i].op && s->range.first == want[i].first &&
			       s->range.count == want[i].count,
		       "step %zu: op %d, %zu at %zu", i, (int)s->op, s->range.count,
		       s->range.first);
		if (want[i].team_size)
			EXPECT(team->first == want[i].team_first &&
				       team->stride == want[i].team_stride &&
				       team->size == want[i].team_size,
			       "step %zu: team %d + %d x %d", i, team->first, team->stride,
			       team->size);
	}
	gf_lane_program_release(&p);
}

/* Equal parts of whole grains, and what is left at either end. */
static void test_stage_grains(void)
{
	static const int factors[] = {2, 2};
	static const size_t parts[][2] = {{0, 19}, {787, 94}};
	struct gf_coll_args args = {.ranks = 4,
				    .count_elems = 881,
				    .elem_bytes = 4,
				    .skew_elems = 13,
				    .factors = factors,
				    .nfactors = 2};
	struct gf_lane_program p;
	size_t i;

	EXPECT(!gf_lane_program_new(gf_algorithm_find("blueconnect"), &args, 3, NULL, &p, NULL),
	       "made");
	EXPECT(p.nsteps == 6 && p.steps[0].range.first == 19 && p.steps[0].range.count == 768,
	       "%zu steps, from %zu elements at %zu", p.nsteps, p.steps[0].range.count,
	       p.steps[0].range.first);
	for (i = 0; i < 2 && p.nsteps == 6; i++)
		EXPECT(p.steps[4 + i].op == GF_LANE_ALL_REDUCE &&
			       p.steps[4 + i].range.first == parts[i][0] &&
			       p.steps[4 + i].range.count == parts[i][1],
		       "rest %zu: %zu at %zu", i, p.steps[4 + i].range.count,
		       p.steps[4 + i].range.first);
	gf_lane_program_release(&p);
}

static const struct {
	const char *algorithm;
	int ranks, factors[2];
	const char *peers;
} partners[] = {
	{"ring", 5, {0}, "ranks 1, 3"},
	{"ring", 3, {0}, "ranks 0, 1"},
	{"tree", 3, {0}, "rank 0"},
	{"library", 4, {0}, "ranks 0, 1, 3"},
	{"blueconnect", 6, {3, 2}, "ranks 0, 1, 3, 4, 5"},
	{"ps", 20, {0}, "ranks 0, 1, 3, 4, 5, 6, 7, 8 and 11 more"},
};

/* Of rank 2. */
static void test_peers(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(partners); i++) {
		struct gf_coll_args args = {
			.ranks = partners[i].ranks,
			.count_elems = 1001,
			.elem_bytes = 4,
			.factors = partners[i].factors[0] ? partners[i].factors : NULL,
			.nfactors = partners[i].factors[0] ? 2 : 0,
		};
		struct gf_lane_program p;
		char *peers;

		EXPECT(!gf_lane_program_new(gf_algorithm_find(partners[i].algorithm), &args, 2,
					    NULL, &p, NULL),
		       "made");
		peers = gf_lane_program_peers(&p);
		EXPECT_TEXT(peers, partners[i].peers);
		free(peers);
		gf_lane_program_release(&p);
	}
}

/* One rank sends another part than it should. */
static void another_part(struct gf_lane_program *p)
{
	if (p->rank == 3)
		p->steps[1].range.first ^= 2;
}

/* Everybody's first group has the second receive, too, whose sender sends it in its own second
 * group: no first group ever ends. */
static void receive_early(struct gf_lane_program *p)
{
	struct gf_lane_step early = p->steps[7];

	EXPECT(early.op == GF_LANE_RECV && p->steps[2].op == GF_LANE_RECV, "ring's second group");
	memmove(&p->steps[4], &p->steps[3], 4 * sizeof(early));
	early.wire_at = p->wire_bytes;
	p->wire_bytes *= 2;
	p->steps[3] = early;
}

/* The second group reads what the first has not been added to yet. */
static void reduce_late(struct gf_lane_program *p)
{
	struct gf_lane_step late = p->steps[4];

	EXPECT(late.op == GF_LANE_REDUCE_WIRE, "ring's first reduction");
	memmove(&p->steps[4], &p->steps[5], 4 * sizeof(late));
	p->steps[8] = late;
}

/* The owner's copy is not what the others decode. */
static void keep_own(struct gf_lane_program *p)
{
	size_t i, last = 0;

	for (i = 0; i < p->nsteps; i++)
		if (p->steps[i].op == GF_LANE_ENCODE)
			last = i + 1;
	EXPECT(p->steps[last].op == GF_LANE_DECODE, "its own copy");
	memmove(&p->steps[last], &p->steps[last + 1],
		(--p->nsteps - last) * sizeof(p->steps[last]));
}

/* A place is used again while what lies there has yet to be sent on. */
static void land_on_it(struct gf_lane_program *p)
{
	size_t i, last = 0;

	for (i = 0; i < p->nsteps; i++)
		if (p->steps[i].op == GF_LANE_RECV)
			last = i;
	p->steps[last].wire_at = p->steps[last - 1].wire_at;
	p->steps[last + 2].wire_at = p->steps[last - 1].wire_at;
}

static const struct {
	void (*spoil)(struct gf_lane_program *p);
	const char *codec, *says;
} faults[] = {
	{another_part, NULL, "element"},
	{receive_early, NULL, "waits for ever"},
	{reduce_late, NULL, "element"},
	{keep_own, "f16", "in another order"},
	{land_on_it, "f16", "both touch scratch"},
};

/* The proof must fail where a program is wrong. */
static void test_refusals(void)
{
	struct gf_coll_args args = {
		.ranks = 4, .count_elems = 8 * GF_LANE_GRAIN_ELEMS, .elem_bytes = 4};
	struct gf_lane_program p[4];
	struct gf_schedule s[4];
	size_t fault;
	int rank;

	for (fault = 0; fault < GF_ARRAY_LENGTH(faults); fault++) {
		const char *codec = faults[fault].codec;
		struct gf_error err = {""};

		for (rank = 0; rank < 4; rank++) {
			EXPECT(!gf_lane_program_new(gf_algorithm_find("ring"), &args, rank,
						    codec ? gf_codec_find(codec) : NULL, &p[rank],
						    NULL),
			       "made");
			faults[fault].spoil(&p[rank]);
			gf_lane_program_schedule(&p[rank], &s[rank]);
		}
		EXPECT(gf_verify(s, 4, GF_COLL_WHOLE, &err) == -EINVAL &&
			       strstr(err.text, faults[fault].says),
		       "fault %zu: %s", fault, err.text);
		for (rank = 0; rank < 4; rank++) {
			gf_lane_program_release(&p[rank]);
			gf_schedule_release(&s[rank]);
		}
	}
}

int main(void)
{
	test_algorithms();
	test_many_ranks();
	test_halves();
	test_scratch();
	test_servers();
	test_sets();
	test_stages();
	test_stage_program();
	test_stage_grains();
	test_encoded_once();
	test_peers();
	test_refusals();
	return TEST_END();
}
