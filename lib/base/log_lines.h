/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BASE_LOG_LINES_H
#define GF_BASE_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/*
 * A log, line by line, as the program wrote it: without colours, without what progress bars wrote
 * over, and without the labels that launchers and collectors put in front of a line:
 *
 *	[1,0]<stdout>:    mpirun --tag-output      0:            srun -l
 *	[0]               mpiexec -prepend-rank    n01:          pdsh
 *	(head, pid=7)     SkyPilot, Ray            x1000 0:      PALS
 *	[pod/n/c]  pod/n  kubectl logs --prefix    web-1 |       Compose
 *	2026-11-26T06:00:00Z  stdout F             kubectl, CRI
 *	>                                          quotations
 *
 * Any other label of up to six words is learnt from a line in which one of the marks follows it,
 * and taken off the lines that begin alike but for their digits.
 * Zero-initialise, and set `at`; the owner calls gf_log_release.
 */
struct gf_log {
	const char *at;      /* what is left of the text */
	size_t line;         /* the number of the line that stands, from 1 */
	struct gf_text text; /* that line */
	char *label;         /* learnt, or NULL */
	/* What begins the program's own lines, which are no labels; ended by NULL. NULL: "#". */
	const char *const *marks;
};

/* The next line without the blanks that begin it, or NULL at the end. It may be changed, and stands
 * until the next call. */
char *gf_log_next(struct gf_log *log);
void gf_log_release(struct gf_log *log);

/* Cuts a line into the words between blanks, at most so many; returns how many there are. */
size_t gf_log_words(char *line, char **words, size_t most);

/* Does a line of the text hold the one and, behind it, the other? */
bool gf_log_has_line(const char *text, const char *a, const char *b);

#endif
