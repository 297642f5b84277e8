/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/table.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "cli/human.h"

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
	GF_RELEASED(gf_text_release) struct gf_text all = {0};
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
	for (size_t row = 1; row < t->nrows; row++) {
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
	l->width = gf_xcalloc(t->ncols + 1, sizeof(*l->width));
	l->right = gf_xcalloc(t->ncols + 1, sizeof(*l->right));
	for (size_t col = 0; col < t->ncols; col++) {
		l->right[col] = numeric(t, col);
		for (size_t row = 0; row < t->nrows; row++) {
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
	for (size_t row = 2; row < t->nrows; row++)
		if (strcmp(t->rows[row][col], t->rows[1][col]) != 0)
			return false;
	return t->nrows > 1;
}

/* Folds columns from the left until the lines fit; says which in `folded`. */
static void fold(const struct gf_table *t, size_t window, struct layout *l, struct gf_text *folded)
{
	for (size_t col = 0; col + 1 < t->ncols && line_width(t, l) > window; col++) {
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

	for (size_t col = 0; col < t->ncols; col++) {
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

/* --- forms for programs and papers ----------------------------------------- */

/* The number and the unit that a cell begins with; *rest is what follows. */
static bool measured(const char *cell, double *value, struct gf_human_unit *unit, const char **rest)
{
	char *end;

	*value = strtod(cell, &end);
	if (end == cell || *end != ' ')
		return false;
	*rest = end + 1 + strcspn(end + 1, " ");
	return gf_human_find_unit(end + 1, (size_t)(*rest - end - 1), unit);
}

static bool is_empty(const char *cell)
{
	return !*cell || strcmp(cell, "-") == 0;
}

/* The unit of a column's largest value, if all of its cells measure the same. */
static bool unit_of(const struct gf_table *t, size_t col, struct gf_human_unit *unit)
{
	struct gf_human_unit u;
	const char *rest;
	double value, most = -1;

	for (size_t row = 1; row < t->nrows; row++) {
		if (is_empty(t->rows[row][col]))
			continue;
		if (!measured(t->rows[row][col], &value, &u, &rest) ||
		    (most >= 0 && u.family != unit->family))
			return false;
		if (value * u.size > most) {
			most = value * u.size;
			*unit = u;
		}
	}
	return most >= 0;
}

/* What has a meaning in the form, so that it is text. */
static void add_escaped(struct gf_text *out, const char *text, size_t form)
{
	static const char *const words[] = {
		['~'] = "textasciitilde", ['^'] = "textasciicircum", ['\\'] = "textbackslash"};
	const bool latex = form == GF_TABLE_LATEX;
	const char *special = latex ? "%_&#${}" : "|";

	for (; *text; text++) {
		const size_t c = (unsigned char)*text;

		if (latex && c < GF_ARRAY_LENGTH(words) && words[c])
			gf_text_addf(out, "\\%s{}", words[c]);
		else
			gf_text_addf(out, "%s%c", strchr(special, *text) ? "\\" : "", *text);
	}
}

static void add_cell(const struct gf_table *t, size_t row, size_t col,
		     const struct gf_human_unit *unit, size_t form, struct gf_text *out)
{
	const char *cell = t->rows[row][col], *rest = "";
	GF_RELEASED(gf_text_release) struct gf_text text = {0};
	struct gf_human_unit own;
	double value;

	if (unit && row == 0)
		gf_text_addf(&text, "%s (%s)", cell, unit->name);
	else if (unit && !is_empty(cell) && measured(cell, &value, &own, &rest))
		gf_text_addf(&text, "%s%s", gf_human_ratio(value * own.size / unit->size).text,
			     rest);
	else
		gf_text_addf(&text, "%s", cell);
	if (form == GF_TABLE_CSV || form == GF_TABLE_TSV)
		gf_text_add_cell(out, text.data, form == GF_TABLE_CSV ? ',' : '\t');
	else
		add_escaped(out, text.data, form);
}

static void print_form(const struct gf_table *t, size_t form, struct gf_text *out)
{
	const struct mark {
		size_t form;
		const char *before, *between, *after;
	} marks[] =
		{
			{GF_TABLE_MARKDOWN, "| ", " | ", " |\n"},
			{GF_TABLE_LATEX, "", " & ", " \\\\\n"},
			{GF_TABLE_CSV, "", ",", "\n"},
			{GF_TABLE_TSV, "", "\t", "\n"},
		},
	  *m = marks;
	GF_FREED struct gf_human_unit *units = gf_xcalloc(t->ncols + 1, sizeof(*units));
	size_t row, col;

	while (m->form != form)
		m++;
	for (col = 0; col < t->ncols; col++)
		if (!unit_of(t, col, &units[col]))
			units[col].name = NULL;
	if (form == GF_TABLE_LATEX) {
		gf_text_addf(out, "\\begin{tabular}{");
		for (col = 0; col < t->ncols; col++)
			gf_text_addf(out, "%c", numeric(t, col) ? 'r' : 'l');
		gf_text_addf(out, "}\n");
	}
	for (row = 0; row < t->nrows; row++) {
		for (col = 0; col < t->ncols; col++) {
			gf_text_addf(out, "%s", col ? m->between : m->before);
			add_cell(t, row, col, units[col].name ? &units[col] : NULL, form, out);
		}
		gf_text_addf(out, "%s", m->after);
		if (row == 0 && form == GF_TABLE_LATEX)
			gf_text_addf(out, "\\hline\n");
		for (col = 0; row == 0 && form == GF_TABLE_MARKDOWN && col <= t->ncols; col++)
			gf_text_addf(out, "%s",
				     col == t->ncols   ? "|\n"
				     : numeric(t, col) ? "|--:"
						       : "|---");
	}
	if (form == GF_TABLE_LATEX)
		gf_text_addf(out, "\\end{tabular}\n");
}

void gf_table_note(size_t window, struct gf_text *out, const char *fmt, ...)
{
	va_list ap;

	if (window == GF_TABLE_CSV || window == GF_TABLE_TSV)
		return;
	gf_text_addf(out, "%s",
		     window == GF_TABLE_MARKDOWN ? "\n"
		     : window == GF_TABLE_LATEX  ? "% "
						 : "");
	va_start(ap, fmt);
	gf_text_addv(out, fmt, ap);
	va_end(ap);
	gf_text_addf(out, "\n");
}

void gf_table_print_in(const struct gf_table *t, size_t window, struct gf_text *out)
{
	GF_RELEASED(gf_text_release) struct gf_text folded = {0};
	struct layout l;

	assert(!t->nrows || t->rows[t->nrows - 1][t->ncols - 1]);
	if (window >= GF_TABLE_TSV) {
		print_form(t, window, out);
		return;
	}
	measure(t, &l);
	if (window)
		fold(t, window, &l, &folded);
	for (size_t row = 0; row < t->nrows; row++)
		print_row(t, &l, row, out);
	if (folded.length)
		gf_text_addf(out, "%s\n", folded.data);
	free(l.width);
	free(l.right);
}

void gf_table_release(struct gf_table *t)
{
	for (size_t row = 0; row < t->nrows; row++) {
		for (size_t col = 0; col < t->ncols; col++)
			free(t->rows[row][col]);
		free(t->rows[row]);
	}
	free(t->rows);
	memset(t, 0, sizeof(*t));
}
