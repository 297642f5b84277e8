/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/keys.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/registry.h"
#include "base/text.h"
#include "base/units.h"
#include "json/record_parts.h"
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
		GF_FREED char *method = gf_xasprintf("\"method\": {\"const\": \"%s\"}", (*e)->name);
		const struct gf_schema_first first = {"\"method\"", method};

		gf_text_addf(out, "%s", e == entries ? "" : ", ");
		gf_schema_object((*e)->record, &first, out);
	}
	gf_text_addf(out, "]}");
}

/* Counts *k down. */
static const struct gf_field *field_at(const struct gf_record *r, size_t *k)
{
	const struct gf_field *f, *found;

	for (f = r->fields; f->key || f->type == GF_FIELD_INCLUDE; f++) {
		if (f->type == GF_FIELD_INCLUDE) {
			found = field_at(f->record, k);
			if (found)
				return found;
		} else if (f->help && !f->option && (*k)-- == 0) {
			return f;
		}
	}
	return NULL;
}

const struct gf_field *gf_keys_at(const struct gf_record *r, size_t k)
{
	return field_at(r, &k);
}

static bool begins(const char *key, const char *typed)
{
	return *typed && strncmp(key, typed, strlen(typed)) == 0;
}

const struct gf_field *gf_keys_find(const struct gf_record *r, const char *key)
{
	const struct gf_field *f, *found = NULL;
	size_t k, n = 0;

	for (k = 0; (f = gf_keys_at(r, k)); k++) {
		if (strcmp(f->key, key) == 0)
			return f;
		if (begins(f->key, key) && ++n)
			found = f;
	}
	return n == 1 ? found : NULL;
}

/* Takes "KEY=VALUE" off the text, up to the comma before the next key, and parts it in two. */
static char *take_key(char **rest, char **value)
{
	char *key = *rest, *comma = key, *next;

	*value = strchr(key, '=');
	while ((comma = strchr(comma, ','))) {
		next = comma + 1;
		next += strcspn(next, ",=");
		if (*next == '=')
			break;
		comma = next;
	}
	*rest = comma ? comma + 1 : NULL;
	if (comma)
		*comma = '\0';
	if (*value && comma && *value > comma)
		*value = NULL;
	if (*value)
		*(*value)++ = '\0';
	return key;
}

bool gf_keys_have(const char *text, const char *key)
{
	char *copy = gf_xstrdup_or_null(text), *rest = copy, *value;
	bool found = false;

	while (rest && !found)
		found = begins(key, take_key(&rest, &value));
	free(copy);
	return found;
}

/* The names of all keys of these records, once each, then `got`, which is none of them. */
static int refuse(const struct gf_keyed *of, size_t n, const char *got, struct gf_error *err)
{
	GF_FREED const char **names = gf_xcalloc(1, sizeof(*names));
	const struct gf_field *f;
	size_t count = 0, i, k;

	for (i = 0; i < n; i++)
		for (k = 0; (f = gf_keys_at(of[i].record, k)); k++) {
			if (gf_names_index(names, f->key) >= 0)
				continue;
			names = gf_xreallocarray(names, count + 2, sizeof(*names));
			names[count++] = f->key;
			names[count] = NULL;
		}
	if (count)
		gf_names_refuse(names, got, err);
	else
		gf_error_set(err, -EINVAL, "want no keys, got \"%s\"", got);
	return -EINVAL;
}

static int store(const struct gf_field *f, const char *value, const struct gf_keyed *to,
		 struct gf_error *err)
{
	GF_FREED void *scratch = to->item ? NULL : gf_xcalloc(1, to->record->bytes);
	int rc;

	if (value)
		rc = gf_field_parse(f, value, to->item ? to->item : scratch, err);
	else
		rc = gf_error_set(err, -EINVAL, "want %s=%s, got no value", f->key, f->unit);
	if (rc && value)
		gf_error_prefix(err, "%s", f->key);
	if (scratch)
		gf_record_release(to->record, scratch);
	return rc;
}

int gf_keys_set(const char *text, const struct gf_keyed *of, size_t n, bool absent,
		struct gf_error *err)
{
	char *copy = gf_xstrdup_or_null(text), *rest = copy, *key, *value;
	int rc = 0;

	while (rest && !rc) {
		const struct gf_field *f = NULL;
		size_t i;

		key = take_key(&rest, &value);
		for (i = 0; i < n && !f; i++)
			f = gf_keys_find(of[i].record, key);
		if (f)
			rc = store(f, value, &of[i - 1], err);
		else if (!absent)
			rc = refuse(of, n, key, err);
	}
	free(copy);
	return rc;
}

/* --- in words -------------------------------------------------------------- */

static const struct gf_entry *entry_at(const struct gf_registry *r, size_t i)
{
	return (const void *)gf_registry_at(r, i);
}

/* The entry's field of that key and meaning. */
static const struct gf_field *same(const struct gf_entry *e, const struct gf_field *f)
{
	const struct gf_field *own = gf_keys_find(e->record, f->key);

	return own && strcmp(own->help, f->help) == 0 ? own : NULL;
}

/* "topk, randomk: the share of elements that is sent (0.001; randomk: 0.1)" */
static void add_help(const struct gf_registry *entries, const struct gf_field *f,
		     struct gf_text *out)
{
	GF_RELEASED(gf_text_release) struct gf_text defaults = {0}, first = {0};
	const struct gf_entry *e;
	const struct gf_field *own;

	for (size_t i = 0; (e = entry_at(entries, i)); i++) {
		GF_RELEASED(gf_text_release) struct gf_text one = {0};

		if (!(own = same(e, f)))
			continue;
		gf_text_addf(out, "%s%s", out->length ? ", " : "", e->name);
		gf_field_print(own, e->defaults, &one);
		if (!defaults.length) {
			gf_text_addf(&defaults, "%s", one.data);
			gf_text_addf(&first, "%s", one.data);
		} else if (strcmp(one.data, first.data) != 0) {
			gf_text_addf(&defaults, "; %s: %s", e->name, one.data);
		}
	}
	gf_text_addf(out, ": %s (%s)", f->help, defaults.data);
}

/* An entry before this one has told of the field. */
static bool told(const struct gf_registry *entries, size_t before, const struct gf_field *f)
{
	for (size_t i = 0; i < before; i++)
		if (same(entry_at(entries, i), f))
			return true;
	return false;
}

void gf_keys_each(const struct gf_registry *entries, const struct gf_record *shared,
		  void (*take)(void *ctx, const struct gf_field *f, const char *help), void *ctx)
{
	const struct gf_entry *e;
	const struct gf_field *f;

	for (size_t i = 0; entries && (e = entry_at(entries, i)); i++)
		for (size_t k = 0; (f = gf_keys_at(e->record, k)); k++) {
			GF_RELEASED(gf_text_release) struct gf_text help = {0};

			if (told(entries, i, f))
				continue;
			add_help(entries, f, &help);
			take(ctx, f, help.data);
		}
	for (size_t k = 0; shared && (f = gf_keys_at(shared, k)); k++)
		take(ctx, f, f->help);
}

/* Whole numbers up to this one are exact as double, too. */
#define MAX_WHOLE 1e15

static const char *const switches[] = {"off", "on", NULL};

static bool is_in(const struct gf_field *f, const char *unit)
{
	return f->unit && strcmp(f->unit, unit) == 0;
}

/* Of what has a unit; a high of 0 is none. */
static int check_range(const struct gf_field *f, const char *text, double value,
		       struct gf_error *err)
{
	if (value < f->low)
		return gf_error_set(err, -EINVAL, "want at least %g, got %s", f->low, text);
	if (f->high > 0 && value > f->high)
		return gf_error_set(err, -EINVAL, "want at most %g, got %s", f->high, text);
	return 0;
}

static int parse_real(const struct gf_field *f, const char *text, double *p, struct gf_error *err)
{
	int rc;

	if (is_in(f, "TIME") || is_in(f, "RATE")) {
		rc = (is_in(f, "TIME") ? gf_units_time : gf_units_rate)(text, p, err);
		return rc ?: check_range(f, text, *p, err);
	}
	if (!f->names || strcmp(text, f->names[0]) != 0)
		return gf_units_real(text, f->low, f->high, p, err);
	*p = NAN;
	return 0;
}

static int parse_reals(const struct gf_field *f, const char *text, void *item, struct gf_error *err)
{
	char *copy = gf_xstrdup(text), *rest = copy, *part;
	double *numbers = gf_xcalloc(strlen(text) + 1, sizeof(*numbers));
	size_t count = 0;
	int rc = 0;

	if (f->names && strcmp(text, f->names[0]) == 0)
		rest = NULL;
	while (!rc && (part = strsep(&rest, ",")))
		rc = gf_units_real(part, f->low, f->high, &numbers[count++], err);
	free(copy);
	if (rc) {
		free(numbers);
		return rc;
	}
	free(gf_field_pointer(f, item));
	gf_field_set_pointer(f, item, numbers);
	*gf_field_count(f, item) = count;
	return 0;
}

int gf_field_parse(const struct gf_field *f, const char *text, void *item, struct gf_error *err)
{
	void *p = gf_field_place(f, item);
	long long whole;
	int rc, index = 0;

	switch (f->type) {
	case GF_FIELD_SIZE:
	case GF_FIELD_INT:
		if (is_in(f, "SIZE")) {
			rc = gf_units_size(text, p, err);
			return rc ?: check_range(f, text, (double)*(size_t *)p, err);
		}
		rc = gf_units_int(text, (long long)f->low, (long long)fmin(f->high, MAX_WHOLE),
				  &whole, err);
		if (!rc && f->type == GF_FIELD_INT)
			*(int *)p = (int)whole;
		else if (!rc)
			*(size_t *)p = (size_t)whole;
		return rc;
	case GF_FIELD_STEPS:
		return gf_steps_parse(text, p, gf_field_part(f, item), err);
	case GF_FIELD_BOOL:
		text = strcmp(text, "yes") == 0 ? "on" : strcmp(text, "no") == 0 ? "off" : text;
		rc = gf_names_find(switches, text, &index, err);
		if (!rc)
			*(bool *)p = index;
		return rc;
	case GF_FIELD_REAL:
		return parse_real(f, text, p, err);
	case GF_FIELD_CHOICE:
		return gf_names_find(f->names, text, p, err);
	case GF_FIELD_REALS:
		return parse_reals(f, text, item, err);
	case GF_FIELD_STRING:
		if (!*text)
			return gf_error_set(err, -EINVAL, "want %s, got \"\"", f->unit);
		free(gf_field_pointer(f, item));
		gf_field_set_pointer(f, item, gf_xstrdup(text));
		return 0;
	default:
		assert(!"a field type that no option can set");
		return -EINVAL;
	}
}

static void print_reals(const struct gf_field *f, const void *item, struct gf_text *out)
{
	const double *numbers = gf_field_pointer(f, item);
	size_t i, count = *gf_field_count(f, item);

	for (i = 0; i < count; i++)
		gf_text_addf(out, "%s%g", i ? "," : "", numbers[i]);
	if (!count && f->names)
		gf_text_addf(out, "%s", f->names[0]);
}

void gf_field_print(const struct gf_field *f, const void *item, struct gf_text *out)
{
	const void *p = gf_field_place(f, item);

	switch (f->type) {
	case GF_FIELD_SIZE:
		gf_text_addf(out, "%zu", *(const size_t *)p);
		break;
	case GF_FIELD_STEPS:
		if (gf_field_part(f, item)->of == GF_STEPS_KNOWN)
			gf_text_addf(out, "%zu", *(const size_t *)p);
		gf_steps_text(gf_field_part(f, item), out);
		break;
	case GF_FIELD_INT:
		gf_text_addf(out, "%d", *(const int *)p);
		break;
	case GF_FIELD_BOOL:
		gf_text_addf(out, "%s", switches[*(const bool *)p]);
		break;
	case GF_FIELD_REAL:
		if (f->names && isnan(*(const double *)p))
			gf_text_addf(out, "%s", f->names[0]);
		else if (!isnan(*(const double *)p))
			gf_text_addf(out, "%g", *(const double *)p);
		break;
	case GF_FIELD_CHOICE:
		if (*(const int *)p >= 0)
			gf_text_addf(out, "%s", f->names[*(const int *)p]);
		break;
	case GF_FIELD_STRING:
		if (gf_field_pointer(f, item))
			gf_text_addf(out, "%s", (const char *)gf_field_pointer(f, item));
		break;
	case GF_FIELD_REALS:
		print_reals(f, item, out);
		break;
	default:
		assert(!"a field type that no option can set");
	}
}
