/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/settings.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/list.h"

static int store_whole(const struct gf_setting *s, const char *arg, void *to,
		       struct gf_error *err)
{
	long long number;
	int rc = gf_units_int(arg, (long long)s->low, (long long)s->high,
			      &number, err);

	if (rc)
		return rc;
	if (s->kind == GF_SETTING_INT)
		*(int *)to = (int)number;
	else
		*(size_t *)to = (size_t)number;
	return 0;
}

static int store_choice(const struct gf_setting *s, const char *arg, int *to,
			struct gf_error *err)
{
	const char *name = arg;
	int i;

	for (i = 0; s->words && s->words[i][0]; i++)
		if (strcmp(s->words[i][0], arg) == 0)
			name = s->words[i][1];
	return gf_names_find(s->names, name, to, err);
}

static int store_item(const struct gf_setting *s, const char *arg, void *items,
		      size_t i, struct gf_error *err)
{
	long long whole = 0;
	int rc;

	if (s->kind == GF_SETTING_REALS)
		return gf_units_real(arg, s->low, s->high, (double *)items + i,
				     err);
	if (s->kind == GF_SETTING_RATES)
		return gf_units_rate(arg, (double *)items + i, err);
	rc = gf_units_int(arg, (long long)s->low, (long long)s->high, &whole,
			  err);
	((int *)items)[i] = (int)whole;
	return rc;
}

/* *items is the caller's to free; given twice, the last one counts. */
static int store_items(const struct gf_setting *s, const char *arg,
		       void **items, size_t *count, struct gf_error *err)
{
	const char **parts = NULL;
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
	read = gf_xcalloc(n + 1, sizeof(double));
	for (n = 0; !rc && parts[n]; n++)
		rc = store_item(s, parts[n], read, n, err);
	free(parts);
	if (rc) {
		free(read);
		return rc;
	}
	free(*items);
	*items = read;
	*count = n;
	return 0;
}

static int store_size(const struct gf_setting *s, const char *arg, size_t *to,
		      struct gf_error *err)
{
	size_t value;
	int rc = gf_units_size(arg, &value, err);

	if (rc == 0 && (double)value < s->low)
		rc = gf_error_set(err, -EINVAL,
				  "want at least %.0f bytes, "
				  "got %zu",
				  s->low, value);
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
		rc = gf_error_set(err, -EINVAL, "want %g to %g FLOP/s, got %g",
				  s->low, s->high, value);
	if (rc == 0)
		*to = value;
	return rc;
}

int gf_setting_store(const struct gf_setting *s, const char *arg,
		     void *arguments, struct gf_error *err)
{
	void *to = (char *)arguments + s->offset;

	switch (s->kind) {
	case GF_SETTING_TEXT:
		*(const char **)to = arg;
		return 0;
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
		return store_items(s, arg, to,
				   (size_t *)((char *)arguments + s->offset2),
				   err);
	}
	return 0;
}

bool gf_cli_given(const struct gf_cli *cli, const char *name)
{
	const struct gf_command *c = cli->command;
	size_t i;

	for (i = 0; i < c->nsettings; i++)
		if (!strcmp(c->settings[i].name, name))
			return cli->given[i];
	assert(!"a rule names a setting that is none");
	return false;
}

/* Takes one of the names with blanks between; *at moves on, "" ends. */
static void next_name(const char **at, char name[64])
{
	size_t n = strcspn(*at, " ");

	snprintf(name, 64, "%.*s", (int)n, *at);
	*at += n;
	*at += strspn(*at, " ");
}

/* The first of them that was given, but for `self`; false: none was. */
static bool first_given(const struct gf_cli *cli, const char *names,
			const char *self, char found[64])
{
	const struct gf_command *c = cli->command;
	size_t i;

	for (i = 0; i < c->nsettings && !strcmp(names, "*"); i++) {
		snprintf(found, 64, "%s", c->settings[i].name);
		if (cli->given[i] && strcmp(found, self) != 0)
			return true;
	}
	while (strcmp(names, "*") != 0 && *names) {
		next_name(&names, found);
		if (gf_cli_given(cli, found) && strcmp(found, self) != 0)
			return true;
	}
	return false;
}

/* "--a, --b or --c" */
static void add_names(struct gf_text *t, const char *names)
{
	char name[64];
	bool first = true;

	for (; *names; first = false) {
		next_name(&names, name);
		gf_text_addf(t, "%s--%s",
			     first    ? ""
			     : *names ? ", "
				      : " or ",
			     name);
	}
}

static int check_option(const struct gf_cli *cli,
			const struct gf_setting_rule *r, const char *option,
			struct gf_error *err)
{
	struct gf_text with = {0};
	char other[64];

	if (r->without && first_given(cli, r->without, option, other))
		return gf_error_set(err, -EINVAL, "--%s goes without --%s",
				    option, other);
	if (!r->with || first_given(cli, r->with, option, other))
		return 0;
	add_names(&with, r->with);
	gf_error_set(err, -EINVAL, "--%s goes with %s", option, with.data);
	gf_text_release(&with);
	return -EINVAL;
}

int gf_settings_check(const struct gf_command *command,
		      const struct gf_cli *cli, struct gf_error *err)
{
	const char *options;
	char option[64];
	size_t i;
	int rc = 0;

	for (i = 0; i < command->nrules && !rc; i++) {
		for (options = command->rules[i].options; *options && !rc;) {
			next_name(&options, option);
			if (gf_cli_given(cli, option))
				rc = check_option(cli, &command->rules[i],
						  option, err);
		}
	}
	return rc;
}
