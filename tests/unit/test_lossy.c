/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules under lossy codecs: proved with symbols, and run with numbers by the plainest executor
 * there can be: program order, sends into a queue.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/heap.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "collectives/codecs/encode.h"
#include "collectives/verify.h"
#include "documents/algorithm_traits.h"
#include "gf_kernels.h"
#include "test.h"

#define MAX_RANKS 17
#define MAX_ELEMS 3000

/* Against values printed with seven digits. */
static const double printed = 5e-7;

/* What a receiver decodes. */
typedef void round_fn(float *x, size_t n);

static void keep(float *x, size_t n)
{
	(void)x;
	(void)n;
}

static void trunc16(float *x, size_t n)
{
	uint16_t wire[MAX_ELEMS];

	gf_kernels()->codecs[GF_CODEC_TRUNC16].encode(wire, x, n, 0);
	gf_kernels()->codecs[GF_CODEC_BF16].decode(x, wire, n, 0);
}

static void q8(float *x, size_t n)
{
	uint8_t wire[2 * MAX_ELEMS + 8];

	gf_kernels()->codecs[GF_CODEC_Q8].encode(wire, x, n, n);
	gf_kernels()->codecs[GF_CODEC_Q8].decode(x, wire, n, n);
}

/* Blocks of their own length, as on the wire. */
static void fp8(float *x, size_t n)
{
	gf_codec_round(gf_codec_find("fp8"), x, n);
}

static void fp4(float *x, size_t n)
{
	gf_codec_round(gf_codec_find("fp4"), x, n);
}

struct letter {
	int from, to;
	uint32_t match;
	size_t count;
	float *data;
};

struct rig {
	struct gf_schedule s[MAX_RANKS];
	int ranks;
	float *data[MAX_RANKS], *scratch[MAX_RANKS];
	size_t next[MAX_RANKS]; /* step */
	struct letter *letters;
	size_t nletters, capacity;
	round_fn *round;
};

static float *place(struct rig *r, int rank, struct gf_range range)
{
	return (range.buffer == GF_BUFFER_DATA ? r->data[rank] : r->scratch[rank]) + range.first;
}

static void post(struct rig *r, int rank, const struct gf_step *step)
{
	float *from = place(r, rank, step->range);

	r->round(from, step->range.count);
	*gf_array_push(&r->letters, &r->nletters, &r->capacity) =
		(struct letter){rank, step->peer, step->match, step->range.count,
				gf_xmemdup(from, step->range.count * sizeof(float))};
}

static bool deliver(struct rig *r, int rank, const struct gf_step *step)
{
	float *to = place(r, rank, step->range);
	size_t i, k;

	for (i = 0; i < r->nletters; i++) {
		struct letter *l = &r->letters[i];

		if (!l->data || l->from != step->peer || l->to != rank || l->match != step->match)
			continue;
		for (k = 0; k < l->count; k++)
			to[k] = step->op == GF_STEP_RECV ? l->data[k] : to[k] + l->data[k];
		free(l->data);
		*l = r->letters[--r->nletters];
		return true;
	}
	return false;
}

static bool take(struct rig *r, int rank)
{
	const struct gf_step *step = &r->s[rank].steps[r->next[rank]];
	float *to = place(r, rank, step->range);
	size_t k;

	switch (step->op) {
	case GF_STEP_SEND:
		post(r, rank, step);
		break;
	case GF_STEP_RECV:
	case GF_STEP_RECV_REDUCE:
		if (!deliver(r, rank, step))
			return false;
		break;
	case GF_STEP_COPY:
	case GF_STEP_REDUCE:
		for (k = 0; k < step->range.count; k++) {
			float from = place(r, rank, step->from)[k];

			to[k] = step->op == GF_STEP_COPY ? from : to[k] + from;
		}
		break;
	case GF_STEP_ROUND:
		r->round(to, step->range.count);
		break;
	case GF_STEP_REDUCE_SCATTER:
	case GF_STEP_ALL_GATHER:
		return false; /* no codec goes with a call */
	}
	r->next[rank]++;
	return true;
}

/* 0 when all ranks came to the end. */
static int run(const char *algorithm, struct gf_coll_args *args, struct rig *r)
{
	bool moved = true;
	int rank, left = 0;

	r->ranks = args->ranks;
	r->nletters = 0;
	for (rank = 0; rank < args->ranks; rank++) {
		if (gf_algorithm_schedule(gf_algorithm_find(algorithm), args, rank, &r->s[rank],
					  NULL))
			abort();
		r->next[rank] = 0;
		r->scratch[rank] = gf_xcalloc(r->s[rank].scratch_elems + 1, sizeof(float));
	}
	while (moved)
		for (rank = 0, moved = false; rank < args->ranks; rank++)
			while (r->next[rank] < r->s[rank].nsteps && take(r, rank))
				moved = true;
	for (rank = 0; rank < args->ranks; rank++) {
		left += r->next[rank] < r->s[rank].nsteps;
		gf_schedule_release(&r->s[rank]);
		free(r->scratch[rank]);
	}
	free(r->letters);
	r->letters = NULL;
	r->capacity = 0;
	return left;
}

static void f16(float *x, size_t n)
{
	uint16_t wire[MAX_ELEMS];

	gf_kernels()->codecs[GF_CODEC_F16].encode(wire, x, n, 0);
	gf_kernels()->codecs[GF_CODEC_F16].decode(x, wire, n, 0);
}

static void bf16(float *x, size_t n)
{
	uint16_t wire[MAX_ELEMS];

	gf_kernels()->codecs[GF_CODEC_BF16].encode(wire, x, n, 0);
	gf_kernels()->codecs[GF_CODEC_BF16].decode(x, wire, n, 0);
}

/* What all of it rests on: a decoded message, encoded again, decodes to the same. For q8 this means
 * m/127*127/127 = m/127 in floats for every largest magnitude m. The test takes every 251st of the
 * 2^23 in a binade (all were tried once), and some near the smallest. */
static void test_again(void)
{
	static const struct {
		const char *what;
		round_fn *round;
	} cases[] = {{"f16", f16}, {"bf16", bf16}, {"trunc16", trunc16},
		     {"q8", q8},   {"fp8", fp8},   {"fp4", fp4}};
	static const double scales[] = {1, 3e-36};
	size_t i, k, m;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (k = 0; k < GF_ARRAY_LENGTH(scales); k++)
			for (m = 0; m < 1 << 23; m += 251) {
				double largest = scales[k] * (1 + (double)m / (1 << 23));
				float once[4] = {(float)largest, (float)(-largest / 3),
						 (float)(largest / 57), 0};
				float again[4];

				cases[i].round(once, 4);
				memcpy(again, once, sizeof(again));
				cases[i].round(again, 4);
				if (!memcmp(once, again, sizeof(once)))
					continue;
				EXPECT(0, "%s of %.9g", cases[i].what, largest);
				break;
			}
}

/* Where the block of element k of 1000 ends. */
static size_t last_of(const struct gf_codec *c, size_t k)
{
	size_t end = (k / c->block_elems + 1) * c->block_elems;

	return (end < 1000 ? end : 1000) - 1;
}

/* The stated error of each codec holds, and is met within a tenth. */
static void test_errors(void)
{
	static const struct {
		const char *codec;
		round_fn *round;
	} cases[] = {{"f32", keep}, {"f16", f16}, {"bf16", bf16}, {"trunc16", trunc16},
		     {"q8", q8},    {"fp8", fp8}, {"fp4", fp4}};
	size_t i, k, m;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_codec *c = gf_codec_find(cases[i].codec);
		double most = 0;

		for (m = 0; m < 100; m++) {
			float x[1000], y[1000];

			for (k = 0; k < 1000; k++)
				y[k] = x[k] = (float)(10 + m * 1000 + k) / 50000;
			cases[i].round(y, 1000);
			for (k = 0; k < 1000; k++)
				most = fmax(most,
					    fabs((double)y[k] - x[k]) /
						    (c->block_elems ? x[last_of(c, k)] : x[k]));
		}
		/* rounding of the scale itself: an f32's */
		EXPECT(most <= c->error * (1 + 1e-4), "%s: %g, said %g", c->name, most, c->error);
		EXPECT(most >= 0.9 * c->error, "%s: %g, said %g", c->name, most, c->error);
	}
}

/* tests/data/vectors.md: [1,2,3,4] + [.1,.2,.3,.4] on two ranks. */
static void test_vector(void)
{
	static const struct {
		const char *what;
		round_fn *round;
		float want[4];
	} cases[] = {
		{"trunc16", trunc16, {1.09375, 2.1875, 3.296875, 4.375}},
		{"q8", q8, {1.1086614, 2.2, 3.2913387, 4.4}},
		{"f32", keep, {1.1, 2.2, 3.3, 4.4}},
	};
	size_t i, k;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		float a[] = {1, 2, 3, 4}, b[] = {.1f, .2f, .3f, .4f};
		struct rig r = {.data = {a, b}, .round = cases[i].round};
		struct gf_coll_args args = {
			.ranks = 2, .count_elems = 4, .elem_bytes = 4, .lossy = true};

		EXPECT(!run("ring", &args, &r), "%s ends", cases[i].what);
		for (k = 0; k < 4; k++) {
			EXPECT_NEAR(a[k], cases[i].want[k], printed, "%s [%zu]", cases[i].what, k);
			EXPECT(a[k] == b[k], "%s [%zu] on both", cases[i].what, k);
		}
	}
}

/* What sums go through, and what a round of it loses of a rank's value: a
 * little over 1/127, 1/128, 1/17, 1/4. */
static const struct lossy {
	const char *name;
	round_fn *round;
	double share;
} lossy[] = {{"trunc16", trunc16, .01}, {"q8", q8, .01}, {"fp8", fp8, .07}, {"fp4", fp4, .3}};

/* The same bits on every rank, and near the sum. */
static void check(const char *algorithm, struct gf_coll_args *args, const struct lossy *codec)
{
	/* p rounds */
	double sum, slack = args->ranks * (args->ranks + 5) * codec->share;
	struct rig r = {.round = codec->round};
	const char *what = codec->name;
	size_t i, n = args->count_elems;
	int rank;

	for (rank = 0; rank < args->ranks; rank++) {
		r.data[rank] = gf_xcalloc(n + 1, sizeof(float));
		for (i = 0; i < n; i++)
			r.data[rank][i] = (float)((i * 7 + (size_t)rank * 13) % 97) / 97;
	}
	EXPECT(!run(algorithm, args, &r), "%s %s p %d ends", algorithm, what, args->ranks);
	for (i = 0; i < n; i++) {
		for (sum = 0, rank = 0; rank < args->ranks; rank++) {
			sum += (double)((i * 7 + (size_t)rank * 13) % 97) / 97;
			if (!memcmp(&r.data[rank][i], &r.data[0][i], sizeof(float)))
				continue;
			EXPECT(0,
			       "%s %s p %d n %zu segment %zu: [%zu] %.9g on rank %d, %.9g on rank "
			       "0",
			       algorithm, what, args->ranks, n, args->segment_elems, i,
			       (double)r.data[rank][i], rank, (double)r.data[0][i]);
			goto out;
		}
		EXPECT(fabs(r.data[0][i] - sum) <= slack, "%s %s p %d [%zu]: %g, want about %g",
		       algorithm, what, args->ranks, i, (double)r.data[0][i], sum);
	}
out:
	for (rank = 0; rank < args->ranks; rank++)
		free(r.data[rank]);
}

static void prove(const struct gf_algorithm *a, struct gf_coll_args *args)
{
	struct gf_schedule *s = gf_xcalloc((size_t)args->ranks, sizeof(*s));
	struct gf_error err = {""};
	int rank;

	for (rank = 0; rank < args->ranks; rank++)
		if (gf_algorithm_schedule(a, args, rank, &s[rank], NULL))
			abort();
	EXPECT(!gf_verify(s, args->ranks, GF_COLL_WHOLE, &err), "%s p %d n %zu segment %zu: %s",
	       a->name, args->ranks, args->count_elems, args->segment_elems, err.text);
	for (rank = 0; rank < args->ranks; rank++)
		gf_schedule_release(&s[rank]);
	free(s);
}

static void test_algorithms(void)
{
	static const size_t sizes[] = {1, 5, 37, 2600};
	size_t i, n, k, c;
	int p;

	for (i = 0; gf_algorithms[i]; i++)
		for (p = 1; p <= MAX_RANKS && gf_algorithms[i]->build; p++)
			for (n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
				const char *name = gf_algorithms[i]->name;
				struct gf_coll_args args = {
					.ranks = p,
					.count_elems = sizes[n],
					.elem_bytes = 4,
					.lossy = true,
				};

				prove(gf_algorithms[i], &args);
				for (c = 0; c < GF_ARRAY_LENGTH(lossy); c++)
					check(name, &args, &lossy[c]);
				for (k = 5; k <= 25; k *= 5) {
					args.segment_elems = sizes[n] / k + 1;
					prove(gf_algorithms[i], &args);
					for (c = 1; c < GF_ARRAY_LENGTH(lossy); c++)
						check(name, &args, &lossy[c]);
				}
			}
}

static void test_factors(void)
{
	static const int lists[][3] = {{3, 2, 2}, {2, 3, 2}, {4, 3, 1}, {4, 4, 1}, {2, 8, 1},
				       {5, 3, 1}, {8, 2, 1}, {7, 2, 1}, {3, 4, 1}};
	static const char *const names[] = {"blueconnect", "hierarchical"};
	size_t i, k, c;

	for (i = 0; i < GF_ARRAY_LENGTH(lists); i++)
		for (k = 0; k < GF_ARRAY_LENGTH(names); k++) {
			struct gf_coll_args args = {
				.ranks = lists[i][0] * lists[i][1] * lists[i][2],
				.count_elems = 2600,
				.elem_bytes = 4,
				.factors = lists[i],
				.nfactors = 3,
				.lossy = true,
			};

			prove(gf_algorithm_find(names[k]), &args);
			for (c = 0; c < GF_ARRAY_LENGTH(lossy); c++)
				check(names[k], &args, &lossy[c]);
			args.segment_elems = 100;
			prove(gf_algorithm_find(names[k]), &args);
			for (c = 1; c < GF_ARRAY_LENGTH(lossy); c++)
				check(names[k], &args, &lossy[c]);
		}
}

/* Without its rounding step a butterfly on 3 ranks is refused: rank 0 sends the result to rank 2,
 * rank 1 keeps it as it is. */
static void test_refused(void)
{
	struct gf_coll_args args = {.ranks = 3, .count_elems = 4, .elem_bytes = 4, .lossy = true};
	struct gf_schedule s[3];
	struct gf_error err = {""};
	int rank;

	for (rank = 0; rank < 3; rank++)
		if (gf_algorithm_schedule(gf_algorithm_find("butterfly"), &args, rank, &s[rank],
					  NULL))
			abort();
	EXPECT(s[1].steps[s[1].nsteps - 1].op == GF_STEP_ROUND, "its last");
	s[1].nsteps--;
	EXPECT(gf_verify(s, 3, GF_COLL_WHOLE, &err), "refused");
	EXPECT_TEXT(err.text, "data[0]: rank 1 adds or rounds otherwise than rank 0");
	for (rank = 0; rank < 3; rank++)
		gf_schedule_release(&s[rank]);
}

/* --- one order of additions ------------------------------------------------
 */

static float term(int rank, size_t k)
{
	return (float)(1 + rank) / (float)(3 + k) * (k % 3 ? 1 : (float)(1 << rank % 12));
}

/* As the trait GF_ALGORITHM_ONE_ORDER has it: neighbours, pairs of them, ..., of ranks into which
 * those beyond p' were folded. */
static float sum_in_order(int first, int n, int ranks, int core, size_t k, round_fn *round)
{
	float a, b;

	if (n == 1) {
		a = term(first, k);
		if (first + core < ranks) {
			b = term(first + core, k);
			round(&b, 1);
			a += b;
		}
		return a;
	}
	a = sum_in_order(first, n / 2, ranks, core, k, round);
	b = sum_in_order(first + n / 2, n / 2, ranks, core, k, round);
	round(&a, 1);
	round(&b, 1);
	return a + b;
}

/* Messages of `cut` elements, one after the other. */
static void check_order(const char *name, int ranks, size_t cut, size_t segment, round_fn *round)
{
	enum { ELEMS = 40 };
	struct gf_coll_args args = {.ranks = ranks,
				    .elem_bytes = sizeof(float),
				    .segment_elems = segment,
				    .lossy = round != keep};
	int core = 1, rank;
	size_t first, k, wrong = 0;

	while (core * 2 <= ranks)
		core *= 2;
	for (first = 0; first < ELEMS; first += args.count_elems) {
		struct rig r = {.round = round};

		args.count_elems = first + cut < ELEMS ? cut : ELEMS - first;
		for (rank = 0; rank < ranks; rank++) {
			r.data[rank] = gf_xcalloc(args.count_elems, sizeof(float));
			for (k = 0; k < args.count_elems; k++)
				r.data[rank][k] = term(rank, first + k);
		}
		EXPECT(run(name, &args, &r) == 0, "%s on %d", name, ranks);
		for (k = 0; k < args.count_elems; k++) {
			float want = sum_in_order(0, core, ranks, core, first + k, round);

			if (core < ranks)
				round(&want, 1);
			for (rank = 0; rank < ranks; rank++)
				wrong += memcmp(&r.data[rank][k], &want, sizeof(want)) != 0;
		}
		for (rank = 0; rank < ranks; rank++)
			free(r.data[rank]);
	}
	EXPECT(wrong == 0, "%s on %d ranks, cut at %zu: %zu sums differ", name, ranks, cut, wrong);
}

static void test_one_order(void)
{
	static const size_t cuts[] = {1, 3, 8, 17, 40};
	static round_fn *const rounds[] = {f16, bf16, trunc16};
	const struct gf_algorithm_traits *a;
	size_t c, k, i, found = 0;
	int ranks;

	for (i = 0; (a = gf_algorithm_at(i)); i++)
		for (ranks = 2; ranks <= MAX_RANKS; ranks++)
			for (c = 0; c < GF_ARRAY_LENGTH(cuts); c++) {
				if (!gf_algorithm_reproduces(a->name, "f32"))
					continue;
				found++;
				check_order(a->name, ranks, cuts[c], 0, keep);
				check_order(a->name, ranks, cuts[c], 2, keep);
				if (!gf_algorithm_reproduces(a->name, "f16"))
					continue;
				for (k = 0; k < GF_ARRAY_LENGTH(rounds); k++)
					check_order(a->name, ranks, cuts[c], 0, rounds[k]);
			}
	EXPECT(found > 0, "some algorithm adds in one order");
	EXPECT(!gf_algorithm_reproduces("butterfly", "q8"), "blocks");
	EXPECT(!gf_algorithm_reproduces("ring", "f32"), "a ring");
}

int main(void)
{
	test_one_order();
	test_again();
	test_errors();
	test_vector();
	test_algorithms();
	test_factors();
	test_refused();
	return TEST_END();
}
