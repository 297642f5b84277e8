/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/settings.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "json/keys.h"

static int store_whole(const struct gf_setting *s, const char *arg, void *to, struct gf_error *err)
{
	long long number;
	int rc = gf_units_int(arg, (long long)s->low, (long long)s->high, &number, err);

	if (rc)
		return rc;
	if (s->kind == GF_SETTING_INT)
		*(int *)to = (int)number;
	else
		*(size_t *)to = (size_t)number;
	return 0;
}

static int store_choice(const struct gf_setting *s, const char *arg, int *to, struct gf_error *err)
{
	const char *name = arg;

	for (int i = 0; s->words && s->words[i][0]; i++)
		if (strcmp(s->words[i][0], arg) == 0)
			name = s->words[i][1];
	return gf_names_find(s->names, name, to, err);
}

static int store_item(const struct gf_setting *s, const char *arg, void *items, size_t i,
		      struct gf_error *err)
{
	long long whole = 0;
	int rc;

	if (s->kind == GF_SETTING_REALS)
		return gf_units_real(arg, s->low, s->high, (double *)items + i, err);
	if (s->kind == GF_SETTING_RATES)
		return gf_units_rate(arg, (double *)items + i, err);
	rc = gf_units_int(arg, (long long)s->low, (long long)s->high, &whole, err);
	((int *)items)[i] = (int)whole;
	return rc;
}

/* *items is the caller's to free; given twice, the last one counts. */
static int store_items(const struct gf_setting *s, const char *arg, void **items, size_t *count,
		       struct gf_error *err)
{
	GF_FREED const char **parts = NULL;
	void *read;
	size_t n = 0;
	int rc = 0;

	if (s->kind == GF_SETTING_REALS)
		parts = gf_cli_split(arg);
	else
		rc = gf_cli_split_once(arg, &parts, err);
	if (rc)
		return rc;
	while (parts[n])
		n++;
	read = gf_xcalloc(n + 1, sizeof(double)); /* or ints, which are smaller */
	for (n = 0; !rc && parts[n]; n++)
		rc = store_item(s, parts[n], read, n, err);
	if (rc) {
		free(read);
		return rc;
	}
	free(*items);
	*items = read;
	*count = n;
	return 0;
}

static int store_size(const struct gf_setting *s, const char *arg, size_t *to, struct gf_error *err)
{
	size_t value;
	int rc = gf_units_size(arg, &value, err);

	if (rc == 0 && (double)value < s->low)
		rc = gf_error_set(err, -EINVAL, "want at least %.0f bytes, got %zu", s->low, value);
	if (rc == 0)
		*to = value;
	return rc;
}

static int store_flops(const struct gf_setting *s, const char *arg, double *to,
		       struct gf_error *err)
{
	double value;
	int rc = gf_units_flops(arg, &value, err);

	if (rc == 0 && (value < s->low || value > s->high))
		rc = gf_error_set(err, -EINVAL, "want %g to %g FLOP/s, got %g", s->low, s->high,
				  value);
	if (rc == 0)
		*to = value;
	return rc;
}

static int store_name(const struct gf_setting *s, const char *name, void *arguments, int *to,
		      struct gf_error *err)
{
	const struct gf_registry *r = &s->from[0];
	const struct gf_named *e;

	if (s->names)
		return gf_names_find(s->names, name, to, err);
	if (!r->entries && s->keys->fields->help)
		return gf_error_set(err, -EINVAL, "want %s=%s, got \"%s\"", s->keys->fields->key,
				    s->keys->fields->unit, name);
	if (!r->entries)
		return gf_field_parse(s->keys->fields, name, (char *)arguments + s->offset2, err);
	for (int i = 0; (e = gf_registry_at(r, (size_t)i)); i++)
		if (strcmp(e->name, name) == 0) {
			*to = i;
			return 0;
		}
	return gf_registry_refuse(r, NULL, NULL, name, err);
}

/* Stores the keys of s->keys, and checks the others: those of the entry, or if it is open, of any
 * one. */
static int store_keys(const struct gf_setting *s, const char *text, int entry, void *arguments,
		      struct gf_error *err)
{
	const struct gf_registry *r = &s->from[0];
	const struct gf_entry *e;
	GF_FREED struct gf_keyed *of = NULL;
	size_t n = 0, i = entry < 0 ? 0 : (size_t)entry;

	while (s->keys_offset && gf_registry_at(r, n))
		n++;
	of = gf_xcalloc(n + 1, sizeof(*of));
	n = 0;
	for (; s->keys_offset && (e = (const void *)gf_registry_at(r, i)); i++) {
		of[n++].record = e->record;
		if (entry >= 0)
			break;
	}
	if (s->keys)
		of[n++] = (struct gf_keyed){s->keys, (char *)arguments + s->offset2};
	return gf_keys_set(text, of, n, false, err);
}

static bool is_entry(const struct gf_setting *s, const char *name)
{
	return s->from[0].entry_bytes || gf_named_find(s->from[0].entries, 0, name);
}

static int store_entry(const struct gf_setting *s, const char *arg, void *arguments,
		       struct gf_error *err)
{
	const char *keys = arg + strcspn(arg, ":=");
	GF_FREED char *name = gf_xmemdup(arg, strlen(arg) + 1);
	bool named = *keys != '=';
	int rc = 0, entry = -1;

	name[keys - arg] = '\0';
	if (s->own_offset && *keys == ':' && !is_entry(s, name)) {
		*(const char **)(void *)((char *)arguments + s->own_offset) = arg;
		return 0;
	}
	if (named)
		rc = store_name(s, name, arguments, &entry, err);
	else
		keys = arg;
	if (rc == 0 && *keys) {
		keys += *keys == ':';
		rc = store_keys(s, keys, entry, arguments, err);
		if (rc && named)
			gf_error_prefix(err, "%s", name);
		if (s->keys_offset)
			*(const char **)(void *)((char *)arguments + s->keys_offset) = keys;
	}
	if (rc == 0 && entry >= 0)
		*(int *)(void *)((char *)arguments + s->offset) = entry;
	return rc;
}

int gf_setting_store(const struct gf_setting *s, const char *arg, void *arguments,
		     struct gf_error *err)
{
	void *to = (char *)arguments + s->offset;

	switch (s->kind) {
	case GF_SETTING_TEXT:
		*(const char **)to = arg;
		return *arg ? 0 : gf_error_set(err, -EINVAL, "want %s, got \"\"", s->arg);
	case GF_SETTING_WHOLE:
	case GF_SETTING_INT:
		return store_whole(s, arg, to, err);
	case GF_SETTING_REAL:
		return gf_units_real(arg, s->low, s->high, to, err);
	case GF_SETTING_TIME:
		return gf_units_time(arg, to, err);
	case GF_SETTING_RATE:
		return gf_units_rate(arg, to, err);
	case GF_SETTING_FLOPS:
		return store_flops(s, arg, to, err);
	case GF_SETTING_SIZE:
		return store_size(s, arg, to, err);
	case GF_SETTING_CHOICE:
		return store_choice(s, arg, to, err);
	case GF_SETTING_FLAG:
		*(bool *)to = true;
		return 0;
	case GF_SETTING_OWN:
		return s->store(arg, to, err);
	case GF_SETTING_REALS:
	case GF_SETTING_INTS:
	case GF_SETTING_RATES:
		return store_items(s, arg, to, (size_t *)((char *)arguments + s->offset2), err);
	case GF_SETTING_ENTRY:
		return store_entry(s, arg, arguments, err);
	case GF_SETTING_FIELDS:
		break;
	}
	return 0;
}

static size_t expand(const struct gf_setting *row, const struct gf_field *f,
		     struct gf_setting *settings)
{
	static const enum gf_setting_kind kinds[] = {
		[GF_FIELD_STRING] = GF_SETTING_TEXT, [GF_FIELD_SIZE] = GF_SETTING_WHOLE,
		[GF_FIELD_REAL] = GF_SETTING_REAL,   [GF_FIELD_CHOICE] = GF_SETTING_CHOICE,
		[GF_FIELD_REALS] = GF_SETTING_REALS,
	};
	size_t count = 0;

	for (; f->key; f++) {
		if (f->type == GF_FIELD_GROUP)
			count += expand(row, f->record->fields, settings + count);
		if (!f->option)
			continue;
		assert(kinds[f->type] || f->type == GF_FIELD_STRING);
		settings[count++] = (struct gf_setting){
			.name = f->option,
			.arg = f->unit,
			.group = row->group,
			.kind = kinds[f->type],
			.offset = row->offset + f->offset,
			.help = f->help,
			.low = f->low,
			.high = f->high,
			.names = f->names,
			.offset2 = row->offset + f->count_offset,
			.defaults = row->defaults,
			.often = row->often,
			.field = f,
		};
	}
	return count;
}

size_t gf_setting_expand(const struct gf_setting *rows, size_t n, struct gf_setting *settings)
{
	size_t i, count = 0;

	for (i = 0; i < n; i++)
		if (rows[i].kind == GF_SETTING_FIELDS)
			count += expand(&rows[i], rows[i].keys->fields, settings + count);
		else
			settings[count++] = rows[i];
	assert(count <= GF_CLI_SETTINGS_MOST);
	return count;
}

/* Takes one of the names with blanks between; *at moves on, "" ends. */
static void next_name(const char **at, char name[64])
{
	size_t n = strcspn(*at, " ");

	snprintf(name, 64, "%.*s", (int)n, *at);
	*at += n;
	*at += strspn(*at, " ");
}

bool gf_setting_listed(const char *names, const char *name)
{
	bool all = names[0] == '*', found = false;
	char one[64];

	while (*names && !found) {
		next_name(&names, one);
		found = strcmp(one, name) == 0;
	}
	return found != all;
}

/* The first of them that was given, but for `self`; NULL: none was. */
static const char *first_given(const struct gf_cli *cli, const char *names, const char *self)
{
	const struct gf_setting *s = cli->command->settings;

	for (size_t i = 0; i < cli->command->nsettings; i++)
		if (cli->given[i] && strcmp(s[i].name, self) != 0 &&
		    gf_setting_listed(names, s[i].name))
			return s[i].name;
	return NULL;
}

/* "--a, --b or --c" */
static void add_names(struct gf_text *t, const char *names)
{
	char name[64];
	bool first = true;

	for (; *names; first = false) {
		next_name(&names, name);
		gf_text_addf(t, "%s--%s", first ? "" : *names ? ", " : " or ", name);
	}
}

static int check_option(const struct gf_cli *cli, const struct gf_setting_rule *r,
			const char *option, struct gf_error *err)
{
	GF_RELEASED(gf_text_release) struct gf_text with = {0};
	const char *other = r->without ? first_given(cli, r->without, option) : NULL;

	if (other)
		return gf_error_set(err, -EINVAL, "--%s goes without --%s", option, other);
	if (!r->with || first_given(cli, r->with, option))
		return 0;
	add_names(&with, r->with);
	gf_error_set(err, -EINVAL, "--%s goes with %s", option, with.data);
	return -EINVAL;
}

int gf_setting_check(const struct gf_command *command, const struct gf_cli *cli,
		     struct gf_error *err)
{
	const char *options;
	char option[64];
	int rc = 0;

	for (size_t i = 0; i < command->nrules && !rc; i++) {
		for (options = command->rules[i].options; *options && !rc;) {
			next_name(&options, option);
			if (gf_cli_given(cli, option))
				rc = check_option(cli, &command->rules[i], option, err);
		}
	}
	return rc ?: gf_cli_outputs_apart(cli, err);
}
