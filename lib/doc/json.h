/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOC_JSON_H
#define GF_DOC_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/*
 * Reading and writing JSON with the place in every message. json.c is the only
 * file that sees jansson.
 *
 * READING. gf_json_parse takes a whole text and refuses duplicate keys, more
 * than GF_JSON_MAX_DEPTH levels, NaN and infinities. A struct gf_json_at is a
 * cursor: a borrowed value plus the path that led to it ("/levels/1/size"). It
 * lives as long as the root and its parent cursor. Getters return 0 or -EINVAL
 * with "<file>: <path>: want ..., got ..."; outputs are set only on 0.
 *
 * A reader calls one getter per known key and then gf_json_end, which refuses
 * every key that was not asked for, unless it begins with "x-"; those come out
 * as one compact JSON object text, which a writer puts back at the same place.
 */
struct gf_json;

#define GF_JSON_MAX_DEPTH 64

struct gf_json_at {
	const char *file;                /* for messages; borrowed */
	const struct gf_json_at *parent; /* NULL at the root */
	const char *key;                 /* NULL inside an array */
	size_t index;
	void *value;
	unsigned char *seen; /* one flag per key; owned, see gf_json_end */
};

/* Parses exactly one value; `file` only names the source in messages. */
int gf_json_parse(const char *text, size_t size, const char *file,
		  struct gf_json **root, struct gf_error *err);
/* Parses the first value of a concatenation; *used is where the next begins.
 * *root is NULL, with rc 0, when only white space was left. */
int gf_json_parse_next(const char *text, size_t size, const char *file,
		       size_t *used, struct gf_json **root,
		       struct gf_error *err);
void gf_json_free(struct gf_json *root);

/* The cursor on the root; refuses a root that is no object. Close it with
 * gf_json_end (or gf_json_leave after an error), as every object cursor. */
int gf_json_root(const struct gf_json *root, const char *file,
		 struct gf_json_at *at, struct gf_error *err);

bool gf_json_has(const struct gf_json_at *at, const char *key);
int gf_json_object(struct gf_json_at *at, const char *key,
		   struct gf_json_at *out, struct gf_error *err);
/* *out then serves gf_json_item; no gf_json_end for arrays. */
int gf_json_array(struct gf_json_at *at, const char *key,
		  struct gf_json_at *out, size_t *count, struct gf_error *err);
int gf_json_item_object(struct gf_json_at *array, size_t index,
			struct gf_json_at *out, struct gf_error *err);
int gf_json_item_array(struct gf_json_at *array, size_t index,
		       struct gf_json_at *out, size_t *count,
		       struct gf_error *err);
int gf_json_item_real(struct gf_json_at *array, size_t index, double low,
		      double high, double *out, struct gf_error *err);
int gf_json_item_size(struct gf_json_at *array, size_t index, size_t low,
		      size_t high, size_t *out, struct gf_error *err);
int gf_json_item_string(struct gf_json_at *array, size_t index, char **out,
			struct gf_error *err);

/* A string, copied; the caller frees. Refuses embedded NUL. */
int gf_json_string(struct gf_json_at *at, const char *key, char **out,
		   struct gf_error *err);
/* A string out of a NULL-terminated list; *out is its index. */
int gf_json_choice(struct gf_json_at *at, const char *key,
		   const char *const *names, int *out, struct gf_error *err);
int gf_json_bool(struct gf_json_at *at, const char *key, bool *out,
		 struct gf_error *err);
/* An integer in [low, high]; 3.0 is no integer. */
int gf_json_size(struct gf_json_at *at, const char *key, size_t low,
		 size_t high, size_t *out, struct gf_error *err);
int gf_json_int(struct gf_json_at *at, const char *key, int low, int high,
		int *out, struct gf_error *err);
/* A number (integers allowed) in [low, high]. */
int gf_json_real(struct gf_json_at *at, const char *key, double low,
		 double high, double *out, struct gf_error *err);
/* Any value, as compact JSON text, uninterpreted; the caller frees. */
int gf_json_raw(struct gf_json_at *at, const char *key, char **out,
		struct gf_error *err);
/* "<file>: <path>[/key]: <formatted>"; returns -EINVAL. key may be NULL. */
int gf_json_refuse(const struct gf_json_at *at, const char *key,
		   struct gf_error *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Refuses unknown keys, gives the x- keys (*extra NULL if none; extra itself
 * may be NULL to refuse them too), frees the cursor's flags in any case. */
int gf_json_end(struct gf_json_at *at, char **extra, struct gf_error *err);
/* Frees the cursor's flags only; safe on a zeroed or ended cursor. */
void gf_json_leave(struct gf_json_at *at);

/*
 * WRITING. Keys appear in the order of the calls; two blanks of indentation;
 * an array of numbers or strings stays on one line; reals with 17 digits, cut
 * to the shortest form that reads back the same.
 */
struct gf_json_writer {
	struct gf_text text;
	int depth;
	bool first;  /* nothing written in this container yet */
	bool inline_ /* inside a one-line array */;
};

void gf_json_open_object(struct gf_json_writer *w, const char *key);
void gf_json_close_object(struct gf_json_writer *w);
void gf_json_open_array(struct gf_json_writer *w, const char *key);
void gf_json_close_array(struct gf_json_writer *w);
/* A one-line array of scalars; closed by gf_json_close_array. */
void gf_json_open_row(struct gf_json_writer *w, const char *key);
/* key is NULL inside arrays. */
void gf_json_put_string(struct gf_json_writer *w, const char *key,
			const char *value);
void gf_json_put_size(struct gf_json_writer *w, const char *key, size_t value);
void gf_json_put_int(struct gf_json_writer *w, const char *key, int value);
void gf_json_put_real(struct gf_json_writer *w, const char *key, double value);
void gf_json_put_bool(struct gf_json_writer *w, const char *key, bool value);
/* Valid JSON text, re-indented. */
void gf_json_put_raw(struct gf_json_writer *w, const char *key,
		     const char *json);
/* The keys of an object text from gf_json_end; NULL writes nothing. */
void gf_json_put_extra(struct gf_json_writer *w, const char *extra);

#endif
