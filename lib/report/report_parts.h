/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPORT_REPORT_PARTS_H
#define GF_REPORT_REPORT_PARTS_H

#include "report/report.h"

/* The parts of gf_report_find; the first two are gf_report_see. */
void gf_report_steps(struct gf_report_whole *r);
void gf_report_arrivals(struct gf_report_whole *r);
/* What the traces themselves show, in a zeroed report. */
int gf_report_see(struct gf_report_whole *r, const struct gf_import_job *job,
		  struct gf_error *err);
void gf_report_expect(struct gf_report_whole *r, const struct gf_documents *d);
/* What cannot be planned is a note. */
int gf_report_plan(struct gf_report_whole *r, const struct gf_documents *d,
		   const struct gf_profile *own, struct gf_text *notes,
		   struct gf_error *err);

/* Sorts the values; NAN if there are none. */
struct gf_report_times gf_report_times(double *values, size_t n);

#endif
