/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_REPORT_AGAINST_H
#define GF_REPORT_AGAINST_H

#include "base/text.h"
#include "imports/report/report.h"

/*
 * Two runs side by side: traces of jobs, or tables of all-reduces. What both have is compared: the
 * times of steps, and of messages by kind and size, or of an algorithm by size. A rank's steps are
 * set beside its own. A time is slower if its median is later by more than GF_UNCERTAINTY_RUNS, the
 * share by which two runs of one thing differ, and the doubt of both medians, on any rank; a table
 * has one time without doubt. What took no time before is not compared.
 */
struct gf_against {
	const char *before; /* files */
	const char *const *after;
	size_t nafter;
	const struct gf_plan *plan; /* that both ran; or NULL */
	bool table;                 /* for people, else JSON Lines */
	size_t width;               /* of the table; 0: any */
};

/* notes: lines for the user. 1, with the reason: something is slower; -EINVAL: nothing is in
 * both. */
int gf_against(const struct gf_against *a, struct gf_text *out, struct gf_text *notes,
	       struct gf_error *err);

#endif
