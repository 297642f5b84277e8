/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/complete_parts.h"

static void add_escaped(struct gf_text *out, const char *text,
			const char *special)
{
	for (; *text; text++)
		gf_text_addf(out, "%s%c", strchr(special, *text) ? "\\" : "",
			     *text);
}

/* `a b c` or, with their help, `a\:"help of a" b c`, as _arguments takes them
 * between brackets. */
static void add_words(const struct gf_offer *o, struct gf_text *out)
{
	bool helped = false;
	size_t i;

	for (i = 0; i < o->nwords; i++)
		helped |= o->words[i].help != NULL;
	gf_text_addf(out, helped ? "((" : "(");
	for (i = 0; i < o->nwords; i++) {
		gf_text_addf(out, i ? " " : "");
		add_escaped(out, o->words[i].text, helped ? ":\\" : ":");
		if (!o->words[i].help)
			continue;
		gf_text_addf(out, "\\:\"");
		add_escaped(out, o->words[i].help, "\":\\$`");
		gf_text_addf(out, "\"");
	}
	gf_text_addf(out, helped ? "))" : ")");
}

/* Words for _values, where brackets hold the help. */
static void add_values(const struct gf_offer *o, struct gf_text *out)
{
	const struct gf_word *w;

	for (w = o->words; w < o->words + o->nwords; w++) {
		const char *at;

		gf_text_addf(out, " \"");
		/* a colon that _arguments leaves to _values, which leaves it */
		for (at = w->text; *at; at++)
			gf_text_addf(out, "%s%c", *at == ':' ? "\\\\\\" : "",
				     *at);
		if (w->help) {
			gf_text_addf(out, "[");
			add_escaped(out, w->help, "[]\":\\$`");
			gf_text_addf(out, "]");
		}
		gf_text_addf(out, "\"");
	}
}

/* ":name:action" of an option's argument. */
static void add_argument(const struct gf_setting *s, struct gf_text *out)
{
	static const char *const paths[] = {"", "_files", "_files -/"};
	struct gf_offer o;
	const char *at;

	gf_text_addf(out, ":");
	for (at = s->arg; *at; at++)
		gf_text_addf(out, "%s%c", *at == ':' ? "\\" : "",
			     tolower((unsigned char)*at));
	gf_text_addf(out, ":");
	gf_offer_init(&o, s);
	if (o.nwords && o.list) {
		gf_text_addf(out, "_values -s , word");
		add_values(&o, out);
	} else if (o.nwords && o.paths) {
		gf_text_addf(out, "{_alternative \"words\\:word\\:");
		add_words(&o, out);
		gf_text_addf(out, "\" \"files\\:file\\:%s\"}", paths[o.paths]);
	} else if (o.nwords) {
		add_words(&o, out);
	} else {
		gf_text_addf(out, "%s", paths[o.paths]);
	}
	gf_offer_release(&o);
}

/* Whether `option` is one of the names, which have blanks between. */
static bool among(const char *names, const char *option)
{
	char name[64];

	while (*names) {
		gf_settings_next_name(&names, name);
		if (strcmp(name, option) == 0)
			return true;
	}
	return false;
}

/* " --a --b": what the rules do not allow beside this option. */
static void add_without(const struct gf_setting_rule *rules, size_t nrules,
			const char *option, struct gf_text *names)
{
	char name[64];
	size_t i;

	for (i = 0; i < nrules; i++) {
		const char *without = rules[i].without;

		if (!without || !among(rules[i].options, option))
			continue;
		if (strcmp(without, "*") == 0) {
			gf_text_addf(names, " - *");
			continue;
		}
		while (*without) {
			gf_settings_next_name(&without, name);
			if (strcmp(name, option) != 0)
				gf_text_addf(names, " --%s", name);
		}
	}
}

/* "(-o --option --other)": what is not offered once the option is there. */
static void add_excluded(const struct gf_command *c, const struct gf_setting *s,
			 struct gf_text *out)
{
	static const struct gf_setting_rule shared[] = {
		{"help usage version", NULL, "*"},
	};
	struct gf_text names = {0};

	add_without(c->rules, c->nrules, s->name, &names);
	add_without(shared, GF_ARRAY_LENGTH(shared), s->name, &names);
	if (s->letter && !s->repeats)
		gf_text_addf(&names, " -%c --%s", s->letter, s->name);
	if (names.length)
		gf_text_addf(out, "(%s)", names.data + 1);
	gf_text_release(&names);
}

static void add_option(const struct gf_command *c, const struct gf_setting *s,
		       struct gf_text *out)
{
	struct gf_text spec = {0}, rest = {0};
	const char *sign = s->arg ? "=" : "";

	add_excluded(c, s, &spec);
	if (s->repeats)
		gf_text_addf(&spec, "*");
	gf_text_addf(&rest, "[");
	add_escaped(&rest, s->help, "[]:\\");
	gf_text_addf(&rest, "]");
	if (s->arg)
		add_argument(s, &rest);
	gf_text_addf(out, " \\\n\t");
	if (s->letter) {
		if (spec.length)
			gf_complete_quote(out, spec.data);
		gf_text_addf(out, "{-%c%s,--%s%s}", s->letter,
			     s->arg ? "+" : "", s->name, sign);
		gf_complete_quote(out, rest.data);
	} else {
		gf_text_addf(&spec, "--%s%s%s", s->name, sign, rest.data);
		gf_complete_quote(out, spec.data);
	}
	gf_text_release(&spec);
	gf_text_release(&rest);
}

void gf_complete_zsh(const struct gf_command *c, struct gf_text *out)
{
	const struct gf_setting *s;
	size_t i;

	gf_text_addf(out,
		     "#compdef %s\n"
		     "# SPDX-License-Identifier: BSD-3-Clause\n"
		     "# Written by make completions.\n"
		     "_arguments",
		     c->name);
	for (i = 0; (s = gf_complete_option(c, i)); i++)
		add_option(c, s, out);
	if (c->arguments)
		gf_text_addf(out, " \\\n\t'*:file:_files'");
	gf_text_addf(out, "\n");
}
