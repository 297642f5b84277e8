/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_AXIS_ENTRY_H
#define GF_DOCUMENTS_AXIS_ENTRY_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

struct gf_json_at;
struct gf_record;

/*
 * What every entry of an axis has whose keys depend on the entry: selections
 * (documents/selections/selection.h) and periods (documents/periods/period.h). These are the first
 * members of the entry's struct, so that options (planner/axes.h) walk any of them.
 */
#define GF_ENTRY                                                                                   \
	const char *name;                                                                          \
	const char *description; /* one line, for --list */                                        \
	const char *source;      /* author, year, title */                                         \
	unsigned place;          /* in listings, ascending (lib/list.sh) */                        \
	unsigned traits;                                                                           \
	/* The keys of the plan's object, with the options of gf-plan that                         \
	 * set them. */                                                                            \
	const struct gf_record *record;                                                            \
	/* gf-plan's values for options that were not given; a struct of the                       \
	 * record */                                                                               \
	const void *defaults

struct gf_entry {
	GF_ENTRY;
};

/* Adds the JSON Schema of an object that is one of these entries (NULL-terminated): its key
 * "method" and the entry's keys. */
void gf_entry_schema(const void *entries, struct gf_text *out);
/* Opens the object at key, and reads which entry of names (NULL-terminated) its key "method" names.
 * The caller reads on in *inner. */
int gf_entry_open(struct gf_json_at *at, const char *key, const char *const *names,
		  struct gf_json_at *inner, int *method, struct gf_error *err);

#endif
