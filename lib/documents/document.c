/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/record.h"

#include <limits.h>
#include <string.h>

#include "base/heap.h"

#define VERSION 1

int gf_document_read(const struct gf_json *root, const char *file,
		     const struct gf_document_format *format, void *item, struct gf_error *err)
{
	const char *const formats[] = {format->name, NULL};
	const struct gf_record *r = format->record;
	struct gf_json_at at;
	int index, version, rc;
	GF_FREED void *read = NULL;

	rc = gf_json_root(root, file, &at, err);
	if (rc)
		return rc;
	read = gf_xcalloc(1, r->bytes);
	rc = gf_json_choice(&at, "format", formats, &index, err);
	rc = rc ?: gf_json_int(&at, "version", 1, INT_MAX, &version, err);
	if (!rc && version != VERSION)
		rc = gf_json_refuse(&at, "version", err, "want %d, got %d", VERSION, version);
	rc = rc ?: gf_record_read(&at, r, read, err);
	if (!rc)
		memcpy(item, read, r->bytes);
	gf_json_leave(&at);
	return rc;
}

char *gf_document_write(const struct gf_document_format *format, const void *item)
{
	struct gf_json_writer w = {0};

	gf_json_open_object(&w, NULL);
	gf_json_put_string(&w, "format", format->name);
	gf_json_put_int(&w, "version", VERSION);
	gf_record_write(&w, format->record, item);
	gf_json_close_object(&w);
	return gf_text_take(&w.text);
}

int gf_document_check(const struct gf_document_format *format, const void *item,
		      struct gf_error *err)
{
	GF_FREED char *text = gf_document_write(format, item);
	/* no file: "the plan", which is not the command's name over again */
	GF_FREED char *file = gf_xasprintf("the %s", strchr(format->name, '-') + 1);
	GF_FREED void *copy = gf_xcalloc(1, format->record->bytes);
	GF_RELEASED(gf_json_free_at) struct gf_json *root = NULL;
	int rc = gf_json_parse(text, strlen(text), file, &root, err);

	rc = rc ?: gf_document_read(root, file, format, copy, err);
	if (!rc)
		gf_record_release(format->record, copy);
	return rc;
}
