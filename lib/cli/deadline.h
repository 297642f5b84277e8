/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_DEADLINE_H
#define GF_CLI_DEADLINE_H

#include "cli/cli.h"

/*
 * For a call that waits for other processes and knows no timeout of its own, as
 * MPI_Init does for a rank that comes late or never: unless it is called off in
 * time, the process says so and ends with exit status 4, and the launcher ends
 * the others.
 *
 * A start takes its time on a crowded machine, so that it is given at least
 * GF_DEADLINE_LEAST_S. NULL, and nothing happens: timeout_s is 0 (never), or
 * there is no launcher.
 */
#define GF_DEADLINE_LEAST_S 20.0

struct gf_deadline;

struct gf_deadline *gf_cli_start_deadline(const struct gf_cli *cli,
					  double timeout_s);
/* NULL is allowed. */
void gf_cli_end_deadline(struct gf_deadline *d);

#endif
