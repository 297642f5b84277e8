/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"

#define LINE 78

/* Words of text on lines of at most LINE columns. */
static void wrap(struct gf_text *out, const char *text, const char *first,
		 const char *next)
{
	size_t column = strlen(first);
	const char *p = text;

	gf_text_addf(out, "%s", first);
	while (*p) {
		size_t n = strcspn(p, " ");

		if (p != text && column + 1 + n > LINE) {
			gf_text_addf(out, "\n%s", next);
			column = strlen(next);
		} else if (p != text) {
			gf_text_addf(out, " ");
			column++;
		}
		gf_text_add(out, p, n);
		column += n;
		p += n + strspn(p + n, " ");
	}
	gf_text_addf(out, "\n");
}

static void blank_line(struct gf_text *t)
{
	if (t->length < 2 || strcmp(t->data + t->length - 2, "\n\n") != 0)
		gf_text_addf(t, "\n");
}

void gf_report_section(struct gf_report *r, const struct gf_paper *p)
{
	char *head = gf_xasprintf("%s. %s, %s %d.", p->title, p->authors,
				  p->venue, p->year);
	size_t i;

	gf_text_addf(&r->body, "\n");
	for (i = 0; i < LINE; i++)
		gf_text_addf(&r->body, "=");
	gf_text_addf(&r->body, "\n%s\n\n", p->name);
	wrap(&r->body, head, "", "");
	free(head);
	if (p->nnot_given)
		gf_text_addf(&r->body, "\nThe paper does not give\n");
	for (i = 0; i < p->nnot_given; i++)
		wrap(&r->body, p->not_given[i], "- ", "  ");
	blank_line(&r->body);
}

void gf_report_open(struct gf_report *r, const char *name, const char *subject)
{
	struct gf_report_count *c =
		gf_array_push(&r->counts, &r->ncounts, &r->capacity);
	char *head = gf_xasprintf("%s: %s", name, subject);

	c->name = gf_xstrdup(name);
	blank_line(&r->body);
	wrap(&r->body, head, "", "");
	free(head);
	gf_table_row(&r->rows, 5,
		     (const char *const[]){"", "paper", "gradflow", "error",
					   "reproduced"});
}

static const char *verdict(struct gf_report_count *c, double error)
{
	/* Half a unit of the last place: 10.0 % as printed counts as 10 %. */
	if (fabs(error) < GF_REPORT_CLOSE + 0.0005) {
		c->reproduced++;
		return "yes";
	}
	if (fabs(error) < GF_REPORT_ROUGH + 0.0005) {
		c->roughly++;
		return "roughly";
	}
	c->no++;
	return "no";
}

static void row(struct gf_report *r, const char *what, const double pair[2],
		int decimals, int fitted)
{
	double error = (pair[1] - pair[0]) / pair[0];

	gf_table_begin(&r->rows, 5);
	gf_table_cell(&r->rows, "  %s", what);
	if (isnan(pair[0])) {
		gf_table_cell(&r->rows, "-");
		gf_table_cell(&r->rows, "%.*f", decimals, pair[1]);
		gf_table_cell(&r->rows, "-");
		gf_table_cell(&r->rows, "-");
		return;
	}
	if (fabs(error) < 0.0005)
		error = 0; /* no "-0.0" */
	gf_table_cell(&r->rows, "%.*f", decimals, pair[0]);
	gf_table_cell(&r->rows, "%.*f", decimals, pair[1]);
	gf_table_cell(&r->rows, "%+.1f %%", 100 * error);
	gf_table_cell(&r->rows, "%s",
		      fitted ? "fitted"
			     : verdict(&r->counts[r->ncounts - 1], error));
}

void gf_report_row(struct gf_report *r, const char *what, double paper,
		   double ours, int decimals)
{
	row(r, what, (double[]){paper, ours}, decimals, 0);
}

void gf_report_fitted(struct gf_report *r, const char *what, double paper,
		      double ours, int decimals)
{
	row(r, what, (double[]){paper, ours}, decimals, 1);
}

void gf_report_close(struct gf_report *r)
{
	gf_table_print(&r->rows, &r->body);
	gf_table_release(&r->rows);
	r->rows = (struct gf_table){0};
}

void gf_report_say(struct gf_report *r, const char *fmt, ...)
{
	char *formatted;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&formatted, fmt, ap) < 0)
		abort();
	va_end(ap);
	wrap(&r->body, formatted, "  ", "  ");
	free(formatted);
}

void gf_report_curves(struct gf_plot *p)
{
	gf_plot_text(p, "series", "series");
	gf_plot_text(p, "style", "style");
	gf_text_addf(&p->csv, "series,style,x,y\n");
}

void gf_report_point(struct gf_plot *p, const char *series, const char *style,
		     double x, double y)
{
	gf_plot_label(&p->csv, series);
	gf_text_addf(&p->csv, ",%s", style);
	gf_plot_cell(&p->csv, x);
	gf_plot_cell(&p->csv, y);
	gf_text_addf(&p->csv, "\n");
}

void gf_report_paper_point(struct gf_plot *p, const char *series, double x,
			   double y)
{
	char *name = gf_xasprintf("%s (paper)", series);

	gf_report_point(p, name, "points", x, y);
	free(name);
}

int gf_report_picture(struct gf_report *r, const char *name,
		      struct gf_plot *plot, struct gf_error *err)
{
	static const char *const endings[GF_REPORT_KINDS] = {"svg", "pdf",
							     "png", "csv"};
	size_t i;
	int rc = 0;

	for (i = 0; i < GF_REPORT_KINDS && !rc; i++) {
		char *file = gf_xasprintf("%s.%s", name, endings[i]);
		char *path = gf_xasprintf(
			"%s/%s", r->folders[i] ? r->folders[i] : "", file);

		if (r->folders[i])
			rc = gf_plot_write(plot, path, 0, err);
		if (r->folders[i] && !rc)
			gf_text_addf(&r->body, "  picture: %s\n", file);
		free(path);
		free(file);
	}
	gf_plot_release(plot);
	return rc;
}

char *gf_report_text(const struct gf_report *r)
{
	struct gf_text out = {0};
	struct gf_table t = {0};
	char *intro, *table;
	size_t i;

	intro = gf_xasprintf(
		"The papers' tables beside gradflow's predictions. \"yes\" "
		"means within %.0f %%, \"roughly\" within %.0f %%, \"no\" "
		"further off; below each table stands what the prediction "
		"rests on and, where it fails, why.",
		100 * GF_REPORT_CLOSE, 100 * GF_REPORT_ROUGH);
	wrap(&out, intro, "", "");
	free(intro);
	gf_text_addf(&out, "\n");
	gf_table_row(&t, 4,
		     (const char *const[]){"table", "yes", "roughly", "no"});
	for (i = 0; i < r->ncounts; i++) {
		const struct gf_report_count *c = &r->counts[i];

		if (!c->reproduced && !c->roughly && !c->no)
			continue; /* nothing there to compare with */
		gf_table_begin(&t, 4);
		gf_table_cell(&t, "%s", c->name);
		gf_table_cell(&t, "%d", c->reproduced);
		gf_table_cell(&t, "%d", c->roughly);
		gf_table_cell(&t, "%d", c->no);
	}
	gf_table_print(&t, &out);
	gf_table_release(&t);
	if (r->body.data)
		gf_text_add(&out, r->body.data, r->body.length);
	table = gf_text_take(&out);
	return table;
}

void gf_report_release(struct gf_report *r)
{
	size_t i;

	for (i = 0; i < r->ncounts; i++)
		free(r->counts[i].name);
	free(r->counts);
	gf_table_release(&r->rows);
	gf_text_release(&r->body);
	*r = (struct gf_report){0};
}
