/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TABLES_REPORT_H
#define GF_TABLES_REPORT_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/plot.h"
#include "cli/table.h"
#include "paper.h"

/*
 * The report: sections of tables that set a paper's number beside ours, with
 * the error and one of three words. The words say only how far apart the two
 * numbers are; the text below a table says why.
 */
#define GF_REPORT_CLOSE 0.10 /* up to here: "reproduced" */
#define GF_REPORT_ROUGH 0.25 /* up to here: "roughly"; beyond: "no" */

/* Kinds of files that gf_plot_write makes of a picture; CSV has its numbers. */
enum gf_report_kind {
	GF_REPORT_SVG,
	GF_REPORT_PDF,
	GF_REPORT_PNG,
	GF_REPORT_CSV,
	GF_REPORT_KINDS
};

struct gf_report_count {
	char *name; /* of the table */
	int reproduced, roughly, no;
};

struct gf_report {
	struct gf_text body;
	/* a folder for each kind of file of pictures, NULL: none of it */
	const char *folders[GF_REPORT_KINDS];
	struct gf_report_count *counts;
	size_t ncounts, capacity;
	struct gf_table rows; /* of the open table */
};

void gf_report_section(struct gf_report *r, const struct gf_paper *p);
/* name: "ASC-WFBP Table IV"; subject: what its numbers are. */
void gf_report_open(struct gf_report *r, const char *name, const char *subject);
/* paper NAN: ours alone, nothing to compare; digits after the point. */
void gf_report_row(struct gf_report *r, const char *what, double paper,
		   double ours, int decimals);
/* The same for a number that was fitted to the paper's: no verdict. */
void gf_report_fitted(struct gf_report *r, const char *what, double paper,
		      double ours, int decimals);
void gf_report_close(struct gf_report *r);
/* A paragraph, wrapped, indented by two. */
void gf_report_say(struct gf_report *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The points of curves: a heading, then series after series. A point of the
 * paper's has the colour of the curve that it belongs to. */
void gf_report_curves(struct gf_plot *p);
void gf_report_point(struct gf_plot *p, const char *series, const char *style,
		     double x, double y);
void gf_report_paper_point(struct gf_plot *p, const char *series, double x,
			   double y);
/* Writes <folder>/<name>.<ending> for each ending that was asked for, and
 * releases the plot. */
int gf_report_picture(struct gf_report *r, const char *name,
		      struct gf_plot *plot, struct gf_error *err);

/* The summary followed by the sections; the caller frees. */
char *gf_report_text(const struct gf_report *r);
void gf_report_release(struct gf_report *r);

/* One file each; they load their paper themselves. */
int gf_report_asc_wfbp(struct gf_report *r, struct gf_error *err);
int gf_report_gradientflow(struct gf_report *r, struct gf_error *err);
int gf_report_gtopk(struct gf_report *r, struct gf_error *err);
int gf_report_pipe_sgd(struct gf_report *r, struct gf_error *err);
int gf_report_blueconnect(struct gf_report *r, struct gf_error *err);

#endif
