/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_JSON_RECORD_SCHEMA_H
#define GF_JSON_RECORD_SCHEMA_H

#include "base/text.h"
#include "json/record.h"

/*
 * Schemas of documents, made from the records that their readers walk. The functions append one
 * value of JSON; gf_field.schema, gf_record.schema and gf_field_own.schema have what a table cannot
 * say.
 */

/* A whole number between bounds. */
void gf_schema_size(double low, double high, struct gf_text *out);

/* Keys that stand before a record's own: `"a", "b"`, and `"a": SCHEMA, "b": SCHEMA`. */
struct gf_schema_first {
	const char *required, *properties;
};

/* An object of these keys, of `first` where it is not NULL, and of any x- keys. */
void gf_schema_object(const struct gf_record *r, const struct gf_schema_first *first,
		      struct gf_text *out);

/* A text without control characters. */
#define GF_SCHEMA_TEXT "{\"$ref\": \"#/$defs/text\"}"

/* The whole schema of a format; the caller frees. */
char *gf_document_schema(const struct gf_document_format *d);

#endif
