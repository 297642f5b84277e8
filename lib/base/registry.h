/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_REGISTRY_H
#define GF_BASE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/*
 * Tables of named things, whatever else their entries hold: algorithms, codecs, policies. Users
 * choose from them by name.
 */
struct gf_named {
	const char *name, *description; /* description may be NULL */
};

/* A table whose entries begin as struct gf_named does. */
struct gf_registry {
	const void *entries;               /* ended by NULL, or by an entry without a name */
	size_t entry_bytes;                /* 0: entries is an array of pointers */
	bool (*offers)(const void *entry); /* (optional) which of them */
};

/* A table as --list shows it. */
struct gf_list {
	const char *name, *description; /* "policies", "--policy" */
	struct gf_registry of;
	bool sourced; /* the entries' third member is a source, as text */
	/* (optional) what else stands behind an entry, in brackets */
	void (*mark)(const void *entry, struct gf_text *out);
};

/* The i-th entry; NULL: the table has ended. */
const struct gf_named *gf_registry_at(const struct gf_registry *r, size_t i);

/* The entry of that name in such a table; NULL: there is none. */
const void *gf_named_find(const void *entries, size_t entry_bytes, const char *name);

/* Writes "OPTION: want a, b or c, got x", and the name that is nearest to x where one is near;
 * returns -EINVAL. `first`: a word besides, or NULL. option NULL: without it. */
int gf_registry_refuse(const struct gf_registry *r, const char *option, const char *first,
		       const char *got, struct gf_error *err);

/* Writes "want a, b or c, got x" as gf_registry_refuse does, for an array of names that NULL ends;
 * returns -EINVAL. */
int gf_names_refuse(const char *const *names, const char *got, struct gf_error *err);

/* The index of a name in an array that NULL ends; -1: it is none of them. */
int gf_names_index(const char *const *names, const char *name);

/* The index of a name; if it is none of them, gf_names_refuse's -EINVAL. */
int gf_names_find(const char *const *names, const char *got, int *index, struct gf_error *err);

/* The name that differs from `got` by the fewest letters added, left out or changed, without regard
 * to case, - and _; where none is near, the one that shares the longest beginning with `got`, if
 * that is all of either. NULL: there is none. */
const char *gf_names_near(const char *const *names, const char *got);

/* Appends the names that differ least from `got`, at most so many, in their order: "a, b, c". */
void gf_names_nearest(const char *const *names, const char *got, size_t most, struct gf_text *out);

#endif
