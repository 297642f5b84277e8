/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORT_COLUMNS_H
#define GF_IMPORT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "import/importers.h"

/*
 * Tables of benchmarks, as they stand in logs: the words of a heading name the
 * columns, and a row has a word for each, maybe among words of other programs.
 * Zero-initialise; the owner calls gf_columns_release.
 */
enum { GF_COLUMNS_MOST = 64 };

struct gf_columns {
	char *names[GF_COLUMNS_MOST]; /* of the heading that stands; owned */
	size_t ncolumns;              /* 0: there is none */
};

/* Takes the words of a line as the heading that stands. */
void gf_columns_head(struct gf_columns *t, const char *line);
/* 1 and the cells of a row among a line's words; -EINVAL: the line begins as a
 * row does, and is none; 0: it does not. */
int gf_columns_row(const struct gf_columns *t, char **words, size_t nwords,
		   char ***cells);
/* The cell below the last column of that name: what is in place stands right.
 * NULL: there is none. */
const char *gf_columns_cell(const struct gf_columns *t, char **cells,
			    const char *name);
void gf_columns_release(struct gf_columns *t);

/*
 * A program whose table is of one collective: import_tables.c reads it, and
 * nccl_run.h judges what it is of. In-place times are taken, for that is how
 * gradients are reduced.
 */
struct gf_columns_format {
	const char *title;   /* (optional) begins the line with the test's name
			      */
	const char *columns; /* (optional) of a table whose heading is cut off,
				or says less */
	const char *heading; /* (optional) words: the first one, and others */
	const char *size;    /* columns: of bytes */
	const char *time;    /* of us; NULL: what the algbw makes of it */
	const char *ranks;   /* (optional) stands before their number */
	const char *program; /* (optional) whose command line has -n or -np */
	const char *library; /* that ran it, as doc/dialect.h */
	bool told;           /* logs say what NCCL was told */
};

/* 1 if the text has such a heading, title or row. */
int gf_columns_recognise(const struct gf_columns_format *f, const char *text);
/* Reads the tables of in->importer's format. */
int gf_columns_read(const struct gf_import *in, struct gf_profile *out,
		    struct gf_text *remarks, struct gf_error *err);

#endif
