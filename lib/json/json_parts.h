/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_JSON_JSON_PARTS_H
#define GF_JSON_JSON_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "json/json.h"

/*
 * The interface between json.c, which interprets values, and json_get.c, which
 * finds them. A place is a cursor, whose value is NULL if there is nothing. The
 * functions below obey the rules of json/json.h.
 */

/* The place of a member, which counts as asked for; and of an array's entry. */
struct gf_json_at gf_json_member(struct gf_json_at *at, const char *key);
struct gf_json_at gf_json_item(const struct gf_json_at *array, size_t index);

int gf_json_enter_object(const struct gf_json_at *v, struct gf_json_at *out,
			 struct gf_error *err);
int gf_json_enter_array(const struct gf_json_at *v, struct gf_json_at *out,
			size_t *count, struct gf_error *err);
int gf_json_to_string(const struct gf_json_at *v, char **out,
		      struct gf_error *err);
int gf_json_to_choice(const struct gf_json_at *v, const char *const *names,
		      int *out, struct gf_error *err);
int gf_json_to_bool(const struct gf_json_at *v, bool *out,
		    struct gf_error *err);
int gf_json_to_size(const struct gf_json_at *v, size_t low, size_t high,
		    size_t *out, struct gf_error *err);
int gf_json_to_int(const struct gf_json_at *v, int low, int high, int *out,
		   struct gf_error *err);
int gf_json_to_real(const struct gf_json_at *v, double low, double high,
		    double *out, struct gf_error *err);
int gf_json_to_raw(const struct gf_json_at *v, char **out,
		   struct gf_error *err);

#endif
