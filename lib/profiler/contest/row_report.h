/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_ROW_REPORT_H
#define GF_CONTEST_ROW_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "documents/plan.h"
#include "profiler/contest/allreduce.h"

/*
 * The measurements in words: nccl-tests' table for people and for the scripts that already read it,
 * JSON Lines for everyone else (one row per size, algorithm and placement; units in the
 * names), and the best algorithm per size as a rule plan.
 */
enum gf_contest_format { GF_REPORT_TABLE, GF_REPORT_CELLS, GF_REPORT_JSON };

struct gf_contest_report {
	const struct gf_contest_allreduce_config *config;
	const struct gf_contest_row *rows; /* ordered by size */
	size_t nrows, left_out;            /* gf_contest_rows */
	const struct gf_plan *plan;        /* rows are its messages, and all; or NULL */
};

/* window: of cells, a form of cli/table.h. */
void gf_contest_report_print(const struct gf_contest_report *r, enum gf_contest_format format,
			     size_t window, struct gf_text *out);

/* The mean of the bus bandwidths of all readings, in bytes per second. */
double gf_contest_report_busbw(const struct gf_contest_report *r);
size_t gf_contest_report_wrong(const struct gf_contest_report *r);
/* 1 with the reason: elements came out wrong, or that mean is too low. */
int gf_contest_report_judge(const struct gf_contest_report *r, double least_bytes_per_s,
			    struct gf_error *err);

/* A rule plan: per size the algorithm with the least median in place, neighbours that go alike as
 * one; with the stages, codec and segments that it went with. The threshold is the least size whose
 * time per byte is within a tenth of the best. The caller releases it. -EINVAL: there is nothing to
 * choose from. */
int gf_contest_report_rule(const struct gf_contest_report *r, struct gf_plan *rule,
			   struct gf_error *err);
/* MPI's calls of a collective: the one that does not block, and the one that does. */
extern const char *const gf_contest_mpi_calls[][2];
/* A line: how long the one takes beside the other, and where nothing else is as fast.
 * Nothing unless both were measured. */
void gf_contest_report_blocking(const struct gf_contest_report *r, struct gf_text *out);
/* A line for each size at which a contestant's time falls, as it does where a library changes its
 * algorithm too late. Nothing of a plan. */
void gf_contest_report_falls(const struct gf_contest_report *r, struct gf_text *out);
/* The answer, one line: the fastest from which size on, and how many times as fast as the library's
 * own call, where that was measured, too; the better one, if both were. Nothing of a plan. */
void gf_contest_report_answer(const struct gf_contest_report *r, struct gf_text *out);
/* Writes that rule to a file. */
int gf_contest_report_write_rule(const struct gf_contest_report *r, const char *path,
				 struct gf_error *err);

/* The output of gf-allreduce --list: the algorithms, codecs and transports of this build, a line
 * each. The caller frees. */
char *gf_contest_list(void);

#endif
