/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORTS_CSV_H
#define GF_IMPORTS_CSV_H

#include <stddef.h>

#include "base/error.h"

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

/* The column of that name; -EINVAL if there is none. */
int gf_csv_need(const struct gf_csv *csv, const char *name, int *column, struct gf_error *err);
const char *gf_csv_field(const struct gf_csv *csv, size_t row, int column);

#endif
