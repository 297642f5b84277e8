/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/json: JSON, and documents as tables of fields that are read, written, copied and checked. */
#ifndef GF_JSON_JSON_H
#define GF_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/*
 * Reading and writing JSON with the place in every message. json.c and
 * json_text.c alone see jansson. Documents with a fixed set of keys are described
 * by tables (json/record.h) and seldom call these getters themselves.
 *
 * READING. gf_json_parse takes a whole text and refuses duplicate keys, more than GF_JSON_MAX_DEPTH
 * levels, NaN and infinities, with "<file>:<line>: <column>: ...". A struct gf_json_at is a cursor:
 * a borrowed value plus the path that led to it ("/levels/1/size"). It lives as long as the root
 * and its parent cursor. A getter's key is NULL for what the cursor itself is on. Getters return 0
 * or -EINVAL with "<file>: <path>: want ..., got ..."; outputs are set only on 0.
 *
 * A reader calls one getter per known key and then gf_json_end, which refuses every key that was
 * not asked for, unless it begins with "x-"; those come out as one compact JSON object text, which
 * a writer puts back at the same place.
 */
struct gf_json;
struct json_t;
struct json_error_t;

#define GF_JSON_MAX_DEPTH 64

struct gf_json_at {
	const char *file;                /* for messages; borrowed */
	const struct gf_json_at *parent; /* NULL at the root */
	const char *key;                 /* NULL inside an array */
	size_t index;
	void *value;
	unsigned char *seen; /* one flag per key; owned, see gf_json_end */
};

/* As json_loadb, for this folder. jansson takes a lack of memory within a text for bad syntax,
 * loses bytes of a string, or crashes: its memory is taken by base/heap.h meanwhile. A program that
 * has given it another memory keeps that. */
struct json_t *gf_json_load(const char *text, size_t size, size_t flags,
			    struct json_error_t *found);

/* Parses exactly one value; `file` only names the source in messages. */
int gf_json_parse(const char *text, size_t size, const char *file, struct gf_json **root,
		  struct gf_error *err);
/* Parses one value of a concatenation, from *used on, and moves *used past it. *root is NULL, with
 * rc 0, if only white space was left. */
int gf_json_parse_next(const char *text, size_t size, const char *file, size_t *used,
		       struct gf_json **root, struct gf_error *err);
/* One value of a program that is less strict: keys may come twice (the last counts), strings hold
 * \u0000 (and end there), and integers have any size: all numbers are reals. */
int gf_json_parse_loose(const char *text, size_t size, const char *file, struct gf_json **root,
			struct gf_error *err);
void gf_json_free(struct gf_json *root);
static inline void gf_json_free_at(struct gf_json **root)
{
	gf_json_free(*root);
}

/* The cursor on the root; refuses a root that is no object. Close it with gf_json_end (or
 * gf_json_leave after an error), as every object cursor. */
int gf_json_root(const struct gf_json *root, const char *file, struct gf_json_at *at,
		 struct gf_error *err);

/* The cursor on a root that is an array; refuses another. It needs no closing.
 */
int gf_json_root_array(const struct gf_json *root, const char *file, struct gf_json_at *at,
		       size_t *count, struct gf_error *err);
bool gf_json_root_is_array(const struct gf_json *root);

bool gf_json_has(const struct gf_json_at *at, const char *key);
/* The value at key is an array, whatever is in it. */
bool gf_json_is_array(const struct gf_json_at *at, const char *key);
bool gf_json_is_object(const struct gf_json_at *at, const char *key);
bool gf_json_is_string(const struct gf_json_at *at, const char *key);
int gf_json_object(struct gf_json_at *at, const char *key, struct gf_json_at *out,
		   struct gf_error *err);
/* *out then serves gf_json_item; no gf_json_end for arrays. */
int gf_json_array(struct gf_json_at *at, const char *key, struct gf_json_at *out, size_t *count,
		  struct gf_error *err);
/* The cursor on an array's entry, for a getter that it is an argument of, with NULL as the key. */
#define gf_json_item(array, i)                                                                     \
	(&(struct gf_json_at){.file = (array)->file,                                               \
			      .parent = (array),                                                   \
			      .index = (i),                                                        \
			      .value = gf_json_entry(array, i)})
void *gf_json_entry(const struct gf_json_at *array, size_t index);

/* A string of at least one character, none of them a control character (it may end up in a one-line
 * message), copied; the caller frees. */
int gf_json_string(struct gf_json_at *at, const char *key, char **out, struct gf_error *err);
/* "" where there is no such string. */
char *gf_json_word(struct gf_json_at *at, const char *key);
/* A string out of a NULL-terminated list; *out is its index. */
int gf_json_choice(struct gf_json_at *at, const char *key, const char *const *names, int *out,
		   struct gf_error *err);
int gf_json_bool(struct gf_json_at *at, const char *key, bool *out, struct gf_error *err);
/* An integer in [low, high]; 3.0 is no integer. */
int gf_json_size(struct gf_json_at *at, const char *key, size_t low, size_t high, size_t *out,
		 struct gf_error *err);
int gf_json_int(struct gf_json_at *at, const char *key, int low, int high, int *out,
		struct gf_error *err);
/* A number (integers allowed) in [low, high]. */
int gf_json_real(struct gf_json_at *at, const char *key, double low, double high, double *out,
		 struct gf_error *err);
/* The key that follows `after` in the file's order (NULL: the first); NULL at the end; borrowed. It
 * walks objects whose keys are names, not fields. */
const char *gf_json_next_key(const struct gf_json_at *at, const char *after);
/* As gf_json_object, without marking the key as asked for: the cost does not grow with the number
 * of keys. Close `at` with gf_json_leave. */
int gf_json_entry_object(const struct gf_json_at *at, const char *key, struct gf_json_at *out,
			 struct gf_error *err);

/* Any object, as compact JSON text, uninterpreted; the caller frees. */
int gf_json_raw(struct gf_json_at *at, const char *key, char **out, struct gf_error *err);
/* A path below a cursor, such as "tensors/3/ready_s". */
struct gf_json_path {
	char text[64];
};
struct gf_json_path gf_json_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "<file>: <path>[/key]: <formatted>"; returns -EINVAL. key may be NULL, or such a path. */
int gf_json_refuse(const struct gf_json_at *at, const char *key, struct gf_error *err,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Refuses unknown keys, gives the x- keys (*extra NULL if none; extra itself may be NULL to refuse
 * them too), frees the cursor's flags in any case. */
int gf_json_end(struct gf_json_at *at, char **extra, struct gf_error *err);
/* Frees the cursor's flags only; safe on a zeroed or ended cursor. */
void gf_json_leave(struct gf_json_at *at);

/* Two object texts as one: a's keys, then those of b that a lacks. Either may be NULL; the caller
 * frees. */
char *gf_json_merge(const char *a, const char *b);

/*
 * WRITING. Keys appear in the order of the calls; two blanks of indentation; rows and lines stay on
 * one line; a real is the shortest decimal that reads back the same, and shows that it is no
 * integer (3.0, 8e9). Values that are not finite become null, which no reader accepts. The root's
 * close adds a newline.
 */
struct gf_json_writer {
	struct gf_text text;
	int depth;
	int inline_from; /* depth of the outermost one-line container; 0 none */
	bool filled;     /* the innermost container has something in it */
};

void gf_json_open_object(struct gf_json_writer *w, const char *key);
void gf_json_open_line(struct gf_json_writer *w, const char *key);
void gf_json_close_object(struct gf_json_writer *w);
/* Ends a line of JSON Lines: it goes to out, and the writer begins anew. */
void gf_json_close_line(struct gf_json_writer *w, struct gf_text *out);
void gf_json_open_array(struct gf_json_writer *w, const char *key);
void gf_json_open_row(struct gf_json_writer *w, const char *key);
void gf_json_close_array(struct gf_json_writer *w);
/* key is NULL inside arrays. */
void gf_json_put_string(struct gf_json_writer *w, const char *key, const char *value);
void gf_json_put_size(struct gf_json_writer *w, const char *key, size_t value);
void gf_json_put_int(struct gf_json_writer *w, const char *key, int value);
void gf_json_put_real(struct gf_json_writer *w, const char *key, double value);
void gf_json_put_bool(struct gf_json_writer *w, const char *key, bool value);
/* One token, as it is. */
void gf_json_put_token(struct gf_json_writer *w, const char *key, const char *token);
/* Valid JSON text, re-indented. */
void gf_json_put_raw(struct gf_json_writer *w, const char *key, const char *json);
/* The keys of an object text from gf_json_end; NULL writes nothing. */
void gf_json_put_extra(struct gf_json_writer *w, const char *extra);

/* Is all of it UTF-8? */
bool gf_json_is_text(const char *value);
/* A string in quotes, escaped; bytes that are no UTF-8 become U+FFFD. */
void gf_json_quote(struct gf_text *t, const char *value);
/* The decimal that gf_json_put_real writes. */
#define GF_JSON_REAL_TEXT 32
void gf_json_real_text(double value, char out[GF_JSON_REAL_TEXT]);

/* JSON Lines as a table, with the separator (',' or a tab) between cells: a heading of all keys, in
 * the order in which rows first have them, then the rows, with nothing where a row lacks a key.
 * Keys of an object in a row follow its key: "over.lanes". Cells with a separator, a quote or a
 * line's end are quoted as RFC 4180 has it. -EINVAL: a line is no object. */
int gf_json_rows_text(const char *lines, char separator, struct gf_text *out, struct gf_error *err);

/* JSON as bytes, before it is parsed. */

/* Line and column, both from 1, of an offset. */
void gf_json_place(const char *text, size_t offset, int *line, int *column);

#endif
