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
struct gf_against_row {
	char *what; /* "step", "ring of 65536 bytes" */
	struct gf_report_times before, after;
	size_t ranks, slower, faster; /* so many; 1: of no rank */
	int verdict;                  /* 1: slower; -1: faster; 0: neither */
};

struct gf_against {
	struct gf_against_row *rows;
	size_t nrows, capacity;
	size_t slower, faster, alone; /* alone: rows that one run has */
};

/* Fills a zeroed comparison from the files of both runs, before and after.
 * p: the plan that both ran, or NULL. -EINVAL: nothing is in both. */
int gf_against_make(struct gf_against *a, const char *before, const char *const *after,
		    size_t nafter, const struct gf_plan *p, struct gf_text *notes,
		    struct gf_error *err);
void gf_against_table(const struct gf_against *a, size_t window, struct gf_text *out);
void gf_against_json(const struct gf_against *a, struct gf_text *out);
void gf_against_release(struct gf_against *a);

#endif
