/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_SELECT_OPTION_H
#define GF_PLANNER_SELECT_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "doc/selection.h"
#include "json/record.h"

/*
 * Options that set keys of a plan's selection. The tables of doc/select_*.c say
 * which there are; an option of several selections sets the key of the one that
 * is chosen.
 */
#define GF_SELECT_OPTIONS_MOST 32

struct gf_select_option {
	const struct gf_select_plan *plan; /* the first that has it */
	const struct gf_field *field;      /* there */
	const char *text; /* what the user typed, borrowed; NULL: open */
};

/* Every option once, all of them open; returns how many. */
size_t
gf_select_options(struct gf_select_option options[GF_SELECT_OPTIONS_MOST]);
/* "topk, gtopk: the share of elements that is sent (0.001)" */
void gf_select_option_help(const struct gf_select_option *option,
			   struct gf_text *out);
/* For the command line: checks the text, then option->text is it. */
int gf_select_option_store(const char *text, void *option,
			   struct gf_error *err);

/* Stores what the user typed among s's params. -EINVAL: s has no such key. */
int gf_select_options_apply(const struct gf_select_option *options,
			    size_t noptions, struct gf_selection *s,
			    struct gf_error *err);

#endif
