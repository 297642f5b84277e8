/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>
#include <sched.h>

#include "base/array.h"
#include "data/loader.h"

/* Batches ahead of time and changed images: the same for every caller, in any order. */
static const struct gf_augment both = {true, 2, 0};

static struct gf_dataset open_data(const char *path)
{
	const struct gf_dataset_want want = {.input = {3, {2, 5, 6}}, .classes = 4, .seed = 3};
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
		double area;
	} cases[] = {
		{"none", false, 0, NULL},
		{"flip", true, 0, NULL},
		{"crop:4", false, 4, NULL},
		{"flip,crop:1", true, 1, NULL},
		{"crop:1,flip", true, 1, NULL},
		{"resized-crop,flip", true, 0, NULL, 0.08},
		{"resized-crop:.25", false, 0, NULL, 0.25},
		{"resized-crop:0", false, 0, "resized-crop: want a number"},
		{"resized-crop:2", false, 0, "resized-crop: want a number"},
		{"resized-crops", false, 0, "got \"resized-crops\""},
		{"", false, 0, "want none, flip, crop:N or resized-crop, got \"\""},
		{"flip,", false, 0, "want none, flip, crop:N or resized-crop, got \"\""},
		{"rotate", false, 0, "want none, flip, crop:N or resized-crop, got \"rotate\""},
		{"flip,none", false, 0, "want none, flip, crop:N or resized-crop, got \"none\""},
		{"crop", false, 0, "want none, flip, crop:N or resized-crop, got \"crop\""},
		{"crop:0", false, 0, "crop: want "},
		{"crop:x", false, 0, "crop: want "},
		{"crop:2000", false, 0, "crop: want "},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_augment a = {0};
		struct gf_error err = {""};
		int rc = gf_augment_parse(cases[i].text, &a, &err);

		EXPECT(rc == (cases[i].error ? -EINVAL : 0), "\"%s\": %d", cases[i].text, rc);
		EXPECT(a.flip == cases[i].flip && a.pad == cases[i].pad && a.area == cases[i].area,
		       "\"%s\": %d %zu %g", cases[i].text, a.flip, a.pad, a.area);
		EXPECT(!cases[i].error || strstr(err.text, cases[i].error), "\"%s\": %s",
		       cases[i].text, err.text);
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
		{{3, {1, 3, 4}}, 0, {true, 3}, "by less than the images' 3 x 4"},
		{{1, {12}}, 0, {false, 0}, NULL},
		{{1, {12}}, 0, {true, 0}, "the data are flat"},
		{{1, {12}}, 9, {false, 1}, "the data are text"},
		{{3, {1, 3, 4}}, 0, {false, 0, .5}, "the data are idx"},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		static const struct gf_data_format idx = {.name = "idx"};
		const struct gf_dataset d = {
			.format = &idx, .shape = cases[i].shape, .vocabulary = cases[i].vocabulary};
		struct gf_error err = {""};
		int rc = gf_augment_check(&cases[i].a, &d, &err);

		EXPECT(rc == (cases[i].error ? -EINVAL : 0), "case %zu", i);
		EXPECT(!cases[i].error || strstr(err.text, cases[i].error), "case %zu: %s", i,
		       err.text);
	}
}

/* --- what becomes of an image -------------------------------------------- */

static int count_up(const struct gf_dataset *d, const struct gf_draw *draw, float *values,
		    int32_t *labels, struct gf_error *err)
{
	size_t i;

	(void)draw;
	(void)labels;
	(void)err;
	for (i = 0; i < gf_shape_elems(&d->shape); i++)
		values[i] = (float)(i + 1);
	return 0;
}

/* Every result is the image moved by at most pad and mirrored or not; over many draws each of the
 * views turns up, about equally often. */
static void test_views(void)
{
	const struct gf_data_format counting = {.sample = count_up};
	const struct gf_dataset d = {
		.format = &counting, .shape = {3, {2, 3, 4}}, .count = {1000, 1}};
	const struct gf_augment a = {true, 1, 0};
	size_t seen[2][3][3] = {0}, index, n = 4000;
	int m, y, x, r, c, ch;

	for (index = 0; index < n; index++) {
		float image[24], room[24];
		size_t found = 0;

		gf_augment_sample(&a, &d,
				  &(struct gf_augmented){9, index / 1000, index % 1000, room},
				  image, NULL, NULL);
		for (m = 0; m < 2; m++)
			for (y = -1; y < 2; y++)
				for (x = -1; x < 2; x++) {
					bool same = true;

					for (ch = 0; ch < 2; ch++)
						for (r = 0; r < 3; r++)
							for (c = 0; c < 4; c++) {
								int fr = r + y;
								int fc = (m ? 3 - c : c) + x;
								bool in = fr >= 0 && fr < 3 &&
									  fc >= 0 && fc < 4;
								float want = in ? (float)(ch * 12 +
											  fr * 4 +
											  fc + 1)
										: 0;

								same &= image[ch * 12 + r * 4 +
									      c] == want;
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
				       "view %d %d %d: %zu of %zu", m, y, x, seen[m][y][x], n);
}

/* --- batches ahead of time ------------------------------------------------ */

#define ELEMS 60
#define BATCH 3
#define PARTS 2
#define RANKS 2

/* What the loader must give, computed in another way. */
static void expect_batch(const struct gf_dataset *d, size_t step, size_t part, int rank,
			 const struct gf_batch *got)
{
	size_t share = BATCH * PARTS, steps = d->count[0] / (share * RANKS), i;
	struct gf_order order;
	const size_t *slice;

	gf_order_init(&order, d->count[GF_PART_TRAIN], 5, d->consecutive);
	slice = gf_order_slice(&order, (step - 1) / steps, (step - 1) % steps, RANKS, rank, share);
	EXPECT(got->first_sample == ((step - 1) * RANKS + (size_t)rank) * share + part * BATCH,
	       "step %zu part %zu", step, part);
	for (i = 0; i < BATCH; i++) {
		size_t index = slice[part * BATCH + i];
		float x[ELEMS], room[ELEMS];
		int32_t label;

		gf_augment_sample(&both, d,
				  &(struct gf_augmented){5, (step - 1) / steps, index, room}, x,
				  &label, NULL);
		EXPECT(label == got->labels[i] && !memcmp(x, got->values + i * ELEMS, sizeof(x)),
		       "step %zu part %zu rank %d sample %zu", step, part, rank, i);
	}
	gf_order_release(&order);
}

static const struct gf_batch *take(struct gf_loader *l, size_t step, size_t part)
{
	const struct gf_batch *batch = NULL;
	struct gf_error err = {""};
	int rc = gf_loader_take(l, step, part, &batch, &err);

	EXPECT(rc == 0, "step %zu part %zu: %s", step, part, err.text);
	return batch;
}

/* All of a rank's share of the test, which may come between any steps. */
static void expect_tests(const struct gf_dataset *d, struct gf_loader *l, int rank)
{
	size_t number = 0, at, share, count, i;
	const struct gf_batch *batch;

	gf_order_share(d->count[GF_PART_TEST], RANKS, rank, &at, &share);
	do {
		EXPECT(!gf_loader_take_test(l, number++, &batch, &count, NULL), "test");
		EXPECT(count == (share < BATCH ? share : BATCH), "%zu", count);
		for (i = 0; i < count; i++, at++, share--) {
			float x[ELEMS];
			int32_t label;

			gf_dataset_batch(d, GF_PART_TEST, &at, 1, x, &label, NULL);
			EXPECT(label == batch->labels[i] &&
				       !memcmp(x, batch->values + i * ELEMS, sizeof(x)),
			       "rank %d test sample %zu", rank, at);
		}
	} while (count);
}

/* In order over several epochs, from the middle as a resumed run, and at random. */
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
				expect_batch(&d, step, part, rank, take(l, step, part));
		gf_loader_free(l);
		l = gf_loader_new(&k);
		for (step = 7; step < 10; step++)
			expect_batch(&d, step, 1, rank, take(l, step, 1));
		for (i = 0; i < GF_ARRAY_LENGTH(wild); i++)
			expect_batch(&d, wild[i], i % PARTS, rank, take(l, wild[i], i % PARTS));
		expect_tests(&d, l, rank);
		expect_batch(&d, 2, 0, rank, take(l, 2, 0));
		expect_tests(&d, l, rank);
		expect_tests(&d, l, rank);
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
	const struct gf_batch room[] = {{values[0], labels[0], 0}, {values[1], labels[1], 0}};
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
	first = take(l, 1, 0);
	while (!gf_loader_ready(l, 1, 1))
		(void)sched_yield();
	EXPECT(!gf_loader_ready(l, 2, 0), "the batch after the next one");
	second = take(l, 1, 1);
	EXPECT((first->values == values[0] && second->values == values[1]) ||
		       (first->values == values[1] && second->values == values[0]),
	       "batches lie in the room");
	gf_loader_free(l);
	gf_dataset_close(&d);
}

/* Samples 10 to 19 cannot be read. */
static int fail_some(const struct gf_dataset *d, const struct gf_draw *draw, float *values,
		     int32_t *labels, struct gf_error *err)
{
	if (draw->index / 10 == 1)
		return gf_error_set(err, -EINVAL, "sample %zu", draw->index);
	*labels = 1;
	return count_up(d, draw, values, labels, err);
}

/* The first of a batch's samples that fails is named, whatever threads come first; the other
 * batches are there. */
static void test_broken(size_t threads)
{
	static const struct gf_data_format failing = {.sample = fail_some};
	const struct gf_dataset d = {.format = &failing,
				     .shape = {1, {4}},
				     .count = {40, 40},
				     .positions = 1,
				     .consecutive = true};
	const struct gf_loader_config k = {
		.data = &d, .batch = 8, .accumulate = 1, .ranks = 1, .seed = 5, .threads = threads};
	static const char *const errors[] = {NULL, "sample 10", "sample 16", NULL, NULL};
	struct gf_loader *l = gf_loader_new(&k);
	const struct gf_batch *batch;
	size_t i, count, again;
	struct gf_error err;

	for (again = 0; again < 20; again++)
		for (i = 0; i < GF_ARRAY_LENGTH(errors); i++) {
			int rc = gf_loader_take_test(l, i, &batch, &count, &err);

			EXPECT(rc == (errors[i] ? -EINVAL : 0), "%zu: %d", i, rc);
			EXPECT(!errors[i] || !strcmp(err.text, errors[i]), "%zu threads: %s",
			       threads, err.text);
		}
	for (i = 1; i < 6; i++) /* rows: samples 10 to 19 are places 2, 3 */
		EXPECT(gf_loader_take(l, i, 0, &batch, &err) == -EINVAL, "step %zu", i);
	gf_loader_free(l);
}

int main(void)
{
	test_parse();
	test_check();
	test_views();
	test_loader(0);
	test_loader(3);
	test_room();
	test_broken(0);
	test_broken(1);
	test_broken(4);
	return TEST_END();
}
