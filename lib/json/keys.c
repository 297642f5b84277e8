/* SPDX-License-Identifier: BSD-3-Clause */
#include "json/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"

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
	const char **names = gf_xcalloc(1, sizeof(*names));
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
	free(names);
	return -EINVAL;
}

static int store(const struct gf_field *f, const char *value, const struct gf_keyed *to,
		 struct gf_error *err)
{
	void *scratch = to->item ? NULL : gf_xcalloc(1, to->record->bytes);
	int rc;

	if (value)
		rc = gf_field_parse(f, value, to->item ? to->item : scratch, err);
	else
		rc = gf_error_set(err, -EINVAL, "want %s=%s, got no value", f->key, f->unit);
	if (rc && value)
		gf_error_prefix(err, "%s", f->key);
	if (scratch)
		gf_record_release(to->record, scratch);
	free(scratch);
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
	struct gf_text defaults = {0}, first = {0};
	const struct gf_entry *e;
	const struct gf_field *own;
	size_t i;

	for (i = 0; (e = entry_at(entries, i)); i++) {
		struct gf_text one = {0};

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
		gf_text_release(&one);
	}
	gf_text_addf(out, ": %s (%s)", f->help, defaults.data);
	gf_text_release(&defaults);
	gf_text_release(&first);
}

/* An entry before this one has told of the field. */
static bool told(const struct gf_registry *entries, size_t before, const struct gf_field *f)
{
	size_t i;

	for (i = 0; i < before; i++)
		if (same(entry_at(entries, i), f))
			return true;
	return false;
}

void gf_keys_each(const struct gf_registry *entries, const struct gf_record *shared,
		  void (*take)(void *ctx, const struct gf_field *f, const char *help), void *ctx)
{
	const struct gf_entry *e;
	const struct gf_field *f;
	size_t i, k;

	for (i = 0; entries && (e = entry_at(entries, i)); i++)
		for (k = 0; (f = gf_keys_at(e->record, k)); k++) {
			struct gf_text help = {0};

			if (told(entries, i, f))
				continue;
			add_help(entries, f, &help);
			take(ctx, f, help.data);
			gf_text_release(&help);
		}
	for (k = 0; shared && (f = gf_keys_at(shared, k)); k++)
		take(ctx, f, f->help);
}
