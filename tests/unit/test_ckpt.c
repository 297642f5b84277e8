/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"
#include "folder.h"

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/text.h"
#include "checkpoints/safetensors.h"

static char *in_folder(const char *name)
{
	return gf_xasprintf("%s/%s", folder, name);
}

static void test_round_trip(void)
{
	static const float weight[6] = {1, -2, 3.5f, 0, 1e-30f, 7};
	static const float bias[3] = {.1f, .2f, .3f};
	static const uint64_t state[2] = {UINT64_MAX, 3};
	static const unsigned char flag[1] = {1};
	const struct gf_tensor_source tensors[] = {
		{"fc.weight", "F32", 2, {3, 2}, weight}, {"scalar", "U8", 0, {0}, flag},
		{"fc.bias", "F32", 1, {3}, bias},        {"none", "F32", 2, {0, 4}, NULL},
		{"rng", "U64", 1, {2}, state},
	};
	static const struct gf_metadata metadata[] = {
		{"step", "12"},
		{"model", "a \"quoted\" name"},
	};
	/* falling element size, then name */
	static const char *const order[] = {"rng", "fc.bias", "fc.weight", "none", "scalar"};
	char *path = in_folder("round.safetensors"), *value;
	struct gf_safetensors s = {0};
	struct gf_file_seal seal;
	struct gf_error err = {""};
	float got[6];
	uint64_t words[2];
	size_t step, i, at = 0;

	EXPECT(gf_safetensors_write(path, tensors, 5, metadata, 2, &seal, &err) == 0, "%s",
	       err.text);
	EXPECT(gf_safetensors_open(path, &s, &err) == 0, "%s", err.text);
	EXPECT(s.ntensors == 5 && s.data_offset % 8 == 0, "%zu tensors", s.ntensors);
	for (i = 0; i < s.ntensors; i++) {
		const struct gf_stored_tensor *t = &s.tensors[i];

		EXPECT_TEXT(t->name, order[i]);
		EXPECT(t->begin == at, "%s", order[i]);
		at = t->end;
	}
	EXPECT(gf_safetensors_load(&s, "fc.weight", "F32", 6, got, &err) == 0 &&
		       memcmp(got, weight, sizeof(weight)) == 0,
	       "%s", err.text);
	EXPECT(gf_safetensors_load(&s, "rng", "U64", 2, words, &err) == 0 &&
		       memcmp(words, state, sizeof(state)) == 0,
	       "%s", err.text);
	EXPECT(gf_safetensors_load(&s, "none", "F32", 0, got, &err) == 0, "%s", err.text);
	EXPECT(gf_safetensors_load(&s, "fc.bias", "F32", 4, got, &err) == -EINVAL &&
		       strstr(err.text, "\"fc.bias\": want 4 elements of F32, got 3 of F32"),
	       "%s", err.text);
	EXPECT(gf_safetensors_load(&s, "rng", "F32", 2, got, &err) == -EINVAL, "dtype");
	EXPECT(gf_safetensors_load(&s, "nix", "F32", 2, got, &err) == -EINVAL &&
		       strstr(err.text, "want a tensor \"nix\", found none"),
	       "%s", err.text);
	EXPECT(gf_safetensors_metadata(&s, "model", &value, &err) == 0, "%s", err.text);
	EXPECT_TEXT(value, metadata[1].value);
	free(value);
	EXPECT(gf_safetensors_metadata_size(&s, "step", 0, 100, &step, &err) == 0 && step == 12,
	       "%s", err.text);
	EXPECT(gf_safetensors_metadata_size(&s, "step", 0, 11, &step, &err) == -EINVAL,
	       "out of range");
	EXPECT(gf_safetensors_metadata(&s, "ranks", &value, &err) == -EINVAL, "not there");
	gf_safetensors_close(&s);
	unlink(path);
	free(path);
}

/* Headers that lie. The length word is right unless `length` says otherwise; `data` bytes of zeros
 * follow. */
#define ONE(begin, end) "\"data_offsets\":[" #begin "," #end "]}"
#define F32(shape)      "{\"dtype\":\"F32\",\"shape\":[" shape "],"

static const struct {
	const char *label, *header;
	size_t data;
	long long length; /* -1: as it is */
	const char *text; /* NULL: sound */
} headers[] = {
	{"sound", "{\"a\":" F32("2") ONE(0, 8) "}", 8, -1, NULL},
	{"padded", "{\"a\":" F32("2") ONE(0, 8) "}    ", 8, -1, NULL},
	{"empty", "{}", 0, -1, NULL},
	{"scalar", "{\"a\":" F32("") ONE(0, 4) "}", 4, -1, NULL},
	{"zero-size", "{\"a\":" F32("0,7") ONE(0, 0) ",\"b\":" F32("1") ONE(0, 4) "}", 4, -1, NULL},
	{"huge length", "{}", 0, 1LL << 62, "its length says 4611686018427387904"},
	{"length beyond the file", "{}", 0, 3, "its length says 3"},
	{"length over the limit", "{}", 0, 100000001, "below 100000000"},
	{"length 0", "{}", 0, 0, "begins with {"},
	{"no object", "[]", 0, -1, "begins with {"},
	{"cut header", "{\"a\":" F32("2") ONE(0, 8), 8, -1, ""},
	{"duplicate name", "{\"a\":" F32("1") ONE(0, 4) ",\"a\":" F32("1") ONE(0, 4) "}", 4, -1,
	 "duplicate"},
	{"hole", "{\"a\":" F32("1") ONE(0, 4) ",\"b\":" F32("1") ONE(8, 12) "}", 12, -1,
	 "want tensor \"b\" at byte 4, got 8 (a hole)"},
	{"hole in front", "{\"a\":" F32("1") ONE(4, 8) "}", 8, -1, "a hole"},
	{"overlap", "{\"a\":" F32("2") ONE(0, 8) ",\"b\":" F32("1") ONE(4, 8) "}", 8, -1,
	 "want tensor \"b\" at byte 8, got 4 (an overlap)"},
	{"offsets beyond the file", "{\"a\":" F32("4") ONE(0, 16) "}", 8, -1,
	 "want 16 bytes of data as the header says, got 8"},
	{"bytes left over", "{\"a\":" F32("1") ONE(0, 4) "}", 8, -1,
	 "want 4 bytes of data as the header says, got 8"},
	{"offsets reversed", "{\"a\":" F32("1") ONE(4, 0) "}", 4, -1,
	 "/a/data_offsets: want 4 bytes"},
	{"offsets of another shape", "{\"a\":" F32("3") ONE(0, 8) "}", 8, -1,
	 "want 12 bytes for this shape and dtype, got 0 to 8"},
	{"three offsets", "{\"a\":" F32("1") "\"data_offsets\":[0,4,8]}}", 4, -1,
	 "want [begin, end], got 3"},
	{"negative offset", "{\"a\":" F32("1") ONE(-4, 0) "}", 4, -1, "/a/data_offsets/0"},
	{"offset too big to count", "{\"a\":" F32("1") ONE(0, 99999999999999999999) "}", 4, -1, ""},
	{"shape overflows", "{\"a\":" F32("4294967296,4294967296") ONE(0, 0) "}", 0, -1,
	 "/a/shape: want a product that can be counted"},
	{"nine dimensions", "{\"a\":" F32("1,1,1,1,1,1,1,1,1") ONE(0, 4) "}", 4, -1,
	 "at most 8 dimensions, got 9"},
	{"unknown dtype", "{\"a\":{\"dtype\":\"F31\",\"shape\":[1]," ONE(0, 4) "}", 4, -1,
	 "/a/dtype: want a type"},
	{"unknown key", "{\"a\":{\"dtype\":\"F32\",\"more\":1,\"shape\":[1]," ONE(0, 4) "}", 4, -1,
	 "/a/more"},
	{"no dtype", "{\"a\":{\"shape\":[1]," ONE(0, 4) "}", 4, -1, "/a/dtype"},
	{"tensor is no object", "{\"a\":3}", 0, -1, "/a: want an object"},
	{"metadata of numbers", "{\"__metadata__\":{\"k\":3}}", 0, -1,
	 "/__metadata__/k: want a string"},
};

static void test_headers(void)
{
	char *path = in_folder("bad.safetensors");
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(headers); i++) {
		static const char zeros[16];
		struct gf_safetensors s = {0};
		struct gf_error err = {""};
		struct gf_text file = {0};
		uint64_t length = headers[i].length < 0 ? strlen(headers[i].header)
							: (uint64_t)headers[i].length;
		int rc;

		gf_text_add(&file, (const char *)&length, sizeof(length));
		gf_text_add(&file, headers[i].header, strlen(headers[i].header));
		gf_text_add(&file, zeros, headers[i].data);
		gf_file_write(path, file.data, file.length, NULL);
		gf_text_release(&file);
		rc = gf_safetensors_open(path, &s, &err);
		if (!headers[i].text) {
			EXPECT(rc == 0, "%s: %s", headers[i].label, err.text);
			gf_safetensors_close(&s);
			continue;
		}
		EXPECT(rc == -EINVAL, "%s: got %d", headers[i].label, rc);
		EXPECT(strstr(err.text, headers[i].text) && strstr(err.text, path) &&
			       !strchr(err.text, '\n'),
		       "%s: got \"%s\"", headers[i].label, err.text);
		if (rc == 0)
			gf_safetensors_close(&s);
	}
	gf_file_write(path, "1234567", 7, NULL);
	EXPECT(gf_safetensors_open(path, NULL, NULL) == -EINVAL, "7 bytes");
	EXPECT(gf_safetensors_open(folder, NULL, NULL) == -EINVAL, "a folder");
	EXPECT(gf_safetensors_open("/nonexistent", NULL, NULL) == -ENOENT, "missing");
	unlink(path);
	free(path);
}

/* A file that shrinks between opening and reading. */
static void test_shrinking(void)
{
	static const float data[4];
	const struct gf_tensor_source t = {"a", "F32", 1, {4}, data};
	char *path = in_folder("shrinks.safetensors");
	struct gf_safetensors s;
	struct gf_file_seal seal;
	struct gf_error err;
	float got[4];

	gf_safetensors_write(path, &t, 1, NULL, 0, &seal, NULL);
	EXPECT(gf_safetensors_open(path, &s, &err) == 0, "%s", err.text);
	EXPECT(truncate(path, (off_t)s.data_offset + 8) == 0, "truncate");
	EXPECT(gf_safetensors_load(&s, "a", "F32", 4, got, &err) == -EINVAL &&
		       strstr(err.text, "became shorter"),
	       "%s", err.text);
	gf_safetensors_close(&s);
	unlink(path);
	free(path);
}

/* One byte of a file becomes another. */
static void spoil(const char *path, size_t at)
{
	unsigned char byte = 0;
	FILE *f = fopen(path, "r+");

	EXPECT(f && fseek(f, (long)at, SEEK_SET) == 0 && fread(&byte, 1, 1, f) == 1, "%s", path);
	byte ^= 0x10;
	EXPECT(f && fseek(f, (long)at, SEEK_SET) == 0 && fwrite(&byte, 1, 1, f) == 1 &&
		       fclose(f) == 0,
	       "%s", path);
}

/* A bit that flips in a tensor's data is told of that tensor alone; one that flips in its checksum,
 * too. */
static void test_checksums(void)
{
	/* of "123456789" it is known */
	static const char check[] = "123456789";
	static const float bias[2] = {.5f, -1};
	const struct gf_tensor_source tensors[] = {
		{"fc.bias", "F32", 1, {2}, bias},
		{"known", "U8", 1, {9}, check},
		{"none", "F32", 1, {0}, NULL},
	};
	static const size_t places[] = {0, 3, 7};
	char *path = in_folder("sum.safetensors"), *value = NULL;
	struct gf_safetensors s = {0};
	struct gf_file_seal seal;
	struct gf_error err = {""};
	float got[2];
	char text[9];
	size_t i;

	for (i = 0; i <= GF_ARRAY_LENGTH(places); i++) {
		const bool flips = i < GF_ARRAY_LENGTH(places);
		int rc;

		gf_safetensors_write(path, tensors, 3, NULL, 0, &seal, NULL);
		gf_safetensors_open(path, &s, &err);
		if (flips)
			spoil(path, s.data_offset + places[i]);
		EXPECT(gf_safetensors_load(&s, "known", "U8", 9, text, &err) == 0 &&
			       gf_safetensors_load(&s, "none", "F32", 0, got, &err) == 0,
		       "place %zu: %s", i, err.text);
		rc = gf_safetensors_load(&s, "fc.bias", "F32", 2, got, &err);
		EXPECT(rc == (flips ? -EINVAL : 0), "place %zu: got %d", i, rc);
		EXPECT(!flips || (strstr(err.text, path) &&
				  strstr(err.text, "\"fc.bias\": want data with the CRC-32 ")),
		       "place %zu: %s", i, err.text);
		gf_safetensors_close(&s);
	}
	gf_safetensors_open(path, &s, &err);
	EXPECT(gf_safetensors_metadata(&s, "crc32:known", &value, &err) == 0, "%s", err.text);
	EXPECT_TEXT(value, "cbf43926");
	free(value);
	EXPECT(gf_safetensors_metadata(&s, "crc32:none", &value, &err) == 0, "%s", err.text);
	EXPECT_TEXT(value, "00000000");
	free(value);
	gf_safetensors_close(&s);
	unlink(path);
	free(path);
}

int main(void)
{
	make_folder("test_ckpt");
	test_round_trip();
	test_headers();
	test_shrinking();
	test_checksums();
	return TEST_END();
}
