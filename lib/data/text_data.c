/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/data_parts.h"

#include <dirent.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

/*
 * Text for language models: a folder with train.txt and test.txt (or NAME.train.txt and
 * NAME.test.txt, as the Penn Treebank has them), or with one .txt file, the last tenth of which is
 * the test part. Each may be gzipped.
 *
 * WORDS are what white space separates; the end of a line is the word <eos>. They are numbered by
 * their frequency in the training part; those beyond the model's vocabulary, and what only the test
 * part has, are <unk>.
 * CHARS are bytes, numbered in their order; the model must have room for all that occur.
 */
#define TEST_SHARE   10 /* of a single file: one part in ten */
#define MAX_TXT      64
#define TRAIN_SUFFIX "train.txt"
#define TEST_SUFFIX  "test.txt"

/* --- which files --------------------------------------------------------- */

/* The names of a folder's .txt files, without .gz, sorted. */
struct names {
	char *at[MAX_TXT];
	size_t count;
};

GF_ORDER(by_name, char *, strcmp(*x, *y))

static int ends_with(const char *name, const char *ending)
{
	size_t n = strlen(name), e = strlen(ending);

	return n >= e && strcmp(name + n - e, ending) == 0;
}

static void list(const char *folder, struct names *names)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	memset(names, 0, sizeof(*names));
	while (dir && names->count < MAX_TXT && (entry = readdir(dir))) {
		size_t n = strlen(entry->d_name);
		char *name = gf_xstrdup(entry->d_name);

		if (ends_with(name, ".gz"))
			name[n - 3] = '\0';
		if (ends_with(name, ".txt") && name[0] != '.')
			names->at[names->count++] = name;
		else
			free(name);
	}
	if (dir)
		closedir(dir);
	qsort(names->at, names->count, sizeof(names->at[0]), by_name);
}

static void free_names(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->at[i]);
}

/* "train.txt" or "NAME.train.txt" */
static int is_part(const char *name, const char *suffix)
{
	size_t n = strlen(name), s = strlen(suffix);

	return ends_with(name, suffix) && (n == s || name[n - s - 1] == '.');
}

static const char *training_file(const struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		if (is_part(names->at[i], TRAIN_SUFFIX))
			return names->at[i];
	return NULL;
}

static int recognise_words(const char *folder)
{
	struct names names;
	int found;

	list(folder, &names);
	found = training_file(&names) != NULL;
	free_names(&names);
	return found;
}

static int recognise_chars(const char *folder)
{
	struct names names;

	list(folder, &names);
	free_names(&names);
	return names.count > 0;
}

/* --- reading ------------------------------------------------------------- */

static int read_file(const char *folder, const char *name, unsigned char **bytes, size_t *size,
		     struct gf_error *err)
{
	GF_RELEASED(gf_source_close) struct gf_source s = {0};
	char *path = gf_source_find(folder, name);

	if (!path)
		return gf_error_set(err, -ENOENT, "%s: want a file %s or .gz, found none", folder,
				    name);
	return gf_source_open(&s, path, err) ?: gf_source_rest(&s, bytes, size, err);
}

/* Lines are not cut in two, unless the last one is too long for that. */
static void split(struct gf_text_parts *t)
{
	size_t size = t->size[GF_PART_TRAIN];
	size_t tenth = size - size / TEST_SHARE, at = tenth;

	while (at < size && t->bytes[GF_PART_TRAIN][at - 1] != '\n')
		at++;
	if (at == size)
		at = tenth;
	t->size[GF_PART_TEST] = size - at;
	t->bytes[GF_PART_TEST] = gf_xmalloc(size - at + 1);
	memcpy(t->bytes[GF_PART_TEST], t->bytes[GF_PART_TRAIN] + at, size - at);
	t->size[GF_PART_TRAIN] = at;
}

static int read_parts(const char *folder, struct gf_text_parts *t, struct gf_error *err)
{
	struct names names;
	const char *train;
	GF_FREED char *test = NULL;
	int rc;

	list(folder, &names);
	train = training_file(&names);
	if (!train && names.count != 1)
		rc = gf_error_set(err, -ENOENT,
				  "%s: want train.txt and test.txt, or one .txt file, found %zu",
				  folder, names.count);
	else
		rc = read_file(folder, train ? train : names.at[0], &t->bytes[GF_PART_TRAIN],
			       &t->size[GF_PART_TRAIN], err);
	if (!rc && train) {
		test = gf_xasprintf("%.*s" TEST_SUFFIX, (int)(strlen(train) - strlen(TRAIN_SUFFIX)),
				    train);
		rc = read_file(folder, test, &t->bytes[GF_PART_TEST], &t->size[GF_PART_TEST], err);
	} else if (!rc && t->size[GF_PART_TRAIN]) {
		split(t);
	}
	free_names(&names);
	return rc;
}

/* --- characters ---------------------------------------------------------- */

static int number_chars(const char *folder, struct gf_text_parts *t, size_t limit,
			size_t *vocabulary, struct gf_error *err)
{
	int32_t number[256];
	size_t count = 0, part, i;
	unsigned char met[256] = {0};

	for (part = 0; part < GF_PARTS; part++)
		for (i = 0; i < t->size[part]; i++)
			met[t->bytes[part][i]] = 1;
	for (i = 0; i < 256; i++)
		number[i] = met[i] ? (int32_t)count++ : -1;
	if (count > limit)
		return gf_error_set(
			err, -EINVAL,
			"%s: want at most %zu different characters for this model, found %zu",
			folder, limit, count);
	for (part = 0; part < GF_PARTS; part++) {
		t->numbers[part] = gf_xcalloc(t->size[part] + 1, sizeof(int32_t));
		t->length[part] = t->size[part];
		for (i = 0; i < t->size[part]; i++)
			t->numbers[part][i] = number[t->bytes[part][i]];
	}
	*vocabulary = count;
	return 0;
}

/* --- a data set ---------------------------------------------------------- */

/* Samples of T numbers; the number after the last one is its label. */
static int cut(const char *folder, struct gf_dataset *d, struct gf_error *err)
{
	const struct gf_text_parts *t = d->priv;
	size_t length = d->shape.dims[0], part;

	for (part = 0; part < GF_PARTS; part++) {
		if (t->length[part] <= length)
			return gf_error_set(err, -EINVAL,
					    "%s: want more than %zu words or characters in the %s "
					    "part, got %zu",
					    folder, length, gf_part_names[part], t->length[part]);
		d->count[part] = (t->length[part] - 1) / length;
	}
	return 0;
}

/* From bytes to numbers, of which there are at most `limit`. */
typedef int number_fn(const char *folder, struct gf_text_parts *t, size_t limit, size_t *vocabulary,
		      struct gf_error *err);

static int open_text(const char *folder, number_fn *number, const struct gf_dataset_want *want,
		     struct gf_dataset *d, struct gf_error *err)
{
	size_t limit = want->vocabulary;
	struct gf_text_parts *t;
	int rc;

	if (want->input.rank != 1 || !want->vocabulary)
		return gf_error_set(err, -EINVAL,
				    "%s: want images for this model, got text (--data synthetic, "
				    "or a model of text, such as --model lstm-text)",
				    folder);
	if (want->classes && want->classes < limit)
		limit = want->classes;
	d->priv = t = gf_xcalloc(1, sizeof(*t));
	rc = read_parts(folder, t, err);
	rc = rc ?: number(folder, t, limit, &d->vocabulary, err);
	if (rc)
		return rc;
	d->shape = want->input;
	d->classes = d->vocabulary;
	d->consecutive = true;
	/* a model of one answer says what comes after the whole sample */
	d->positions = want->positions == 1 ? 1 : d->shape.dims[0];
	return cut(folder, d, err);
}

static int open_words(const char *path, const struct gf_dataset_want *want, struct gf_dataset *d,
		      struct gf_error *err)
{
	return open_text(path, gf_words_number, want, d, err);
}

static int open_chars(const char *path, const struct gf_dataset_want *want, struct gf_dataset *d,
		      struct gf_error *err)
{
	return open_text(path, number_chars, want, d, err);
}

static int sample(const struct gf_dataset *d, const struct gf_draw *draw, float *values,
		  int32_t *labels, struct gf_error *err)
{
	const struct gf_text_parts *t = d->priv;
	size_t length = d->shape.dims[0], i;
	const int32_t *at = t->numbers[draw->part] + draw->index * length;

	(void)err;
	for (i = 0; i < length; i++)
		values[i] = (float)at[i];
	memcpy(labels, at + 1 + length - d->positions, d->positions * sizeof(*labels));
	return 0;
}

static void close_text(struct gf_dataset *d)
{
	struct gf_text_parts *t = d->priv;

	if (!t)
		return;
	for (int part = 0; part < GF_PARTS; part++) {
		free(t->bytes[part]);
		free(t->numbers[part]);
	}
	free(t);
}

/* MANUAL
 * Text, word by word:
 * .Pa train.txt
 * and
 * .Pa test.txt ,
 * or
 * .Pa ptb.train.txt
 * and
 * .Pa ptb.test.txt ;
 * or one file
 * .Pa .txt ,
 * of which the last tenth is the test part.
 * White space separates words, and the end of a line is the word
 * .Li <eos> .
 * Words are numbered by their frequency in the training part.
 * A word that the model has no number for is
 * .Li <unk> . */
const struct gf_data_format gf_data_words = {
	.name = "words",
	.description = "a folder with text, word by word: train.txt and test.txt, or one .txt file",
	.place = 50,
	.recognise = recognise_words,
	.open = open_words,
	.sample = sample,
	.close = close_text,
};

/* MANUAL
 * The same files, byte by byte.
 * A folder with a single
 * .Pa .txt
 * has this format unless
 * .Cm words
 * is named.
 * The model must have a number for every byte value that occurs. */
const struct gf_data_format gf_data_chars = {
	.name = "chars",
	.description = "a folder with text, byte by byte: train.txt and test.txt, or one .txt file",
	.place = 60,
	.recognise = recognise_chars,
	.open = open_chars,
	.sample = sample,
	.close = close_text,
};
