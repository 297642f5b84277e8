/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents/axis_entry.h"

#include "base/heap.h"
#include "json/json.h"
#include "json/record_schema.h"

int gf_entry_open(struct gf_json_at *at, const char *key, const char *const *names,
		  struct gf_json_at *inner, int *method, struct gf_error *err)
{
	int rc = gf_json_object(at, key, inner, err);

	if (rc)
		return rc;
	rc = gf_json_choice(inner, "method", names, method, err);
	if (rc)
		gf_json_leave(inner);
	return rc;
}

void gf_entry_schema(const void *entries, struct gf_text *out)
{
	const struct gf_entry *const *e;

	gf_text_addf(out, "{\"oneOf\": [");
	for (e = entries; *e; e++) {
		char *method = gf_xasprintf("\"method\": {\"const\": \"%s\"}", (*e)->name);
		const struct gf_schema_first first = {"\"method\"", method};

		gf_text_addf(out, "%s", e == entries ? "" : ", ");
		gf_schema_object((*e)->record, &first, out);
		free(method);
	}
	gf_text_addf(out, "]}");
}
