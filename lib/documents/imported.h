/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_IMPORTED_H
#define GF_DOCUMENTS_IMPORTED_H

#include <stddef.h>

#include "base/text.h"
#include "json/json.h"

/*
 * What a reader of another program's file found, and what it left out: one line for people, and an
 * object for the document. Every importer fills one, so that nothing is passed over in silence.
 * Zero-initialise; the owner calls gf_imported_release.
 */
struct gf_imported_left {
	char *what; /* in the plural: "rows of other types" */
	size_t count;
	size_t first; /* where the first stands; 0: not known */
};

struct gf_imported {
	const char *kind;     /* the reader's name */
	const char *unit;     /* of places; NULL: "line" */
	char *version;        /* of the program that wrote the file, or NULL */
	struct gf_text found; /* "4 ranks, 8 sizes" */
	struct gf_imported_left *left;
	size_t nleft, capacity;
};

/* One more of a kind was left out, at that line (0: not known). */
void gf_imported_leave(struct gf_imported *i, const char *what, size_t place);
/* So many more of a kind were left out, at places that are not known. */
void gf_imported_leave_many(struct gf_imported *i, const char *what, size_t count);
/* Adds to what was found, with a comma between. */
void gf_imported_find(struct gf_imported *i, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "FILE: KIND VERSION: 4 ranks, 8 sizes; left out: broken rows (2, first in line 9)", without a
 * newline; the caller frees. */
char *gf_imported_line(const struct gf_imported *i, const char *file);
/* For a document, in place of *text: an object of the keys imported_from, version, found and
 * left_out. */
void gf_imported_note(const struct gf_imported *i, char **text);
void gf_imported_release(struct gf_imported *i);

#endif
