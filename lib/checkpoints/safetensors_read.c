/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/safetensors.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/units.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "safetensors data is used as it lies in the file");

#define LENGTH_BYTES 8
#define BLOCK_BYTES  ((size_t)1 << 20)
/* The format's own limit. */
#define MAX_HEADER_BYTES 100000000u
#define METADATA_KEY     GF_SAFETENSORS_METADATA

static int read_at(const struct gf_safetensors *s, void *out, size_t size, size_t offset,
		   struct gf_error *err)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(s->fd, (char *)out + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return gf_error_errno(err, -errno, "%s", s->path);
		if (n == 0)
			return gf_error_set(err, -EINVAL,
					    "%s: the file became shorter while it was read",
					    s->path);
		done += (size_t)n;
	}
	return 0;
}

/* --- the header ---------------------------------------------------------- */

static int read_shape(struct gf_json_at *at, struct gf_stored_tensor *t, size_t *bytes,
		      struct gf_error *err)
{
	struct gf_json_at shape;
	size_t rank, dim, i;
	int rc = gf_json_array(at, "shape", &shape, &rank, err);

	if (rc)
		return rc;
	if (rank > GF_STORED_MAX_RANK)
		return gf_json_refuse(at, "shape", err, "want at most %d dimensions, got %zu",
				      GF_STORED_MAX_RANK, rank);
	t->count_elems = 1;
	for (i = 0; i < rank; i++) {
		rc = gf_json_size(gf_json_item(&shape, i), NULL, 0, SIZE_MAX / 2, &dim, err);
		if (rc)
			return rc;
		if (__builtin_mul_overflow(t->count_elems, dim, &t->count_elems))
			goto overflow;
	}
	if (__builtin_mul_overflow(t->count_elems, gf_safetensors_elem_bytes(t->dtype), bytes))
		goto overflow;
	return 0;
overflow:
	return gf_json_refuse(at, "shape", err, "want a product that can be counted");
}

static int read_dtype(struct gf_json_at *at, struct gf_stored_tensor *t, struct gf_error *err)
{
	GF_FREED char *name = NULL;
	int rc = gf_json_string(at, "dtype", &name, err);

	if (rc)
		return rc;
	t->dtype = gf_dtype_intern(name);
	if (!t->dtype)
		rc = gf_json_refuse(at, "dtype", err,
				    "want a type of one or more bytes (F32, U64, ...), got \"%s\"",
				    name);
	return rc;
}

static int read_offsets(struct gf_json_at *at, struct gf_stored_tensor *t, size_t bytes,
			struct gf_error *err)
{
	struct gf_json_at offsets;
	size_t n;
	int rc = gf_json_array(at, "data_offsets", &offsets, &n, err);

	if (rc)
		return rc;
	if (n != 2)
		return gf_json_refuse(at, "data_offsets", err, "want [begin, end], got %zu numbers",
				      n);
	rc = gf_json_size(gf_json_item(&offsets, 0), NULL, 0, SIZE_MAX / 2, &t->begin, err);
	rc = rc ?: gf_json_size(gf_json_item(&offsets, 1), NULL, 0, SIZE_MAX / 2, &t->end, err);
	if (rc)
		return rc;
	if (t->end < t->begin || t->end - t->begin != bytes)
		return gf_json_refuse(at, "data_offsets", err,
				      "want %zu bytes for this shape and dtype, got %zu to %zu",
				      bytes, t->begin, t->end);
	return 0;
}

static int read_entry(const struct gf_json_at *root, const char *key, struct gf_stored_tensor *t,
		      struct gf_error *err)
{
	struct gf_json_at at;
	size_t bytes = 0;
	int rc = gf_json_entry_object(root, key, &at, err);

	if (rc)
		return rc;
	t->name = gf_xstrdup(key);
	rc = read_dtype(&at, t, err);
	rc = rc ?: read_shape(&at, t, &bytes, err);
	rc = rc ?: read_offsets(&at, t, bytes, err);
	rc = rc ?: gf_json_end(&at, NULL, err);
	gf_json_leave(&at);
	return rc;
}

static int read_metadata(const struct gf_json_at *root, struct gf_error *err)
{
	struct gf_json_at at;
	const char *key;
	int rc = gf_json_entry_object(root, METADATA_KEY, &at, err);

	if (rc)
		return rc;
	for (key = gf_json_next_key(&at, NULL); key && !rc; key = gf_json_next_key(&at, key))
		if (!gf_json_is_string(&at, key))
			rc = gf_json_refuse(&at, key, err, "want a string");
	gf_json_leave(&at);
	return rc;
}

static int read_entries(struct gf_safetensors *s, struct gf_error *err)
{
	struct gf_json_at root;
	const char *key;
	size_t n = 0;
	int rc = gf_json_root(s->header, s->path, &root, err);

	if (rc)
		return rc;
	for (key = gf_json_next_key(&root, NULL); key; key = gf_json_next_key(&root, key))
		n++;
	s->tensors = gf_xcalloc(n ? n : 1, sizeof(*s->tensors));
	for (key = gf_json_next_key(&root, NULL); key && !rc; key = gf_json_next_key(&root, key)) {
		if (strcmp(key, METADATA_KEY) == 0)
			rc = read_metadata(&root, err);
		else
			rc = read_entry(&root, key, &s->tensors[s->ntensors++], err);
	}
	gf_json_leave(&root);
	return rc;
}

/* An empty tensor stands before the one that begins where it does. */
GF_ORDER(by_place, struct gf_stored_tensor,
	 GF_BY(x->begin, y->begin) ?: GF_BY(x->end, y->end)
					    ?: strcmp(x->name, y->name))

static int check_cover(struct gf_safetensors *s, size_t data_bytes, struct gf_error *err)
{
	size_t next = 0, i;

	if (s->ntensors)
		qsort(s->tensors, s->ntensors, sizeof(*s->tensors), by_place);
	for (i = 0; i < s->ntensors; i++) {
		const struct gf_stored_tensor *t = &s->tensors[i];

		if (t->begin != next)
			return gf_error_set(err, -EINVAL,
					    "%s: want tensor \"%s\" at byte %zu, got %zu (%s)",
					    s->path, t->name, next, t->begin,
					    t->begin < next ? "an overlap" : "a hole");
		next = t->end;
	}
	if (next != data_bytes)
		return gf_error_set(err, -EINVAL,
				    "%s: want %zu bytes of data as the header says, got %zu",
				    s->path, next, data_bytes);
	return 0;
}

static int read_length(const struct gf_safetensors *s, size_t file_bytes, size_t *length,
		       struct gf_error *err)
{
	uint64_t n;
	int rc;

	if (file_bytes < LENGTH_BYTES)
		return gf_error_set(err, -EINVAL, "%s: want a safetensors file, got %zu bytes",
				    s->path, file_bytes);
	rc = read_at(s, &n, sizeof(n), 0, err);
	if (rc)
		return rc;
	if (n > MAX_HEADER_BYTES || n > file_bytes - LENGTH_BYTES)
		return gf_error_set(err, -EINVAL,
				    "%s: want a safetensors file, whose header is inside it (%zu "
				    "bytes) and below %u bytes, its length says %llu",
				    s->path, file_bytes, MAX_HEADER_BYTES, (unsigned long long)n);
	*length = (size_t)n;
	return 0;
}

static int read_header(struct gf_safetensors *s, size_t file_bytes, struct gf_error *err)
{
	size_t length = 0;
	GF_FREED char *text = NULL;
	int rc = read_length(s, file_bytes, &length, err);

	if (rc)
		return rc;
	s->data_offset = LENGTH_BYTES + length;
	text = gf_xmalloc(length + 1);
	rc = read_at(s, text, length, LENGTH_BYTES, err);
	text[length] = '\0';
	if (!rc && text[0] != '{')
		rc = gf_error_set(err, -EINVAL, "%s: want a header that begins with {", s->path);
	rc = rc ?: gf_json_parse(text, length, s->path, &s->header, err);
	rc = rc ?: read_entries(s, err);
	return rc ?: check_cover(s, file_bytes - s->data_offset, err);
}

/* --- the interface ------------------------------------------------------- */

int gf_safetensors_open(const char *path, struct gf_safetensors *s, struct gf_error *err)
{
	struct gf_safetensors opened = {.fd = -1};
	size_t file_bytes;
	int rc = gf_file_open_regular(path, &opened.fd, &file_bytes, err);

	if (rc)
		return rc;
	opened.path = gf_xstrdup(path);
	rc = read_header(&opened, file_bytes, err);
	if (rc) {
		gf_safetensors_close(&opened);
		return rc;
	}
	*s = opened;
	return 0;
}

void gf_safetensors_close(struct gf_safetensors *s)
{
	if (!s || !s->path)
		return;
	for (size_t i = 0; i < s->ntensors; i++)
		free(s->tensors[i].name);
	free(s->tensors);
	gf_json_free(s->header);
	close(s->fd);
	free(s->path);
	memset(s, 0, sizeof(*s));
}

/* The tensors cover the data: the header's reader has seen to that. */
static size_t file_bytes(const struct gf_safetensors *s)
{
	return s->data_offset + (s->ntensors ? s->tensors[s->ntensors - 1].end : 0);
}

/* NULL if there is none of that name. */
static const struct gf_stored_tensor *find(const struct gf_safetensors *s, const char *name)
{
	for (size_t i = 0; i < s->ntensors; i++)
		if (strcmp(s->tensors[i].name, name) == 0)
			return &s->tensors[i];
	return NULL;
}

/* Files of earlier versions have none. */
static int check_sum(const struct gf_safetensors *s, const struct gf_stored_tensor *t,
		     const void *data, struct gf_error *err)
{
	char *key = gf_xasprintf(GF_CHECKSUM_KEY, t->name), *want = NULL;
	char found[GF_CHECKSUM_DIGITS + 1];
	int rc = 0;

	if (gf_safetensors_has_metadata(s, key))
		rc = gf_safetensors_metadata(s, key, &want, err);
	free(key);
	if (rc || !want)
		return rc;
	gf_checksum(data, t->end - t->begin, found);
	if (strcmp(want, found) != 0)
		rc = gf_error_set(
			err, -EINVAL,
			"%s: \"%s\": want data with the CRC-32 %s that was written, got %s",
			s->path, t->name, want, found);
	free(want);
	return rc;
}

int gf_safetensors_load(const struct gf_safetensors *s, const char *name, const char *dtype,
			size_t count_elems, void *out, struct gf_error *err)
{
	const struct gf_stored_tensor *t = find(s, name);
	int rc;

	if (!t)
		return gf_error_set(err, -EINVAL, "%s: want a tensor \"%s\", found none", s->path,
				    name);
	if (strcmp(t->dtype, dtype) != 0 || t->count_elems != count_elems)
		return gf_error_set(err, -EINVAL,
				    "%s: \"%s\": want %zu elements of %s, got %zu of %s", s->path,
				    name, count_elems, dtype, t->count_elems, t->dtype);
	rc = read_at(s, out, t->end - t->begin, s->data_offset + t->begin, err);
	return rc ?: check_sum(s, t, out, err);
}

int gf_safetensors_seal(const struct gf_safetensors *s, struct gf_file_seal *seal,
			struct gf_error *err)
{
	size_t size = file_bytes(s), at, n;
	GF_FREED char *block = gf_xmalloc(BLOCK_BYTES);
	struct gf_digest digest;
	int rc = 0;

	gf_digest_init(&digest);
	for (at = 0; at < size && !rc; at += n) {
		n = size - at < BLOCK_BYTES ? size - at : BLOCK_BYTES;
		rc = read_at(s, block, n, at, err);
		if (!rc)
			gf_digest_add(&digest, block, n);
	}
	if (!rc)
		gf_seal_end(seal, &digest);
	return rc;
}

bool gf_safetensors_has_metadata(const struct gf_safetensors *s, const char *key)
{
	struct gf_json_at root, at;
	struct gf_error ignored;
	bool has = false;

	if (gf_json_root(s->header, s->path, &root, &ignored))
		return false;
	if (!gf_json_object(&root, METADATA_KEY, &at, &ignored)) {
		has = gf_json_has(&at, key);
		gf_json_leave(&at);
	}
	gf_json_leave(&root);
	return has;
}

int gf_safetensors_metadata(const struct gf_safetensors *s, const char *key, char **value,
			    struct gf_error *err)
{
	struct gf_json_at root, at;
	int rc = gf_json_root(s->header, s->path, &root, err);

	if (rc)
		return rc;
	rc = gf_json_object(&root, METADATA_KEY, &at, err);
	gf_json_leave(&root);
	if (rc)
		return rc;
	rc = gf_json_string(&at, key, value, err);
	gf_json_leave(&at);
	return rc;
}

int gf_safetensors_metadata_size(const struct gf_safetensors *s, const char *key, size_t low,
				 size_t high, size_t *value, struct gf_error *err)
{
	long long number;
	GF_FREED char *text = NULL;
	int rc = gf_safetensors_metadata(s, key, &text, err);

	if (rc)
		return rc;
	rc = gf_units_int(text, (long long)low, high > INT64_MAX ? INT64_MAX : (long long)high,
			  &number, err);
	if (rc) {
		gf_error_prefix(err, "%s: /" METADATA_KEY "/%s", s->path, key);
		return rc;
	}
	*value = (size_t)number;
	return 0;
}
