/* SPDX-License-Identifier: BSD-3-Clause */
#include "doc/axis_entry.h"

#include "json/json.h"

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
