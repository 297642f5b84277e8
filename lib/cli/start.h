/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_START_H
#define GF_CLI_START_H

#include "cli/cli.h"

/*
 * Where the ranks of a job find each other without MPI: the options --join,
 * --rank and --ranks. A launcher's environment has the defaults of --rank and
 * --ranks. Torchrun's has the defaults of all three where no launcher of MPI is
 * at work: RANK, WORLD_SIZE, and MASTER_ADDR with the port after MASTER_PORT,
 * on which torchrun's own store listens.
 */
struct gf_cli_start {
	const char *join; /* NULL: MPI's job, or this process alone */
	int rank, ranks;
	char made[320]; /* where join was made of the environment */
};

/* Completes what the options have left open, and tells cli of the rank that it
 * has. mpi: MPI was asked for by name. -EINVAL names the option or variable. */
int gf_cli_start_finish(struct gf_cli *cli, struct gf_cli_start *s, bool mpi,
			struct gf_error *err);

/* The scheduler's name for this job, "job 47"; NULL: there is none. The caller
 * frees. */
char *gf_cli_job_name(void);

#endif
