/* SPDX-License-Identifier: BSD-3-Clause */
/* Training data in each format that files have: IDX, plain and gzipped, CIFAR's records, words and
 * characters. An input takes the place of each file in turn, beside sound ones. A set that was
 * opened can be read to its end. */
#include <errno.h>
#include <sys/stat.h>

#include "data/dataset.h"
#include "harness.h"

/* Two images of 2 x 2 and their labels. */
static const char images[] = "\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\2\1\2\3\4\5\6\7";
static const char labels[] = "\0\0\10\1\0\0\0\2\0\1";

/* {folder, file, what is sound there; its size, 0: made of the input alone} */
static const struct place {
	const char *format, *name, *sound;
	size_t size;
} places[] = {
	{"idx", "train-images-idx3-ubyte", images, sizeof(images)},
	{"idx", "train-labels-idx1-ubyte", labels, sizeof(labels) - 1},
	{"idx", "t10k-images-idx3-ubyte", images, sizeof(images)},
	{"idx", "t10k-labels-idx1-ubyte", labels, sizeof(labels) - 1},
	{"cifar100", "train.bin", NULL, 0},
	{"cifar100", "test.bin", NULL, 0},
	{"words", "train.txt", "the cat sat on the mat", 22},
	{"words", "test.txt", "the mat", 7},
	{"chars", "all.txt", NULL, 0},
	{"jpeg", "train/a/1.jpg", NULL, 0},
	{"jpeg", "val/a/1.jpg", NULL, 0},
};

static const char *put(const struct place *p, const void *data, size_t size)
{
	char *name = gf_xasprintf("%s/%s", p->format, p->name);
	const char *path = harness_put(name, data, size);

	free(name);
	return path;
}

static void make_folders(void)
{
	static bool made;
	size_t i;

	for (i = 0; !made && i < GF_ARRAY_LENGTH(places); i++) {
		char *path = gf_xasprintf("%s/%s/%s", harness_folder(), places[i].format,
					  places[i].name);
		char *end = path + strlen(harness_folder());

		while ((end = strchr(end + 1, '/'))) {
			*end = '\0';
			if (mkdir(path, 0777) && errno != EEXIST) {
				perror(path);
				exit(1);
			}
			*end = '/';
		}
		free(path);
		if (places[i].sound)
			put(&places[i], places[i].sound, places[i].size);
	}
	made = true;
}

static void read_all(const struct gf_dataset *d)
{
	size_t elems = gf_shape_elems(&d->shape), part, i;
	float *values = gf_xcalloc(elems, sizeof(*values));
	int32_t *numbers = gf_xcalloc(d->positions + 1, sizeof(*numbers));

	for (part = 0; part < GF_PARTS; part++)
		for (i = 0; i < d->count[part]; i++) {
			struct gf_error err = {""};

			if (gf_dataset_batch(d, (enum gf_part)part, &i, 1, values, numbers, &err))
				harness_expect_line(&err, NULL);
			else if (numbers[0] < 0 || (size_t)numbers[0] >= d->classes)
				harness_fail("a label", "beyond the classes");
		}
	free(values);
	free(numbers);
}

static bool open_folder(const char *format)
{
	const bool text = *format == 'w' || strcmp(format, "chars") == 0;
	const bool pictures = strcmp(format, "jpeg") == 0;
	const struct gf_dataset_want want = {
		.input = {pictures ? 3 : text, {3, 8, 8}},
		.positions = text ? 3 : 0,
		.vocabulary = text ? 300 : 0,
	};
	char *path = gf_xasprintf("%s:%s/%s", format, harness_folder(), format);
	struct gf_dataset d;
	struct gf_error err = {""};
	int rc = gf_dataset_open(path, &want, &d, &err);

	if (rc)
		harness_expect_line(&err, NULL);
	else
		read_all(&d);
	if (!rc)
		gf_dataset_close(&d);
	free(path);
	return !rc;
}

static bool try_data(const char *data, size_t size, struct gf_rng *rng)
{
	bool accepted = false;
	size_t i;

	(void)rng;
	make_folders();
	for (i = 0; i < GF_ARRAY_LENGTH(places); i++) {
		put(&places[i], data, size);
		accepted |= open_folder(places[i].format);
		if (places[i].sound)
			put(&places[i], places[i].sound, places[i].size);
	}
	return accepted;
}

const struct harness harness = {.most_bytes = 7000, .try = try_data};
