/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_TABLE_H
#define GF_CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

/*
 * A table in aligned columns. Cells are text; a column whose cells all begin like a number is set
 * flush right. Zero-initialise; the first row is the heading. Rows have as many cells as it has.
 */
struct gf_table {
	char ***rows;
	size_t nrows, rows_capacity;
	size_t ncols;
};

/* The next cells, with tabs between; the first call adds the heading. */
void gf_table_cells(struct gf_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The heading cell by cell: of how many, and each, as of further rows. */
void gf_table_begin(struct gf_table *t, size_t ncols);
void gf_table_cell(struct gf_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Forms for programs and papers, in the place of a window's columns. A unit that all cells of a
 * column have stands in its heading. */
#define GF_TABLE_MARKDOWN (SIZE_MAX)
#define GF_TABLE_LATEX    (SIZE_MAX - 1)
#define GF_TABLE_CSV      (SIZE_MAX - 2)
#define GF_TABLE_TSV      (SIZE_MAX - 3)

/* Prints for a window of so many columns (0: no limit), or in a form. Where lines would be longer,
 * columns whose cells are all alike become a line after the table, as many as it takes: "in all
 * rows: codec f32, lanes 1". */
void gf_table_print_in(const struct gf_table *t, size_t window, struct gf_text *out);
/* A line under a table; in CSV and TSV there is none. */
void gf_table_note(size_t window, struct gf_text *out, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void gf_table_release(struct gf_table *t);

#endif
