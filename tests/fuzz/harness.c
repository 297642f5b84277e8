/* SPDX-License-Identifier: BSD-3-Clause */
#include "harness.h"

#include <glob.h>
#include <time.h>
#include <unistd.h>

#define MOST_BYTES ((size_t)16384)
/* Seconds of the processor for one input. A sanitizer takes some times as long.
 */
#define LONGEST_S 20.0

static struct {
	const char *data;
	size_t size;
} now;

_Noreturn void harness_fail(const char *what, const char *why)
{
	printf("%s: %s, by %zu bytes:\n", what, why, now.size);
	fwrite(now.data, 1, now.size, stdout);
	printf("\n");
	fflush(stdout);
	abort();
}

void harness_expect_line(const struct gf_error *err, const char *begins)
{
	if (!err->text[0] || strchr(err->text, '\n'))
		harness_fail("a refusal that is not one line", err->text);
	if (begins && strncmp(err->text, begins, strlen(begins)) != 0)
		harness_fail("a refusal that does not name its source", err->text);
}

/* --- files ---------------------------------------------------------------- */

/* In memory where that can be: ext4 writes a file that replaces another to the disk at once, which
 * takes longer than most inputs. */
static char folder[] = "/dev/shm/gf-fuzz.XXXXXX";

static void remove_folder(void)
{
	char *command = gf_xasprintf("rm -rf %s", folder);

	if (system(command) != 0)
		printf("%s stays\n", folder);
	free(command);
}

const char *harness_folder(void)
{
	static bool made;

	if (!made && access("/dev/shm", W_OK))
		strcpy(folder, "/tmp/gf-fuzz.XXXXXX");
	if (!made && !mkdtemp(folder)) {
		perror(folder);
		exit(1);
	}
	if (!made)
		atexit(remove_folder);
	made = true;
	return folder;
}

const char *harness_put(const char *name, const void *data, size_t size)
{
	static char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", harness_folder(), name);
	f = fopen(path, "wb");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f)) {
		perror(path);
		exit(1);
	}
	return path;
}

/* --- inputs --------------------------------------------------------------- */

static void load_file(struct harness_inputs *in, const char *path)
{
	struct harness_input *one;
	long size;
	FILE *f = fopen(path, "rb");

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0) {
		perror(path);
		exit(1);
	}
	rewind(f);
	/* large ones would only make the run slower */
	if ((size_t)size <= (harness.most_bytes ? harness.most_bytes : MOST_BYTES)) {
		one = gf_array_push(&in->items, &in->count, &in->capacity);
		one->data = gf_xcalloc(1, (size_t)size + 1);
		one->size = fread(one->data, 1, (size_t)size, f);
	}
	fclose(f);
}

static void load(struct harness_inputs *in, const char *files)
{
	const char *source = getenv("GF_SOURCE");
	char *pattern = gf_xasprintf("%s/%s", source ? source : ".", files);
	glob_t found;
	size_t i;

	if (glob(pattern, 0, NULL, &found) == 0) {
		for (i = 0; i < found.gl_pathc; i++)
			load_file(in, found.gl_pathv[i]);
		globfree(&found);
	}
	free(pattern);
}

void harness_load(const char *program, struct harness_inputs *in, size_t *corpus)
{
	const char *name = strrchr(program, '/');
	char *files;
	size_t i;

	name = name ? name + 1 : program;
	name += strncmp(name, "fuzz_", 5) == 0 ? 5 : 0;
	files = gf_xasprintf("tests/fuzz/corpus/%s/*", name);
	load(in, files);
	free(files);
	*corpus = in->count;
	for (i = 0; harness.seeds && harness.seeds[i]; i++)
		load(in, harness.seeds[i]);
}

void harness_release(struct harness_inputs *in)
{
	size_t i;

	for (i = 0; i < in->count; i++)
		free(in->items[i].data);
	free(in->items);
}

static uint64_t seed_of(const char *data, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	size_t i;

	for (i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3;
	return hash;
}

bool harness_try(const char *data, size_t size)
{
	clock_t began = clock();
	struct gf_rng rng;
	bool accepted;

	now.data = data;
	now.size = size;
	gf_rng_init(&rng, seed_of(data, size), 0);
	accepted = harness.try(data, size, &rng);
	if ((double)(clock() - began) / CLOCKS_PER_SEC > LONGEST_S)
		harness_fail("too long", "a small input");
	return accepted;
}

/* --- mutations ------------------------------------------------------------ */

static const char *const tokens[] = {
	"null",
	"true",
	"0",
	"-1",
	"1",
	"0.5",
	"-0.0",
	"1e-320",
	"1e300",
	"1e999",
	"NaN",
	"9223372036854775807",
	"4611686018427387904",
	"4294967296",
	"2147483648",
	"99999999999999999999",
	"\"\"",
	"\"x\"",
	"\"\\u0000\"",
	"\"\\n\"",
	"[]",
	"{}",
	"[[",
	"]",
	"}",
	"{",
	",",
	":",
	"\"x-y\": [1, {\"z\": 2.50}], ",
	"\"name\": 1, ",
	"\xff",
	"\xed\xa0",
};

static const uint64_t numbers[] = {
	0,      1,      2,       0x7f,       0x80,       0xff,       0x100,     0x7fff,
	0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, UINT32_MAX, INT64_MAX, UINT64_MAX,
};

static void splice(struct gf_text *t, size_t at, size_t removed, const char *added, size_t length)
{
	struct gf_text out = {0};

	gf_text_add(&out, t->data, at);
	gf_text_add(&out, added, length);
	gf_text_add(&out, t->data + at + removed, t->length - at - removed);
	gf_text_release(t);
	*t = out;
}

/* The value after the next ": " or ", " or "[" from a random place on: replacing whole values
 * reaches deeper than breaking the syntax. */
static void replace_value(struct gf_text *t, struct gf_rng *rng, const char *token)
{
	size_t at = gf_rng_below(rng, t->length), end;

	at += strcspn(t->data + at, ":[,");
	at += at < t->length;
	at += strspn(t->data + at, " \n");
	end = at + strcspn(t->data + at, ",]}\n");
	splice(t, at, end - at, token, strlen(token));
}

/* A number in binary, of 1, 2, 4 or 8 bytes, in either order. */
static void replace_number(struct gf_text *t, struct gf_rng *rng)
{
	size_t bytes = (size_t)1 << gf_rng_below(rng, 4), at, i;
	uint64_t number = numbers[gf_rng_below(rng, GF_ARRAY_LENGTH(numbers))];
	bool big = gf_rng_below(rng, 2);

	if (t->length < bytes)
		return;
	at = gf_rng_below(rng, t->length - bytes + 1);
	for (i = 0; i < bytes; i++)
		t->data[at + (big ? bytes - 1 - i : i)] = (char)(number >> 8 * i);
}

void harness_mutate(struct gf_text *t, const struct harness_inputs *in, struct gf_rng *rng)
{
	const char *token = tokens[gf_rng_below(rng, GF_ARRAY_LENGTH(tokens))];
	size_t at = gf_rng_below(rng, t->length + 1);
	size_t rest = t->length - at, length;
	const struct harness_input *other = &in->items[gf_rng_below(rng, in->count)];

	switch (gf_rng_below(rng, 13)) {
	case 0: /* cut off */
		splice(t, at, rest, "", 0);
		break;
	case 1: /* one bit */
		if (rest)
			t->data[at] ^= (char)(1 << gf_rng_below(rng, 8));
		break;
	case 2: /* a piece missing */
		length = gf_rng_below(rng, 40);
		splice(t, at, length < rest ? length : rest, "", 0);
		break;
	case 3: /* a piece of another document */
		if (!other->size)
			break;
		length = gf_rng_below(rng, other->size);
		splice(t, at, 0, other->data + length, gf_rng_below(rng, other->size - length + 1));
		break;
	case 4: /* a token in between */
		splice(t, at, 0, token, strlen(token));
		break;
	case 5: /* another document after it */
		gf_text_add(t, other->data, other->size);
		break;
	case 6:
		replace_number(t, rng);
		break;
	default:
		if (t->length)
			replace_value(t, rng, token);
	}
}
