/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/complete.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/complete_parts.h"
#include "cli/share.h"

/* argp has these; the letter h is a hidden option. */
static const struct gf_setting of_argp[] = {
	{"help", .help = "print the options", .letter = 'h'},
	{"usage", .help = "print a short usage line"},
	{"version", .help = "print the version", .letter = 'V'},
};

const struct gf_setting *gf_complete_option(const struct gf_command *c,
					    size_t i)
{
	if (i < c->nsettings)
		return &c->settings[i];
	i -= c->nsettings;
	if (i < gf_cli_nshared)
		return &gf_cli_shared[i];
	i -= gf_cli_nshared;
	return i < GF_ARRAY_LENGTH(of_argp) ? &of_argp[i] : NULL;
}

static void add_word(struct gf_offer *o, const char *text, const char *help)
{
	size_t i;

	for (i = 0; i < o->nwords; i++)
		if (strcmp(o->words[i].text, text) == 0)
			return;
	*gf_array_push(&o->words, &o->nwords, &o->capacity) =
		(struct gf_word){gf_xstrdup(text), help};
}

/* The common beginning of every registry's entries. */
struct entry {
	const char *name, *description;
};

static const struct entry *entry_at(const struct gf_registry *r, size_t i)
{
	const struct entry *e;

	if (!r->entry_bytes)
		return ((const struct entry *const *)r->entries)[i];
	e = (const void *)((const char *)r->entries + i * r->entry_bytes);
	return e->name ? e : NULL;
}

static void add_registry(struct gf_offer *o, const struct gf_registry *r)
{
	const struct entry *e;
	size_t i;

	for (i = 0; r->entries && (e = entry_at(r, i)); i++)
		if (!r->offers || r->offers(e))
			add_word(o, e->name, e->description);
}

static void add_shipped(struct gf_offer *o, const char *kind)
{
	char **names;
	size_t n = gf_cli_share_names(kind, &names), i;

	for (i = 0; i < n; i++) {
		add_word(o, names[i], NULL);
		free(names[i]);
	}
	free(names);
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

void gf_offer_init(struct gf_offer *o, const struct gf_setting *s)
{
	size_t i;

	*o = (struct gf_offer){0};
	if (!s->arg)
		return;
	for (i = 0; s->names && s->names[i]; i++)
		add_word(o, s->names[i], NULL);
	for (i = 0; i < GF_ARRAY_LENGTH(s->from); i++)
		add_registry(o, &s->from[i]);
	if (s->share)
		add_shipped(o, s->share);
	o->list = strcmp(s->arg, "LIST") == 0;
	if (ends_in(s->arg, "DIR"))
		o->paths = GF_PATHS_FOLDERS;
	else if (ends_in(s->arg, "FILE") || s->share)
		o->paths = GF_PATHS_FILES;
}

void gf_offer_release(struct gf_offer *o)
{
	size_t i;

	for (i = 0; i < o->nwords; i++)
		free(o->words[i].text);
	free(o->words);
	*o = (struct gf_offer){0};
}

void gf_complete_quote(struct gf_text *out, const char *text)
{
	gf_text_addf(out, "'");
	for (; *text; text++)
		gf_text_addf(out, *text == '\'' ? "'\\''" : "%c", *text);
	gf_text_addf(out, "'");
}

int gf_cli_complete(const struct gf_command *command, const char *shell,
		    struct gf_text *out, struct gf_error *err)
{
	static const struct {
		const char *name;
		gf_complete_write *write;
	} shells[] = {
		{"bash", gf_complete_bash},
		{"zsh", gf_complete_zsh},
		{"fish", gf_complete_fish},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(shells); i++) {
		if (strcmp(shells[i].name, shell) != 0)
			continue;
		shells[i].write(command, out);
		return 0;
	}
	return gf_error_set(err, -EINVAL, "want bash, zsh or fish, got \"%s\"",
			    shell);
}
