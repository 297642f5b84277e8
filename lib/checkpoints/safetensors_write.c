/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/safetensors.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/registry.h"
#include "base/text.h"

#define ALIGNMENT 8

static const struct stored {
	const char *name;
	size_t bytes;
} types[] = {
	{"BOOL", 1},    {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"I16", 2}, {"F8_E5M2", 1},
	{"F8_E8M0", 1}, {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4}, {"U32", 4},
	{"F32", 4},     {"F64", 8}, {"I64", 8}, {"U64", 8},     {"C64", 8}, {NULL, 0},
};

const char *gf_dtype_intern(const char *name)
{
	const struct stored *s = gf_named_find(types, sizeof(*s), name);

	return s ? s->name : NULL;
}

size_t gf_safetensors_elem_bytes(const char *dtype)
{
	const struct stored *s = gf_named_find(types, sizeof(*s), dtype);

	return s ? s->bytes : 0;
}

static size_t bytes_of(const struct gf_tensor_source *t)
{
	size_t bytes = gf_safetensors_elem_bytes(t->dtype), i;

	assert(bytes);
	for (i = 0; i < t->rank; i++)
		bytes *= t->dims[i];
	return bytes;
}

/* Wide elements first. */
GF_ORDER(by_layout, const struct gf_tensor_source *const,
	 GF_BY(gf_safetensors_elem_bytes((*y)->dtype), gf_safetensors_elem_bytes((*x)->dtype))
		 ?: strcmp((*x)->name, (*y)->name))

static void put_entry(struct gf_json_writer *w, const struct gf_tensor_source *t, size_t begin)
{
	gf_json_open_object(w, t->name);
	gf_json_put_string(w, "dtype", t->dtype);
	gf_json_open_array(w, "shape");
	for (size_t i = 0; i < t->rank; i++)
		gf_json_put_size(w, NULL, t->dims[i]);
	gf_json_close_array(w);
	gf_json_open_array(w, "data_offsets");
	gf_json_put_size(w, NULL, begin);
	gf_json_put_size(w, NULL, begin + bytes_of(t));
	gf_json_close_array(w);
	gf_json_close_object(w);
}

/* A failure stays; the ranks together come to all calls. */
static void bring(const struct gf_tensor_source *t, bool whole, int *rc, struct gf_error *err)
{
	int brought = t->bring ? t->bring(t->ctx, t, whole, *rc ? NULL : err) : 0;

	*rc = *rc ? *rc : brought;
}

static void put_checksum(struct gf_json_writer *w, const struct gf_tensor_source *t, int *rc,
			 struct gf_error *err)
{
	char *key = gf_xasprintf(GF_CHECKSUM_KEY, t->name), text[GF_CHECKSUM_DIGITS + 1];

	bring(t, true, rc, err);
	if (!t->elsewhere) {
		gf_checksum(t->data, bytes_of(t), text);
		gf_json_put_string(w, key, text);
	}
	bring(t, false, rc, err);
	free(key);
}

/* The length word and the header, padded with blanks. */
static int make_header(struct gf_text *out, const struct gf_tensor_source *const *t,
		       size_t ntensors, const struct gf_metadata *metadata, size_t nmetadata,
		       struct gf_error *err)
{
	struct gf_json_writer w = {0};
	size_t at = 0, i;
	uint64_t length;
	int rc = 0;

	gf_json_open_line(&w, NULL);
	if (nmetadata || ntensors) {
		gf_json_open_object(&w, GF_SAFETENSORS_METADATA);
		for (i = 0; i < nmetadata; i++)
			gf_json_put_string(&w, metadata[i].key, metadata[i].value);
		for (i = 0; i < ntensors; i++)
			put_checksum(&w, t[i], &rc, err);
		gf_json_close_object(&w);
	}
	for (i = 0; i < ntensors; i++) {
		if (t[i]->elsewhere)
			continue;
		put_entry(&w, t[i], at);
		at += bytes_of(t[i]);
	}
	gf_json_close_object(&w);
	/* the format pads with blanks, not with a document's newline */
	while (w.text.length && w.text.data[w.text.length - 1] == '\n')
		w.text.length--;
	while (w.text.length % ALIGNMENT)
		gf_text_add(&w.text, " ", 1);
	length = w.text.length;
	gf_text_add(out, (const char *)&length, sizeof(length));
	gf_text_add(out, w.text.data, w.text.length);
	gf_text_release(&w.text);
	return rc;
}

static void put(struct gf_file *file, struct gf_digest *digest, const void *data, size_t size)
{
	if (!size)
		return;
	fwrite(data, 1, size, file->stream);
	gf_digest_add(digest, data, size);
}

int gf_safetensors_write(const char *path, const struct gf_tensor_source *t, size_t ntensors,
			 const struct gf_metadata *metadata, size_t nmetadata,
			 struct gf_file_seal *seal, struct gf_error *err)
{
	GF_FREED const struct gf_tensor_source **order = NULL;
	GF_RELEASED(gf_text_release) struct gf_text header = {0};
	struct gf_digest digest;
	struct gf_file file;
	int made = gf_file_create_own(&file, path, 0666, err), rc;

	order = gf_xcalloc(ntensors ? ntensors : 1, sizeof(*order));
	for (size_t i = 0; i < ntensors; i++)
		order[i] = &t[i];
	if (ntensors)
		qsort(order, ntensors, sizeof(*order), by_layout);
	rc = make_header(&header, order, ntensors, metadata, nmetadata, made ? NULL : err);
	errno = 0;
	gf_digest_init(&digest);
	if (!made)
		put(&file, &digest, header.data, header.length);
	for (size_t i = 0; i < ntensors; i++) {
		bring(order[i], true, &rc, made ? NULL : err);
		if (!made && !order[i]->elsewhere && !ferror(file.stream))
			put(&file, &digest, order[i]->data, bytes_of(order[i]));
		bring(order[i], false, &rc, made ? NULL : err);
	}
	gf_seal_end(seal, &digest);
	if (made)
		return made;
	if (rc) /* a tensor is not whole */
		gf_file_abandon(&file);
	return rc ?: gf_file_commit(&file, err); /* sees a failed write */
}

void gf_checksum(const void *data, size_t size_bytes, char text[GF_CHECKSUM_DIGITS + 1])
{
	/* without data zlib gives its start value, whatever there was */
	unsigned long crc = crc32_z(0, NULL, 0);

	if (size_bytes)
		crc = crc32_z(crc, data, size_bytes);
	snprintf(text, GF_CHECKSUM_DIGITS + 1, "%08lx", crc & 0xfffffffful);
}

void gf_seal_end(struct gf_file_seal *seal, struct gf_digest *d)
{
	unsigned char raw[GF_DIGEST_BYTES];

	seal->size_bytes = d->length_bytes;
	gf_digest_end(d, raw);
	gf_digest_hex(raw, seal->sha256);
}
