/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_COMPLETE_PARTS_H
#define GF_CLI_COMPLETE_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "cli/command.h"

/* The scripts of all shells are made of these. Private to lib/cli. */

struct gf_word {
	char *text;
	const char *help; /* borrowed from a registry, or NULL */
};

enum gf_paths { GF_PATHS_NONE, GF_PATHS_FILES, GF_PATHS_FOLDERS };

/* The words that a shell offers for an option's argument. */
struct gf_offer {
	struct gf_word *words;
	size_t nwords, capacity;
	enum gf_paths paths;
	bool list; /* several words with commas between */
};

void gf_offer_init(struct gf_offer *o, const struct gf_setting *s);
void gf_offer_release(struct gf_offer *o);

/* The command's own options, then those of every command; NULL after the
 * last. */
const struct gf_setting *gf_complete_option(const struct gf_command *c,
					    size_t i);

/* 'text' as one word of sh and zsh. */
void gf_complete_quote(struct gf_text *out, const char *text);

typedef void gf_complete_write(const struct gf_command *c, struct gf_text *out);
gf_complete_write gf_complete_bash, gf_complete_zsh, gf_complete_fish;

#endif
