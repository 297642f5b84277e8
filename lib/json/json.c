/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/json.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/heap.h"
#include "base/registry.h"

static char *dump(const json_t *value)
{
	return gf_heap_need(json_dumps(value, JSON_COMPACT));
}

void gf_json_free(struct gf_json *root)
{
	json_decref((json_t *)root);
}

/* --- places and messages ------------------------------------------------- */

static void add_path(struct gf_text *t, const struct gf_json_at *at)
{
	if (!at->parent)
		return;
	add_path(t, at->parent);
	if (at->key)
		gf_text_addf(t, "/%s", at->key);
	else
		gf_text_addf(t, "/%zu", at->index);
}

struct gf_json_path gf_json_path(const char *fmt, ...)
{
	struct gf_json_path path;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path.text, sizeof(path.text), fmt, ap);
	va_end(ap);
	return path;
}

int gf_json_refuse(const struct gf_json_at *at, const char *key, struct gf_error *err,
		   const char *fmt, ...)
{
	GF_RELEASED(gf_text_release) struct gf_text path = {0};
	struct gf_error reason;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason.text, sizeof(reason.text), fmt, ap);
	va_end(ap);
	add_path(&path, at);
	if (key) {
		gf_text_add(&path, "/", 1);
		gf_text_add_printable(&path, key, 100);
	}
	gf_error_set(err, -EINVAL, "%s%s%s: %s", at->file, path.data ? ": " : "",
		     path.data ? path.data : "", reason.text);
	return -EINVAL;
}

/* "want <want>, got <the value, in a few words>" */
static int refuse_value(const struct gf_json_at *v, struct gf_error *err, const char *want)
{
	const json_t *value = v->value;
	char number[GF_JSON_REAL_TEXT];
	GF_RELEASED(gf_text_release) struct gf_text got = {0};

	if (!value) {
		gf_text_addf(&got, "nothing");
	} else if (json_is_object(value)) {
		gf_text_addf(&got, "an object");
	} else if (json_is_array(value)) {
		gf_text_addf(&got, "an array");
	} else if (json_is_string(value)) {
		gf_text_add(&got, "\"", 1);
		gf_text_add_printable(&got, json_string_value(value), 60);
		gf_text_add(&got, "\"", 1);
	} else if (json_is_integer(value)) {
		gf_text_addf(&got, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	} else if (json_is_real(value)) {
		gf_json_real_text(json_real_value(value), number);
		gf_text_addf(&got, "%s", number);
	} else {
		gf_text_addf(&got, "%s",
			     json_is_true(value)    ? "true"
			     : json_is_false(value) ? "false"
						    : "null");
	}
	gf_json_refuse(v, NULL, err, "want %s, got %s", want, got.data);
	return -EINVAL;
}

/* --- cursors ------------------------------------------------------------- */

static const json_t *object_of(const struct gf_json_at *at)
{
	assert(json_is_object((json_t *)at->value));
	return at->value;
}

/* Marks a key as known. Objects of a document have a handful of keys, so a walk is cheaper than a
 * table. */
static void mark_seen(struct gf_json_at *at, const char *key)
{
	json_t *object = at->value;
	void *iter = json_object_iter(object);

	for (size_t i = 0; iter; i++, iter = json_object_iter_next(object, iter)) {
		if (strcmp(json_object_iter_key(iter), key) == 0) {
			at->seen[i] = 1;
			return;
		}
	}
}

/* What a getter reads: what is at the key, which counts as asked for. */
static struct gf_json_at place(struct gf_json_at *at, const char *key)
{
	struct gf_json_at v = {.file = at->file, .parent = at, .key = key};

	if (!key)
		return *at;
	v.value = json_object_get(object_of(at), key);
	if (v.value)
		mark_seen(at, key);
	return v;
}

static json_t *value_of(const struct gf_json_at *at, const char *key)
{
	return key ? json_object_get(object_of(at), key) : at->value;
}

void *gf_json_entry(const struct gf_json_at *array, size_t index)
{
	return json_array_get(array->value, index);
}

static int enter_object(const struct gf_json_at *v, struct gf_json_at *out, struct gf_error *err)
{
	if (!json_is_object((json_t *)v->value))
		return refuse_value(v, err, "an object");
	*out = *v;
	out->seen = gf_xcalloc(json_object_size(v->value) + 1, 1);
	return 0;
}

int gf_json_object(struct gf_json_at *at, const char *key, struct gf_json_at *out,
		   struct gf_error *err)
{
	struct gf_json_at v = place(at, key);

	return enter_object(&v, out, err);
}

int gf_json_array(struct gf_json_at *at, const char *key, struct gf_json_at *out, size_t *count,
		  struct gf_error *err)
{
	struct gf_json_at v = place(at, key);

	if (!json_is_array((json_t *)v.value))
		return refuse_value(&v, err, "an array");
	*out = v;
	*count = json_array_size(v.value);
	return 0;
}

int gf_json_root(const struct gf_json *root, const char *file, struct gf_json_at *at,
		 struct gf_error *err)
{
	return enter_object(&(struct gf_json_at){.file = file, .value = (void *)root}, at, err);
}

int gf_json_root_array(const struct gf_json *root, const char *file, struct gf_json_at *at,
		       size_t *count, struct gf_error *err)
{
	return gf_json_array(&(struct gf_json_at){.file = file, .value = (void *)root}, NULL, at,
			     count, err);
}

bool gf_json_root_is_array(const struct gf_json *root)
{
	return json_is_array((const json_t *)root);
}

bool gf_json_has(const struct gf_json_at *at, const char *key)
{
	return json_object_get(object_of(at), key) != NULL;
}

bool gf_json_is_array(const struct gf_json_at *at, const char *key)
{
	return json_is_array(value_of(at, key));
}

bool gf_json_is_object(const struct gf_json_at *at, const char *key)
{
	return json_is_object(value_of(at, key));
}

bool gf_json_is_string(const struct gf_json_at *at, const char *key)
{
	return json_is_string(value_of(at, key));
}

void gf_json_leave(struct gf_json_at *at)
{
	free(at->seen);
	at->seen = NULL;
}

const char *gf_json_next_key(const struct gf_json_at *at, const char *after)
{
	json_t *object = at->value;
	void *iter = after ? json_object_iter_next(object, json_object_key_to_iter(after))
			   : json_object_iter(object);

	return iter ? json_object_iter_key(iter) : NULL;
}

int gf_json_entry_object(const struct gf_json_at *at, const char *key, struct gf_json_at *out,
			 struct gf_error *err)
{
	struct gf_json_at v = {.file = at->file, .parent = at, .key = key};

	v.value = json_object_get(object_of(at), key);
	return enter_object(&v, out, err);
}

/* A key as a JSON pointer writes it. */
static int refuse_key(const struct gf_json_at *at, const char *key, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text escaped = {0};

	for (size_t i = 0; key[i]; i++) {
		if (key[i] == '~' || key[i] == '/')
			gf_text_addf(&escaped, "~%d", key[i] == '/');
		else
			gf_text_add(&escaped, &key[i], 1);
	}
	gf_json_refuse(at, escaped.data ? escaped.data : "", err,
		       "unknown key (keys of your own begin with x-)");
	return -EINVAL;
}

int gf_json_end(struct gf_json_at *at, char **extra, struct gf_error *err)
{
	json_t *object = at->value, *kept = NULL;
	void *iter = json_object_iter(object);
	int rc = 0;

	for (size_t i = 0; iter; i++, iter = json_object_iter_next(object, iter)) {
		const char *key = json_object_iter_key(iter);

		if (at->seen[i])
			continue;
		if (!extra || strncmp(key, "x-", 2) != 0) {
			rc = refuse_key(at, key, err);
			break;
		}
		if (!kept)
			kept = gf_heap_need(json_object());
		if (json_object_set(kept, key, json_object_iter_value(iter)))
			gf_heap_need(NULL);
	}
	if (!rc && extra)
		*extra = kept ? dump(kept) : NULL;
	json_decref(kept);
	gf_json_leave(at);
	return rc;
}

/* --- values -------------------------------------------------------------- */

int gf_json_string(struct gf_json_at *at, const char *key, char **out, struct gf_error *err)
{
	struct gf_json_at v = place(at, key);
	const char *text = json_string_value(v.value);

	if (!text)
		return refuse_value(&v, err, "a string");
	if (!*text)
		return refuse_value(&v, err, "a string that is not empty");
	for (size_t i = 0; text[i]; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80 && gf_text_hidden(text + i))
			return refuse_value(&v, err, "a string without control characters");
	*out = gf_xstrdup(text);
	return 0;
}

char *gf_json_word(struct gf_json_at *at, const char *key)
{
	char *word = NULL;

	gf_json_string(at, key, &word, NULL);
	return word ? word : gf_xstrdup("");
}

/* Reals from here on stand for several integers. */
#define WHOLE_END 0x1p53

/* An integer, or a real number that is one: some writers print 6 as 6.0. */
static int whole(const struct gf_json_at *v, json_int_t *out, struct gf_error *err)
{
	const json_t *value = (const json_t *)v->value;
	double real = json_real_value(value);

	*out = json_integer_value(value);
	if (json_is_integer(value))
		return 0;
	if (!json_is_real(value) || real != floor(real) || fabs(real) >= WHOLE_END)
		return refuse_value(v, err, "an integer");
	*out = (json_int_t)real;
	return 0;
}

int gf_json_size(struct gf_json_at *at, const char *key, size_t low, size_t high, size_t *out,
		 struct gf_error *err)
{
	struct gf_json_at v = place(at, key);
	json_int_t value;
	char want[64];
	int rc = whole(&v, &value, err);

	if (rc)
		return rc;
	if (value < 0 || (unsigned long long)value < low) {
		snprintf(want, sizeof(want), "an integer >= %zu", low);
		return refuse_value(&v, err, want);
	}
	if ((unsigned long long)value > high) {
		snprintf(want, sizeof(want), "an integer <= %zu", high);
		return refuse_value(&v, err, want);
	}
	*out = (size_t)value;
	return 0;
}

int gf_json_int(struct gf_json_at *at, const char *key, int low, int high, int *out,
		struct gf_error *err)
{
	struct gf_json_at v = place(at, key);
	json_int_t value;
	char want[64];
	int rc = whole(&v, &value, err);

	if (rc)
		return rc;
	if (value < low || value > high) {
		snprintf(want, sizeof(want), "an integer %s %d",
			 value < low ? ">=" : "<=", value < low ? low : high);
		return refuse_value(&v, err, want);
	}
	*out = (int)value;
	return 0;
}

int gf_json_real(struct gf_json_at *at, const char *key, double low, double high, double *out,
		 struct gf_error *err)
{
	struct gf_json_at v = place(at, key);
	double value = json_number_value(v.value);
	char want[64];

	if (!json_is_number((json_t *)v.value))
		return refuse_value(&v, err, "a number");
	if (value <= 0 && low > 0)
		return refuse_value(&v, err, "a number > 0");
	if (value < low || value > high) {
		snprintf(want, sizeof(want), "a number %s %g",
			 value < low ? ">=" : "<=", value < low ? low : high);
		return refuse_value(&v, err, want);
	}
	*out = value;
	return 0;
}

int gf_json_choice(struct gf_json_at *at, const char *key, const char *const *names, int *out,
		   struct gf_error *err)
{
	struct gf_json_at v = place(at, key);
	const char *text = json_string_value(v.value);
	GF_RELEASED(gf_text_release) struct gf_text want = {0};
	int i = text ? gf_names_index(names, text) : -1;

	if (i >= 0) {
		*out = i;
		return 0;
	}
	for (i = 0; names[i]; i++)
		gf_text_addf(&want, "%s\"%s\"",
			     i == 0         ? ""
			     : names[i + 1] ? ", "
					    : " or ",
			     names[i]);
	refuse_value(&v, err, want.data);
	return -EINVAL;
}

int gf_json_bool(struct gf_json_at *at, const char *key, bool *out, struct gf_error *err)
{
	struct gf_json_at v = place(at, key);

	if (!json_is_boolean((json_t *)v.value))
		return refuse_value(&v, err, "true or false");
	*out = json_is_true((json_t *)v.value);
	return 0;
}

int gf_json_raw(struct gf_json_at *at, const char *key, char **out, struct gf_error *err)
{
	struct gf_json_at v = place(at, key);

	if (!json_is_object((json_t *)v.value))
		return refuse_value(&v, err, "an object");
	*out = dump(v.value);
	return 0;
}

/* --- raw text ------------------------------------------------------------ */

static json_t *load_own(const char *text)
{
	json_t *value = gf_heap_need(gf_json_load(text, strlen(text), JSON_DECODE_ANY, NULL));

	assert(value); /* it came from json_dumps or from our own code */
	return value;
}

char *gf_json_merge(const char *a, const char *b)
{
	json_t *merged, *more;
	char *text;

	if (!a || !b)
		return gf_xstrdup_or_null(a ? a : b);
	merged = load_own(a);
	more = load_own(b);
	if (json_object_update_missing(merged, more))
		gf_heap_need(NULL);
	text = dump(merged);
	json_decref(merged);
	json_decref(more);
	return text;
}

static void put_value(struct gf_json_writer *w, const char *key, const json_t *value);

static void put_array(struct gf_json_writer *w, const char *key, const json_t *value)
{
	bool scalars = true;
	json_t *entry;
	size_t i;

	json_array_foreach(value, i, entry) scalars =
		scalars && !json_is_object(entry) && !json_is_array(entry);
	if (scalars)
		gf_json_open_row(w, key);
	else
		gf_json_open_array(w, key);
	json_array_foreach(value, i, entry) put_value(w, NULL, entry);
	gf_json_close_array(w);
}

static void put_members(struct gf_json_writer *w, json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value) put_value(w, key, value);
}

static void put_value(struct gf_json_writer *w, const char *key, const json_t *value)
{
	char number[32];

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		gf_json_open_object(w, key);
		put_members(w, (json_t *)value);
		gf_json_close_object(w);
		break;
	case JSON_ARRAY:
		put_array(w, key, value);
		break;
	case JSON_STRING:
		gf_json_put_string(w, key, json_string_value(value));
		break;
	case JSON_INTEGER:
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
		gf_json_put_token(w, key, number);
		break;
	case JSON_REAL:
		gf_json_put_real(w, key, json_real_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		gf_json_put_bool(w, key, json_is_true(value));
		break;
	case JSON_NULL:
		gf_json_put_token(w, key, "null");
		break;
	}
}

void gf_json_put_raw(struct gf_json_writer *w, const char *key, const char *json)
{
	json_t *value = load_own(json);

	put_value(w, key, value);
	json_decref(value);
}

void gf_json_put_extra(struct gf_json_writer *w, const char *extra)
{
	json_t *value;

	if (!extra)
		return;
	value = load_own(extra);
	put_members(w, value);
	json_decref(value);
}
