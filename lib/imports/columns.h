/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORTS_COLUMNS_H
#define GF_IMPORTS_COLUMNS_H

#include <stdbool.h>
#include "imports/importers.h"

/*
 * A program whose tables are each of one collective: import_tables.c reads it, and nccl_run.h
 * judges what it is of. In-place times are taken, for that is how gradients are reduced.
 */
struct gf_columns_format {
	const char *title;   /* (optional) begins the line with the test's name */
	const char *columns; /* (optional) of a table whose heading is cut off, or says less */
	const char *heading; /* (optional) words: the first one, and others */
	const char *size;    /* columns: of bytes */
	const char *time;    /* of us; NULL: what the algbw makes of it */
	const char *ranks;   /* (optional) stands before their number */
	const char *program; /* (optional) begins those whose command line has -n or -np */
	bool parts;          /* the size of an all-gather is one rank's */
	const char *library; /* that ran it, as documents/library_tuning.h */
	bool told;           /* logs say what NCCL was told */
};

/* 1 if the text has such a heading, title or row. */
int gf_columns_recognise(const struct gf_columns_format *f, const char *text);
/* Reads the tables of in->importer's format. */
int gf_columns_read(const struct gf_import *in, struct gf_profile *out, struct gf_text *remarks,
		    struct gf_error *err);

#endif
