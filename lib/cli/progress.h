/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_PROGRESS_H
#define GF_CLI_PROGRESS_H

#include "cli/cli.h"

/*
 * A progress bar on stderr for what takes longer than a second: only on a
 * terminal, not under a launcher (there every rank believes it has one), not
 * with -q or a dumb terminal. Otherwise the calls do nothing.
 */
struct gf_progress {
	bool shown;
	double started_s, drawn_s;
	const char *what;
	const struct gf_cli *cli;
	const char *detail; /* the last one noted */
};

void gf_progress_start(struct gf_progress *p, const struct gf_cli *cli,
		       const char *what);
/* fraction in [0, 1]; detail may be NULL. */
void gf_progress_at(struct gf_progress *p, double fraction, const char *detail);
/* Shows progress although it is unknown whether there is a terminal: on rank 0
 * under a launcher, because the user asked for it. Not with -q. */
void gf_progress_force(struct gf_progress *p);
/* As gf_progress_at, for callbacks (p is a struct gf_progress); with -v also a
 * line whenever detail, a constant, is another one. */
void gf_progress_report(void *p, double fraction, const char *detail);
/* Removes the bar. */
void gf_progress_end(struct gf_progress *p);

#endif
