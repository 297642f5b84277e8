/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cli/complete_parts.h"

/* In single quotes fish knows no escapes but these. */
static void quote(struct gf_text *out, const char *text)
{
	gf_text_addf(out, "'");
	for (; *text; text++)
		gf_text_addf(out, "%s%c", strchr("'\\", *text) ? "\\" : "",
			     *text);
	gf_text_addf(out, "'");
}

/* word<tab>"help" for each, as fish is to expand them. */
static void add_words(const struct gf_offer *o, struct gf_text *out)
{
	const char *at;
	size_t i;

	for (i = 0; i < o->nwords; i++) {
		gf_text_addf(out, "%s%s", i ? " " : "", o->words[i].text);
		if (!o->words[i].help)
			continue;
		gf_text_addf(out, "\\t\"");
		for (at = o->words[i].help; *at; at++)
			gf_text_addf(out, "%s%c",
				     strchr("\"\\$", *at) ? "\\" : "", *at);
		gf_text_addf(out, "\"");
	}
}

/* The one argument of -a. */
static void add_offer(const struct gf_offer *o, struct gf_text *out)
{
	struct gf_text words = {0}, all = {0};

	if (o->list && o->nwords) {
		gf_text_addf(&words, "printf '%%s\\n' ");
		add_words(o, &words);
		gf_text_addf(&all, "(__fish_complete_list , ");
		quote(&all, words.data);
		gf_text_addf(&all, ")");
	} else {
		add_words(o, &all);
	}
	if (o->paths == GF_PATHS_FOLDERS)
		gf_text_addf(&all, "%s(__fish_complete_directories)",
			     o->nwords ? " " : "");
	if (all.length) {
		gf_text_addf(out, " -a ");
		quote(out, all.data);
	}
	gf_text_release(&words);
	gf_text_release(&all);
}

static void add_option(const char *command, const struct gf_setting *s,
		       struct gf_text *out)
{
	struct gf_offer o;

	gf_offer_init(&o, s);
	gf_text_addf(out, "complete -c %s", command);
	if (s->letter)
		gf_text_addf(out, " -s %c", s->letter);
	gf_text_addf(out, " -l %s", s->name);
	if (o.paths == GF_PATHS_FILES)
		gf_text_addf(out, " -r -F");
	else if (s->arg)
		gf_text_addf(out, " -x");
	add_offer(&o, out);
	gf_text_addf(out, " -d ");
	quote(out, s->help);
	gf_text_addf(out, "\n");
	gf_offer_release(&o);
}

void gf_complete_fish(const struct gf_command *c, struct gf_text *out)
{
	const struct gf_setting *s;
	size_t i;

	gf_text_addf(out, "# SPDX-License-Identifier: BSD-3-Clause\n"
			  "# Written by make completions.\n");
	if (!c->arguments)
		gf_text_addf(out, "complete -c %s -f\n", c->name);
	for (i = 0; (s = gf_complete_option(c, i)); i++)
		add_option(c->name, s, out);
}
