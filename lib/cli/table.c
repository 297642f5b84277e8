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

enum { GAP = 2 }; /* blanks between columns */

void gf_table_begin(struct gf_table *t, size_t ncols)
{
	t->ncols = ncols;
	*gf_array_push(&t->rows, &t->nrows, &t->rows_capacity) = gf_xcalloc(ncols, sizeof(char *));
}

/* Takes the text; after a full row a new one begins. */
static void add(struct gf_table *t, char *text)
{
	size_t i = 0;

	if (t->rows[t->nrows - 1][t->ncols - 1])
		gf_table_begin(t, t->ncols);
	while (t->rows[t->nrows - 1][i])
		i++;
	t->rows[t->nrows - 1][i] = text;
}

void gf_table_cell(struct gf_table *t, const char *fmt, ...)
{
	struct gf_text text = {0};
	va_list ap;

	va_start(ap, fmt);
	gf_text_addv(&text, fmt, ap);
	va_end(ap);
	add(t, gf_text_take(&text));
}

void gf_table_cells(struct gf_table *t, const char *fmt, ...)
{
	struct gf_text all = {0};
	char *rest, *cell;
	size_t ncols = 1;
	va_list ap;

	va_start(ap, fmt);
	gf_text_addv(&all, fmt, ap);
	va_end(ap);
	for (rest = all.data; (rest = strchr(rest, '\t')); rest++)
		ncols++;
	if (!t->nrows)
		gf_table_begin(t, ncols);
	for (rest = all.data; (cell = strsep(&rest, "\t"));)
		add(t, gf_xstrdup(cell));
	gf_text_release(&all);
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

/* A table made ready to be printed: a column's width, 0 where it is folded. */
struct layout {
	size_t *width;
	bool *right;
};

static void measure(const struct gf_table *t, struct layout *l)
{
	size_t row, col;

	l->width = gf_xcalloc(t->ncols + 1, sizeof(*l->width));
	l->right = gf_xcalloc(t->ncols + 1, sizeof(*l->right));
	for (col = 0; col < t->ncols; col++) {
		l->right[col] = numeric(t, col);
		for (row = 0; row < t->nrows; row++) {
			size_t w = width_of(t->rows[row][col]);

			if (w > l->width[col])
				l->width[col] = w;
		}
	}
}

static size_t line_width(const struct gf_table *t, const struct layout *l)
{
	size_t sum = 0, col;

	for (col = 0; col < t->ncols; col++)
		if (l->width[col])
			sum += l->width[col] + (sum ? GAP : 0);
	return sum;
}

static bool alike(const struct gf_table *t, size_t col)
{
	size_t row;

	for (row = 2; row < t->nrows; row++)
		if (strcmp(t->rows[row][col], t->rows[1][col]) != 0)
			return false;
	return t->nrows > 1;
}

/* Folds columns from the left until the lines fit; says which in `folded`. */
static void fold(const struct gf_table *t, size_t window, struct layout *l, struct gf_text *folded)
{
	size_t col;

	for (col = 0; col + 1 < t->ncols && line_width(t, l) > window; col++) {
		if (!alike(t, col))
			continue;
		l->width[col] = 0;
		gf_text_addf(folded, "%s%s %s",
			     folded->length ? ", " : "in all rows: ", t->rows[0][col],
			     t->rows[1][col]);
	}
}

static void print_row(const struct gf_table *t, const struct layout *l, size_t row,
		      struct gf_text *out)
{
	bool first = true;
	size_t col;

	for (col = 0; col < t->ncols; col++) {
		const char *cell = t->rows[row][col];
		size_t gap = l->width[col] - width_of(cell);

		if (!l->width[col])
			continue;
		if (!first)
			pad(out, GAP);
		first = false;
		if (l->right[col])
			pad(out, gap);
		gf_text_add(out, cell, strlen(cell));
		if (!l->right[col] && col + 1 < t->ncols)
			pad(out, gap);
	}
	gf_text_add(out, "\n", 1);
}

void gf_table_print_in(const struct gf_table *t, size_t window, struct gf_text *out)
{
	struct gf_text folded = {0};
	struct layout l;
	size_t row;

	assert(!t->nrows || t->rows[t->nrows - 1][t->ncols - 1]);
	measure(t, &l);
	if (window)
		fold(t, window, &l, &folded);
	for (row = 0; row < t->nrows; row++)
		print_row(t, &l, row, out);
	if (folded.length)
		gf_text_addf(out, "%s\n", folded.data);
	gf_text_release(&folded);
	free(l.width);
	free(l.right);
}

void gf_table_print(const struct gf_table *t, struct gf_text *out)
{
	gf_table_print_in(t, 0, out);
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
