/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TABLES_PAPER_H
#define GF_TABLES_PAPER_H

#include <stddef.h>

#include "base/error.h"

/*
 * One file of share/papers (its README.md describes them). Getters return NAN
 * for what is not there and remember the first miss; gf_paper_check turns it
 * into an error, so that a section reads without a test after every number.
 */
struct gf_paper_input {
	char *name, *where;
	double value;
};

struct gf_paper_row {
	char *name;
	double *values; /* one per column */
};

struct gf_paper_table {
	char *name, *where, *unit;
	char **columns;
	size_t ncolumns;
	struct gf_paper_row *rows;
	size_t nrows;
};

struct gf_paper {
	char *file;
	char *name, *title, *authors, *venue;
	int year;
	struct gf_paper_input *inputs;
	size_t ninputs;
	struct gf_paper_table *tables;
	size_t ntables;
	char **not_given;
	size_t nnot_given;
	struct gf_error miss; /* text "" while nothing was missing */
};

/* name: as gf_cli_share finds it in share/papers. */
int gf_paper_load(const char *name, struct gf_paper *p, struct gf_error *err);
void gf_paper_release(struct gf_paper *p);

double gf_paper_input(struct gf_paper *p, const char *name);
double gf_paper_value(struct gf_paper *p, const char *table, const char *row,
		      const char *column);
/* 0, or -EINVAL with what was looked for in vain. */
int gf_paper_check(const struct gf_paper *p, struct gf_error *err);

#endif
