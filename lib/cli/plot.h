/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_PLOT_H
#define GF_CLI_PLOT_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

/*
 * A picture: numbers as CSV, and the script of share/plots that draws them with gnuplot
 * (share/plots/README has the columns and the variables of each script). Zero-initialise but for
 * the script; the contents are the struct's.
 */
struct gf_plot {
	const char *script;  /* "curves", "bars", "gantt" */
	struct gf_text csv;  /* with a heading */
	struct gf_text vars; /* gnuplot's assignments */
};

/* A variable of the script. */
void gf_plot_text(struct gf_plot *p, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void gf_plot_number(struct gf_plot *p, const char *name, double value);

/*
 * A cell of text, without quotes: gnuplot knows no comma in a cell, which becomes ';'. Controls,
 * quotes, backslashes and what is not UTF-8 become '?'.
 */
void gf_plot_label(struct gf_text *csv, const char *text);
/* A comma and a number; nan: an empty cell. */
void gf_plot_cell(struct gf_text *csv, double value);

/* The --plot option: takes a file whose ending names what is written: .svg, .pdf, .png (drawn) or
 * .csv (the numbers alone). to: a const char *. */
int gf_plot_store(const char *arg, void *to, struct gf_error *err);
/*
 * Writes the file whole or not at all, and releases the contents. -EINVAL: the ending; -ENOENT:
 * there is no gnuplot; -EIO with what gnuplot said: it failed.
 */
int gf_plot_finish(struct gf_plot *p, const char *path, struct gf_error *err);

#endif
