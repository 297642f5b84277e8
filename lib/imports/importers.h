/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORTS_IMPORTERS_H
#define GF_IMPORTS_IMPORTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "imports/import.h"
#include "json/json.h"

/* What importers share. */

/* The importer of that name, or (NULL, "auto") the first that recognises the text. -EINVAL: the
 * text is another program's, has none of the formats, or `format` names none. */
int gf_import_find(const struct gf_import *in, const char *format,
		   const struct gf_importer **importer, struct gf_error *err);

/* Calls take with a file, or with each of `count` files of a folder by their names, numbered from
 * 0; not with what is hidden or a folder. -EINVAL:
 * there are none, or one is a pipe, say. */
int gf_import_each(const char *path,
		   int (*take)(void *ctx, const char *file, int number, int count,
			       struct gf_error *err),
		   void *ctx, struct gf_error *err);

/* A model half without tensors, from what `in` says; backward_s is 0 if unknown. Remarks on an
 * unknown forward time. */
struct gf_model_profile *gf_import_model(const struct gf_import *in, const char *device,
					 struct gf_text *remarks);
/* After the tensors: backward lasts at least until the last is ready. -EINVAL: `in` says less. */
int gf_import_finish_model(const struct gf_import *in, struct gf_model_profile *m,
			   struct gf_error *err);

/*
 * Names, and sizes where unknown (0), from in->parameters: rows of name and count_elems in
 * registration order. Backward runs from last to first, so a gradient takes the last row not yet
 * taken that has its number of elements. -EINVAL if none is left.
 */
int gf_import_names(const struct gf_import *in, struct gf_model_profile *m, struct gf_error *err);

/* Takes one object of JSON Lines. */
typedef int gf_import_record(void *ctx, struct gf_json_at *at, size_t line, struct gf_error *err);
/* All objects of a text in turn, until one is refused; labels may stand in front of them. What is
 * no whole object is left out and counted. */
int gf_import_records(const struct gf_import *in, gf_import_record *take, void *ctx,
		      struct gf_error *err);

/*
 * Comma-separated values (RFC 4180): a row of names, then rows of as many fields; quotes around a
 * field that holds commas or quotes. Blank lines do not count. Fields are found by their column's
 * name.
 */
struct gf_csv {
	const char *file;
	char **columns;
	size_t ncolumns;
	char **fields; /* nrows * ncolumns */
	size_t *lines; /* per row, from 1 */
	size_t nrows;
};

/* -EINVAL "file:line: ..." */
int gf_csv_read(const char *text, size_t size, const char *file, struct gf_csv *csv,
		struct gf_error *err);
void gf_csv_release(struct gf_csv *csv);

const char *gf_csv_field(const struct gf_csv *csv, size_t row, int column);

/* -EINVAL: neither the file nor the user says how many ranks there were. */
int gf_import_want_ranks(const struct gf_import *in, struct gf_error *err);

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
