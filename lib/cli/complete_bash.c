/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "cli/complete_parts.h"

enum { COLUMNS = 80 };

/* Words on lines of at most COLUMNS. */
struct lines {
	struct gf_text *out;
	const char *between, *broken; /* two words of a line; two lines */
	size_t nwords, column;
};

static void add(struct lines *l, const char *word)
{
	size_t length = strlen(word) + strlen(l->between);

	if (l->nwords++ && l->column + length > COLUMNS) {
		gf_text_addf(l->out, "%s", l->broken);
		l->column = 16;
	} else if (l->nwords > 1) {
		gf_text_addf(l->out, "%s", l->between);
	}
	gf_text_addf(l->out, "%s", word);
	l->column += length;
}

/* "--option", and "-o" if it has a letter, as patterns of a case. */
static void add_patterns(struct lines *l, const struct gf_setting *s)
{
	char *name = gf_xasprintf("--%s", s->name);

	add(l, name);
	if (s->letter)
		add(l, (char[]){'-', (char)s->letter, '\0'});
	free(name);
}

static struct lines patterns(struct gf_text *out)
{
	gf_text_addf(out, "\t");
	return (struct lines){out, " | ", " | \\\n\t\t", 0, 8};
}

/* A case for every option whose argument has words. */
static void add_words(const struct gf_setting *s, const struct gf_offer *o,
		      struct gf_text *out)
{
	static const char *const paths[] = {"", "paths=-f ", "paths=-d "};
	struct lines names = patterns(out);
	struct lines words = {out, " ", "\n\t\t", 0, 40};
	size_t i;

	add_patterns(&names, s);
	gf_text_addf(out, ") %s%swords='", paths[o->paths],
		     o->list ? "list=1 " : "");
	for (i = 0; i < o->nwords; i++)
		add(&words, o->words[i].text);
	gf_text_addf(out, "' ;;\n");
}

/* One case for all options that have no words and these paths. */
static void add_paths(const struct gf_command *c, enum gf_paths paths,
		      const char *action, struct gf_text *out)
{
	struct gf_text text = {0};
	struct lines names = patterns(&text);
	const struct gf_setting *s;
	struct gf_offer o;
	size_t i;

	for (i = 0; (s = gf_complete_option(c, i)); i++) {
		gf_offer_init(&o, s);
		if (s->arg && !o.nwords && o.paths == paths)
			add_patterns(&names, s);
		gf_offer_release(&o);
	}
	if (names.nwords)
		gf_text_addf(out, "%s) %s ;;\n", text.data, action);
	gf_text_release(&text);
}

static void add_options(const struct gf_command *c, struct gf_text *out)
{
	struct lines words = {out, " ", "\n\t\t", 0, 24};
	const struct gf_setting *s;
	size_t i;

	gf_text_addf(out, "words='");
	for (i = 0; (s = gf_complete_option(c, i)); i++) {
		char *name = gf_xasprintf("--%s", s->name);

		add(&words, name);
		free(name);
	}
	gf_text_addf(out, "' ;;\n");
}

void gf_complete_bash(const struct gf_command *c, struct gf_text *out)
{
	char *function = gf_xasprintf("_%s", c->name), *dash;
	const struct gf_setting *s;
	struct gf_offer o;
	size_t i;

	while ((dash = strchr(function, '-')))
		*dash = '_';
	gf_text_addf(out,
		     "# SPDX-License-Identifier: BSD-3-Clause\n"
		     "# Written by make completions.\n"
		     "%s() {\n"
		     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} "
		     "prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
		     "\tlocal words='' paths='' list='' before=''\n"
		     "\t# an option, = and its word are three words\n"
		     "\tif [[ $cur == = ]]; then cur=''\n"
		     "\telif [[ $prev == = ]]; then "
		     "prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
		     "\tcase $prev in\n",
		     function);
	for (i = 0; (s = gf_complete_option(c, i)); i++) {
		gf_offer_init(&o, s);
		if (o.nwords)
			add_words(s, &o, out);
		gf_offer_release(&o);
	}
	add_paths(c, GF_PATHS_FILES, "paths=-f", out);
	add_paths(c, GF_PATHS_FOLDERS, "paths=-d", out);
	add_paths(c, GF_PATHS_NONE, "return", out);
	gf_text_addf(out, "\t*)\n");
	if (c->arguments)
		gf_text_addf(out, "\t\tcase $cur in\n\t\t-*) ");
	else
		gf_text_addf(out, "\t\t");
	add_options(c, out);
	if (c->arguments)
		gf_text_addf(out, "\t\t*) paths=-f ;;\n\t\tesac ;;\n");
	gf_text_addf(out,
		     "\tesac\n"
		     "\tif [[ $list && $cur == *,* ]]; then "
		     "before=${cur%%,*}, cur=${cur##*,}; fi\n"
		     "\tmapfile -t COMPREPLY < <(compgen $paths -P \"$before\" "
		     "-W \"$words\" -- \"$cur\")\n"
		     "\t[[ -z $paths ]] || compopt -o filenames 2> /dev/null\n"
		     "}\n"
		     "complete -F %s %s\n",
		     function, c->name);
	free(function);
}
