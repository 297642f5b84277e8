/* SPDX-License-Identifier: BSD-3-Clause */
/* The getters: a place by key or by index, and what is wanted there. */
#include "json/json.h"
#include "json/json_parts.h"

int gf_json_object(struct gf_json_at *at, const char *key,
		   struct gf_json_at *out, struct gf_error *err)
{
	struct gf_json_at v = gf_json_member(at, key);

	return gf_json_enter_object(&v, out, err);
}

int gf_json_array(struct gf_json_at *at, const char *key,
		  struct gf_json_at *out, size_t *count, struct gf_error *err)
{
	struct gf_json_at v = gf_json_member(at, key);

	return gf_json_enter_array(&v, out, count, err);
}

int gf_json_item_object(struct gf_json_at *array, size_t index,
			struct gf_json_at *out, struct gf_error *err)
{
	struct gf_json_at v = gf_json_item(array, index);

	return gf_json_enter_object(&v, out, err);
}

int gf_json_item_array(struct gf_json_at *array, size_t index,
		       struct gf_json_at *out, size_t *count,
		       struct gf_error *err)
{
	struct gf_json_at v = gf_json_item(array, index);

	return gf_json_enter_array(&v, out, count, err);
}

int gf_json_item_real(struct gf_json_at *array, size_t index, double low,
		      double high, double *out, struct gf_error *err)
{
	struct gf_json_at v = gf_json_item(array, index);

	return gf_json_to_real(&v, low, high, out, err);
}

int gf_json_item_size(struct gf_json_at *array, size_t index, size_t low,
		      size_t high, size_t *out, struct gf_error *err)
{
	struct gf_json_at v = gf_json_item(array, index);

	return gf_json_to_size(&v, low, high, out, err);
}

int gf_json_item_string(struct gf_json_at *array, size_t index, char **out,
			struct gf_error *err)
{
	struct gf_json_at v = gf_json_item(array, index);

	return gf_json_to_string(&v, out, err);
}

int gf_json_string(struct gf_json_at *at, const char *key, char **out,
		   struct gf_error *err)
{
	struct gf_json_at v = gf_json_member(at, key);

	return gf_json_to_string(&v, out, err);
}

int gf_json_choice(struct gf_json_at *at, const char *key,
		   const char *const *names, int *out, struct gf_error *err)
{
	struct gf_json_at v = gf_json_member(at, key);

	return gf_json_to_choice(&v, names, out, err);
}

int gf_json_bool(struct gf_json_at *at, const char *key, bool *out,
		 struct gf_error *err)
{
	struct gf_json_at v = gf_json_member(at, key);

	return gf_json_to_bool(&v, out, err);
}

int gf_json_size(struct gf_json_at *at, const char *key, size_t low,
		 size_t high, size_t *out, struct gf_error *err)
{
	struct gf_json_at v = gf_json_member(at, key);

	return gf_json_to_size(&v, low, high, out, err);
}

int gf_json_int(struct gf_json_at *at, const char *key, int low, int high,
		int *out, struct gf_error *err)
{
	struct gf_json_at v = gf_json_member(at, key);

	return gf_json_to_int(&v, low, high, out, err);
}

int gf_json_real(struct gf_json_at *at, const char *key, double low,
		 double high, double *out, struct gf_error *err)
{
	struct gf_json_at v = gf_json_member(at, key);

	return gf_json_to_real(&v, low, high, out, err);
}

int gf_json_raw(struct gf_json_at *at, const char *key, char **out,
		struct gf_error *err)
{
	struct gf_json_at v = gf_json_member(at, key);

	return gf_json_to_raw(&v, out, err);
}
