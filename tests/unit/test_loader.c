/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>
#include <sched.h>

#include "base/array.h"
#include "data/loader.h"
#include "data/order.h"

/* Batches ahead of time and changed images: the same for every caller, in any
 * order. */
static const struct gf_augment both = {true, 2};

static struct gf_dataset open_data(const char *path)
{
	const struct gf_dataset_want want = {
		.input = {3, {2, 5, 6}}, .classes = 4, .seed = 3};
	struct gf_dataset d = {0};
	struct gf_error err = {""};

	EXPECT(gf_dataset_open(path, &want, &d, &err) == 0, "%s", err.text);
	return d;
}

/* --- the spec ------------------------------------------------------------ */

static void test_parse(void)
{
	static const struct {
		const char *text;
		bool flip;
		size_t pad;
		const char *error;
	} cases[] = {
		{"none", false, 0, NULL},
		{"flip", true, 0, NULL},
		{"crop:4", false, 4, NULL},
		{"flip,crop:1", true, 1, NULL},
		{"crop:1,flip", true, 1, NULL},
		{"", false, 0, "want none, flip or crop:N, got \"\""},
		{"flip,", false, 0, "want none, flip or crop:N, got \"\""},
		{"rotate", false, 0,
		 "want none, flip or crop:N, got \"rotate\""},
		{"flip,none", false, 0,
		 "want none, flip or crop:N, got \"none\""},
		{"crop", false, 0, "want none, flip or crop:N, got \"crop\""},
		{"crop:0", false, 0, "crop: want "},
		{"crop:x", false, 0, "crop: want "},
		{"crop:2000", false, 0, "crop: want "},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_augment a = {0};
		struct gf_error err = {""};
		int rc = gf_augment_parse(cases[i].text, &a, &err);

		EXPECT(rc == (cases[i].error ? -EINVAL : 0), "\"%s\": %d",
		       cases[i].text, rc);
		EXPECT(a.flip == cases[i].flip && a.pad == cases[i].pad,
		       "\"%s\": %d %zu", cases[i].text, a.flip, a.pad);
		EXPECT(!cases[i].error || strstr(err.text, cases[i].error),
		       "\"%s\": %s", cases[i].text, err.text);
	}
}

static void test_check(void)
{
	static const struct {
		struct gf_shape shape;
		size_t vocabulary;
		struct gf_augment a;
		const char *error;
	} cases[] = {
		{{3, {1, 3, 4}}, 0, {true, 2}, NULL},
		{{3, {1, 3, 4}},
		 0,
		 {true, 3},
		 "by less than the images' 3 x 4"},
		{{1, {12}}, 0, {false, 0}, NULL},
		{{1, {12}}, 0, {true, 0}, "the data are flat"},
		{{1, {12}}, 9, {false, 1}, "the data are text"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_dataset d = {.shape = cases[i].shape,
					     .vocabulary = cases[i].vocabulary};
		struct gf_error err = {""};
		int rc = gf_augment_check(&cases[i].a, &d, &err);

		EXPECT(rc == (cases[i].error ? -EINVAL : 0), "case %zu", i);
		EXPECT(!cases[i].error || strstr(err.text, cases[i].error),
		       "case %zu: %s", i, err.text);
	}
}

/* --- what becomes of an image -------------------------------------------- */

/* Every result is the image moved by at most pad and mirrored or not; over
 * many draws each of the views turns up, about equally often. */
static void test_views(void)
{
	const struct gf_dataset d = {.shape = {3, {2, 3, 4}},
				     .count = {1000, 1}};
	const struct gf_augment a = {true, 1};
	size_t seen[2][3][3] = {0}, index, n = 4000;
	int m, y, x, r, c, ch;

	for (index = 0; index < n; index++) {
		float image[24], room[24];
		size_t found = 0;

		for (r = 0; r < 24; r++)
			image[r] = (float)(r + 1);
		gf_augment_sample(&a, &d, 9, index / 1000, index % 1000, image,
				  room);
		for (m = 0; m < 2; m++)
			for (y = -1; y < 2; y++)
				for (x = -1; x < 2; x++) {
					bool same = true;

					for (ch = 0; ch < 2; ch++)
						for (r = 0; r < 3; r++)
							for (c = 0; c < 4;
							     c++) {
								int fr = r + y;
								int fc =
									(m ? 3 - c
									   : c) +
									x;
								bool in =
									fr >= 0 &&
									fr < 3 &&
									fc >= 0 &&
									fc < 4;
								float want =
									in ? (float)(ch * 12 +
										     fr * 4 +
										     fc +
										     1)
									   : 0;

								same &= image[ch * 12 +
									      r * 4 +
									      c] ==
									want;
							}
					seen[m][y + 1][x + 1] += same;
					found += same;
				}
		EXPECT(found == 1, "image %zu: %zu views", index, found);
	}
	for (m = 0; m < 2; m++)
		for (y = 0; y < 3; y++)
			for (x = 0; x < 3; x++)
				EXPECT(seen[m][y][x] > n / 18 * 7 / 10 &&
					       seen[m][y][x] < n / 18 * 13 / 10,
				       "view %d %d %d: %zu of %zu", m, y, x,
				       seen[m][y][x], n);
}

/* --- batches ahead of time ------------------------------------------------ */

#define ELEMS 60
#define BATCH 3
#define PARTS 2
#define RANKS 2

/* What the loader must give, computed in another way. */
static void expect_batch(const struct gf_dataset *d, size_t step, size_t part,
			 int rank, const struct gf_batch *got)
{
	size_t share = BATCH * PARTS, steps = d->count[0] / (share * RANKS), i;
	struct gf_order order;
	const size_t *slice;

	gf_order_init(&order, d->count[GF_PART_TRAIN], 5, d->consecutive);
	slice = gf_order_slice(&order, (step - 1) / steps, (step - 1) % steps,
			       RANKS, rank, share);
	EXPECT(got->first_sample ==
		       ((step - 1) * RANKS + (size_t)rank) * share +
			       part * BATCH,
	       "step %zu part %zu", step, part);
	for (i = 0; i < BATCH; i++) {
		size_t index = slice[part * BATCH + i];
		float x[ELEMS], room[ELEMS];
		int32_t label;

		gf_dataset_batch(d, GF_PART_TRAIN, &index, 1, x, &label);
		gf_augment_sample(&both, d, 5, (step - 1) / steps, index, x,
				  room);
		EXPECT(label == got->labels[i] &&
			       !memcmp(x, got->values + i * ELEMS, sizeof(x)),
		       "step %zu part %zu rank %d sample %zu", step, part, rank,
		       i);
	}
	gf_order_release(&order);
}

/* In order over several epochs, from the middle as a resumed run, and at
 * random. */
static void test_loader(size_t threads)
{
	static const size_t wild[] = {4, 4, 9, 1, 2, 3, 30, 1};
	struct gf_dataset d = open_data("synthetic:50");
	size_t step, part, i;
	int rank;

	for (rank = 0; rank < RANKS; rank++) {
		const struct gf_loader_config k = {.data = &d,
						   .augment = both,
						   .batch = BATCH,
						   .accumulate = PARTS,
						   .ranks = RANKS,
						   .rank = rank,
						   .seed = 5,
						   .threads = threads};
		struct gf_loader *l = gf_loader_new(&k);

		for (step = 1; step < 14; step++)
			for (part = 0; part < PARTS; part++)
				expect_batch(&d, step, part, rank,
					     gf_loader_take(l, step, part));
		gf_loader_free(l);
		l = gf_loader_new(&k);
		for (step = 7; step < 10; step++)
			expect_batch(&d, step, 1, rank,
				     gf_loader_take(l, step, 1));
		for (i = 0; i < GF_ARRAY_LENGTH(wild); i++)
			expect_batch(&d, wild[i], i % PARTS, rank,
				     gf_loader_take(l, wild[i], i % PARTS));
		gf_loader_free(l);
		/* never asked */
		gf_loader_free(gf_loader_new(&k));
	}
	gf_loader_free(NULL);
	gf_dataset_close(&d);
}

/* Batches lie in the caller's memory, and say when they are there. */
static void test_room(void)
{
	static float values[GF_LOADER_BATCHES][BATCH * ELEMS];
	static int32_t labels[GF_LOADER_BATCHES][BATCH];
	const struct gf_batch room[] = {{values[0], labels[0], 0},
					{values[1], labels[1], 0}};
	struct gf_dataset d = open_data("synthetic:50");
	const struct gf_loader_config k = {.data = &d,
					   .augment = both,
					   .batch = BATCH,
					   .accumulate = PARTS,
					   .ranks = 1,
					   .seed = 5,
					   .threads = 2,
					   .room = room};
	struct gf_loader *l = gf_loader_new(&k);
	const struct gf_batch *first, *second;

	EXPECT(!gf_loader_ready(l, 1, 0), "nothing was asked for");
	first = gf_loader_take(l, 1, 0);
	while (!gf_loader_ready(l, 1, 1))
		(void)sched_yield();
	EXPECT(!gf_loader_ready(l, 2, 0), "the batch after the next one");
	second = gf_loader_take(l, 1, 1);
	EXPECT((first->values == values[0] && second->values == values[1]) ||
		       (first->values == values[1] &&
			second->values == values[0]),
	       "batches lie in the room");
	gf_loader_free(l);
	gf_dataset_close(&d);
}

int main(void)
{
	test_parse();
	test_check();
	test_views();
	test_loader(0);
	test_loader(3);
	test_room();
	return TEST_END();
}
