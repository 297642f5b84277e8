/* SPDX-License-Identifier: BSD-3-Clause */
#include "checkpoints/set.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/heap.h"
#include "json/record.h"

#define AT(member) offsetof(struct gf_checkpoint_file, member)
static const struct gf_field file_fields[] = {
	{"name", GF_FIELD_STRING, .offset = AT(name),
	 .schema = "\"pattern\": \"^rank-(0|[1-9][0-9]*)\\\\.safetensors$\""},
	{"size_bytes", GF_FIELD_SIZE, .offset = AT(size_bytes), .high = GF_MAX_SIZE},
	{"sha256", GF_FIELD_STRING, .offset = AT(sha256)},
	{NULL},
};
#undef AT

static const struct gf_record file_record = {
	GF_RECORD(struct gf_checkpoint_file, file_fields),
	.one_line = true,
};

#define AT(member) offsetof(struct gf_checkpoint_parent, member)
static const struct gf_field parent_fields[] = {
	{"run", GF_FIELD_STRING, GF_OMITTED, .offset = AT(run)},
	{"step", GF_FIELD_SIZE, .offset = AT(step), .high = GF_MAX_SIZE},
	{"sha256", GF_FIELD_STRING, GF_OMITTED, .offset = AT(sha256)},
	{NULL},
};
#undef AT

static const struct gf_record parent_record = {
	GF_RECORD(struct gf_checkpoint_parent, parent_fields),
	.one_line = true,
};

/* Names come from a document: no others are ever opened. */
static int finish(const struct gf_json_at *at, void *item, struct gf_error *err)
{
	const struct gf_manifest *m = item;
	size_t i;
	int rc = 0;

	if (m->nfiles != (size_t)m->ranks)
		return gf_json_refuse(at, "files", err, "want a file of each of %d ranks, got %zu",
				      m->ranks, m->nfiles);
	for (i = 0; i < m->nfiles && !rc; i++) {
		char *want = gf_xasprintf("rank-%zu.safetensors", i);

		if (strcmp(m->files[i].name, want) != 0)
			rc = gf_json_refuse(at, "files", err, "want %s at place %zu, got \"%s\"",
					    want, i, m->files[i].name);
		free(want);
	}
	return rc;
}

#define AT(member) offsetof(struct gf_manifest, member)
static const struct gf_field fields[] = {
	{"run", GF_FIELD_STRING, .offset = AT(run)},
	{"step", GF_FIELD_SIZE, .offset = AT(step), .high = GF_MAX_SIZE},
	{"ranks", GF_FIELD_INT, .offset = AT(ranks), .low = 1, .high = INT_MAX},
	{"parent", GF_FIELD_OBJECT, GF_OMITTED, .offset = AT(parent), .record = &parent_record},
	{"settings", GF_FIELD_RAW, .offset = AT(settings)},
	{"files", GF_FIELD_LIST, .offset = AT(files), .count_offset = AT(nfiles),
	 .record = &file_record},
	{"sha256", GF_FIELD_STRING, .offset = AT(sha256)},
	{NULL},
};
#undef AT

static const struct gf_record record = {
	GF_RECORD(struct gf_manifest, fields),
	.finish = finish,
};

const struct gf_document_format gf_document_checkpoint = {
	.name = "gf-checkpoint",
	.description = "the manifest of a checkpoint's files",
	.record = &record,
};

/* --- its own digest ------------------------------------------------------ */

/* What stands after the digest of what stands before it. */
static const char tail[] = "\"\n}\n";

enum { DIGITS = GF_DIGEST_HEX - 1, TAIL = sizeof(tail) - 1 };

/* The digest that a text of that length must have; false: none can be. */
static bool seal_of(const char *text, size_t size, char hex[GF_DIGEST_HEX])
{
	char whole[GF_DIGEST_TEXT];

	if (size < DIGITS + TAIL || strcmp(text + size - TAIL, tail) != 0)
		return false;
	gf_digest_text(text, size - DIGITS - TAIL, whole);
	memcpy(hex, strchr(whole, ':') + 1, GF_DIGEST_HEX);
	return true;
}

char *gf_manifest_text(struct gf_manifest *m)
{
	char hex[GF_DIGEST_HEX] = "", *text;
	size_t size;

	free(m->sha256);
	m->sha256 = gf_xmalloc(GF_DIGEST_HEX);
	memset(m->sha256, '0', DIGITS);
	m->sha256[DIGITS] = '\0';
	text = gf_document_write(&gf_document_checkpoint, m);
	size = strlen(text);
	if (seal_of(text, size, hex)) {
		memcpy(text + size - DIGITS - TAIL, hex, DIGITS);
		memcpy(m->sha256, hex, GF_DIGEST_HEX);
	}
	return text;
}

static int check_seal(const char *path, const char *text, size_t size, struct gf_error *err)
{
	char want[GF_DIGEST_HEX];

	if (strlen(text) != size || !seal_of(text, size, want))
		return gf_error_set(
			err, -EINVAL,
			"%s: want a manifest that ends in its digest, found another end", path);
	if (memcmp(text + size - DIGITS - TAIL, want, DIGITS) != 0)
		return gf_error_set(
			err, -EINVAL,
			"%s: want the contents that were written, with the SHA-256 %.*s, found %s",
			path, DIGITS, text + size - DIGITS - TAIL, want);
	return 0;
}

/* --- the interface ------------------------------------------------------- */

int gf_manifest_read(const char *path, size_t step, struct gf_manifest *m, struct gf_error *err)
{
	struct gf_manifest got = {0};
	struct gf_json *root = NULL;
	char *text = NULL;
	size_t size;
	int rc = gf_file_read_regular(path, &text, &size, err);

	rc = rc ? rc : check_seal(path, text, size, err);
	rc = rc ? rc : gf_json_parse(text, size, path, &root, err);
	rc = rc ? rc : gf_document_read(root, path, &gf_document_checkpoint, &got, err);
	if (!rc && got.step != step) {
		rc = gf_error_set(err, -EINVAL,
				  "%s: want a manifest of step %zu, found one of step %zu", path,
				  step, got.step);
		gf_record_release(&record, &got);
	}
	gf_json_free(root);
	free(text);
	if (!rc)
		*m = got;
	return rc;
}

void gf_manifest_copy(struct gf_manifest *to, const struct gf_manifest *from)
{
	gf_record_copy(&record, to, from);
}

void gf_manifest_release(struct gf_manifest *m)
{
	gf_record_release(&record, m);
}
