/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_AXIS_OPTION_H
#define GF_PLANNER_AXIS_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/registry.h"
#include "base/text.h"
#include "doc/axis_entry.h"
#include "json/record.h"

/*
 * Options that set keys of an axis's entry in a plan: a selection's, a period's. The tables of
 * doc/select_*.c and doc/period_*.c say which there are; an option of several entries sets the key
 * of the one that is chosen.
 */
#define GF_AXIS_OPTIONS_MOST 48

struct gf_axis {
	const char *option;         /* that chooses the entry */
	struct gf_registry entries; /* each begins as struct gf_entry does */
};
extern const struct gf_axis gf_axis_selection, gf_axis_period;

struct gf_axis_option {
	const struct gf_axis *axis;
	const struct gf_entry *entry; /* the first that has it */
	const struct gf_field *field; /* there */
	const char *text;             /* what the user typed, borrowed; NULL: open */
};

/* The record's field with that option, those of included tables among them; NULL: it has none. */
const struct gf_field *gf_axis_find(const struct gf_record *r, const char *option);
/* Appends every option of an axis once, all of them open, after n; returns how many there are
 * then. */
size_t gf_axis_options(const struct gf_axis *axis,
		       struct gf_axis_option options[GF_AXIS_OPTIONS_MOST], size_t n);
/* "topk, gtopk: the share of elements that is sent (0.001)" */
void gf_axis_option_help(const struct gf_axis_option *option, struct gf_text *out);
/* For the command line: checks the text, then option->text is it. */
int gf_axis_option_store(const char *text, void *option, struct gf_error *err);

/* Stores what the user typed for this axis in the entry's struct. -EINVAL: the entry has no such
 * key. */
int gf_axis_options_apply(const struct gf_axis_option *options, size_t noptions,
			  const struct gf_axis *axis, const struct gf_entry *entry, void *item,
			  struct gf_error *err);

#endif
