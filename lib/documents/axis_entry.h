/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_AXIS_ENTRY_H
#define GF_DOCUMENTS_AXIS_ENTRY_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "json/keys.h"

struct gf_json_at;

/* Objects of a document whose key "method" names an entry (json/keys.h): selections
 * (documents/selections/selection.h) and periods (documents/periods/period.h). */

/* Adds the JSON Schema of an object that is one of these entries (NULL-terminated): its key
 * "method" and the entry's keys. */
void gf_entry_schema(const void *entries, struct gf_text *out);
/* Opens the object at key, and reads which entry of names (NULL-terminated) its key "method" names.
 * The caller reads on in *inner. */
int gf_entry_open(struct gf_json_at *at, const char *key, const char *const *names,
		  struct gf_json_at *inner, int *method, struct gf_error *err);

#endif
