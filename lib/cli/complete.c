/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/complete.h"

#include <string.h>

#include "base/array.h"
#include "cli/share.h"

/* argp has these; the letter h is a hidden option. */
static const struct gf_setting of_argp[] = {
	{"help", .help = "print the options", .letter = 'h'},
	{"usage", .help = "print a short usage line"},
	{"version", .help = "print the version", .letter = 'V'},
};

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

/* The paths that its argument may be; --data takes both kinds. */
static const char *paths_of(const struct gf_setting *s)
{
	const char *arg = or_empty(s->arg);
	size_t n = strlen(arg);

	if (n >= 3 && strcmp(arg + n - 3, "DIR") == 0)
		return "folders";
	return s->share || (n >= 4 && strcmp(arg + n - 4, "FILE") == 0) ||
			       strcmp(arg, "TRACE") == 0
		       ? "files"
		       : "";
}

static void add_registry(struct gf_text *out, const struct gf_registry *r)
{
	const struct gf_named *e;
	size_t i;

	for (i = 0; r->entries && (e = gf_registry_at(r, i)); i++)
		if (!r->offers || r->offers(e))
			gf_text_addf(out, "word\t%s\t%s\n", e->name,
				     or_empty(e->description));
}

static void add_options(struct gf_text *out, const struct gf_setting *settings,
			size_t count)
{
	const struct gf_setting *s;
	size_t i;

	for (s = settings; s < settings + count; s++) {
		if (s->hidden)
			continue;
		gf_text_addf(out, "option\t%s\t%.1s\t%s\t%s\t%s\t%s\n", s->name,
			     (char[]){(char)s->letter, '\0'}, or_empty(s->arg),
			     s->repeats ? "1" : "", paths_of(s), s->help);
		/* a choice's names are those of its registry */
		for (i = 0; s->names && s->names[i] &&
			    !(s->kind == GF_SETTING_CHOICE && s->from->entries);
		     i++)
			gf_text_addf(out, "word\t%s\t\n", s->names[i]);
		for (i = 0; i < GF_ARRAY_LENGTH(s->from); i++)
			add_registry(out, &s->from[i]);
		if (s->share) {
			struct gf_list shipped =
				gf_cli_share_list(s->share, NULL);

			add_registry(out, &shipped.of);
			gf_cli_share_list_free(&shipped);
		}
	}
}

/* "* but NAMES" with the names that it stands for. */
static void add_rule(struct gf_text *out, const struct gf_command *c,
		     const struct gf_setting_rule *r)
{
	bool all_but = strncmp(r->without, "* ", 2) == 0;
	size_t i;

	gf_text_addf(out, "rule\t%s\t%s", r->options,
		     all_but ? "" : r->without);
	for (i = 0; all_but && i < c->nsettings; i++)
		if (gf_setting_listed(r->without, c->settings[i].name))
			gf_text_addf(out, "%s ", c->settings[i].name);
	gf_text_addf(out, "\n");
}

void gf_cli_complete(const struct gf_command *c, struct gf_text *out)
{
	size_t i;

	gf_text_addf(out, "command\t%s\t%s\n", c->name, or_empty(c->arguments));
	add_options(out, c->settings, c->nsettings);
	add_options(out, gf_cli_shared, gf_cli_nshared);
	add_options(out, of_argp, GF_ARRAY_LENGTH(of_argp));
	for (i = 0; i < c->nrules; i++)
		if (c->rules[i].without)
			add_rule(out, c, &c->rules[i]);
}
