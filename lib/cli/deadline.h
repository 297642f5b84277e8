/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_DEADLINE_H
#define GF_CLI_DEADLINE_H

#include "cli/cli.h"

/*
 * A deadline for a call that waits for other processes and has no timeout of
 * its own: MPI_Init waits for ever for a rank that never starts. Unless the
 * deadline is called off in time, the process prints a message and ends with
 * exit status 4; the launcher then ends the other ranks.
 *
 * Starting takes long on a crowded machine, so the deadline is never shorter
 * than GF_DEADLINE_LEAST_S. The result is NULL, and nothing happens, if
 * timeout_s is 0 (never) or if there is no launcher.
 */
#define GF_DEADLINE_LEAST_S 20.0

struct gf_deadline;

/* join: NULL, or a place at which ranks meet within such a limit by
 * themselves. */
struct gf_deadline *gf_cli_start_deadline(const struct gf_cli *cli,
					  const char *join, double timeout_s);
/* The limit in seconds; years where timeout_s is 0. */
double gf_cli_start_limit_s(double timeout_s);
/* NULL is allowed. */
void gf_cli_end_deadline(struct gf_deadline *d);

#endif
