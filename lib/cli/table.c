/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/table.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

void gf_table_begin(struct gf_table *t, size_t ncols)
{
	assert(!t->nrows || ncols == t->ncols);
	t->ncols = ncols;
	*gf_array_push(&t->rows, &t->nrows, &t->rows_capacity) =
		gf_xcalloc(ncols, sizeof(char *));
}

void gf_table_cell(struct gf_table *t, const char *fmt, ...)
{
	char **row = t->rows[t->nrows - 1];
	char text[512];
	va_list ap;
	size_t i = 0;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	while (i < t->ncols && row[i])
		i++;
	assert(i < t->ncols);
	row[i] = gf_xstrdup(text);
}

void gf_table_row(struct gf_table *t, size_t ncols, const char *const *cells)
{
	size_t i;

	gf_table_begin(t, ncols);
	for (i = 0; i < ncols; i++)
		gf_table_cell(t, "%s", cells[i]);
}

/* Columns count code points, so that accents do not shift what follows. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static bool numeric(const struct gf_table *t, size_t col)
{
	size_t row;

	for (row = 1; row < t->nrows; row++) {
		const char *cell = t->rows[row][col];

		if (*cell && strcmp(cell, "-") != 0 &&
		    !isdigit((unsigned char)cell[*cell == '-' || *cell == '+']))
			return false;
	}
	return t->nrows > 1;
}

static void pad(struct gf_text *out, size_t n)
{
	while (n--)
		gf_text_add(out, " ", 1);
}

void gf_table_print(const struct gf_table *t, struct gf_text *out)
{
	size_t *width = gf_xcalloc(t->ncols + 1, sizeof(*width));
	bool *right = gf_xcalloc(t->ncols + 1, sizeof(*right));
	size_t row, col;

	for (col = 0; col < t->ncols; col++) {
		right[col] = numeric(t, col);
		for (row = 0; row < t->nrows; row++) {
			size_t w = width_of(t->rows[row][col]);

			width[col] = w > width[col] ? w : width[col];
		}
	}
	for (row = 0; row < t->nrows; row++) {
		for (col = 0; col < t->ncols; col++) {
			const char *cell = t->rows[row][col];
			size_t gap = width[col] - width_of(cell);

			if (col)
				pad(out, 2);
			if (right[col])
				pad(out, gap);
			gf_text_add(out, cell, strlen(cell));
			if (!right[col] && col + 1 < t->ncols)
				pad(out, gap);
		}
		gf_text_add(out, "\n", 1);
	}
	free(width);
	free(right);
}

void gf_table_release(struct gf_table *t)
{
	size_t row, col;

	for (row = 0; row < t->nrows; row++) {
		for (col = 0; col < t->ncols; col++)
			free(t->rows[row][col]);
		free(t->rows[row]);
	}
	free(t->rows);
	memset(t, 0, sizeof(*t));
}
