/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_START_H
#define GF_CLI_START_H

#include <limits.h>

#include "cli/cli.h"
#include "cli/settings.h"

/*
 * How the ranks of a job find and reach each other: the options --join, --rank and --ranks, for
 * ranks without MPI, and --transport. A launcher's environment has the defaults of --rank and
 * --ranks. Torchrun's has the defaults of all three where no launcher of MPI is at work: RANK,
 * WORLD_SIZE, and MASTER_ADDR with the port after MASTER_PORT, on which torchrun's own store
 * listens.
 */
struct gf_cli_start {
	const char *join; /* NULL: MPI's job, or this process alone */
	int rank, ranks;
	int transport;  /* of gf_cli_transports */
	char made[320]; /* where join was made of the environment */
};

/* The rows of --transport, --join and --rank in a command's table, and the beginning of that of
 * --ranks. `of`: the group of options; `at`: the struct's offset among the arguments. */
#define GF_CLI_START_AT(at, field) ((at) + offsetof(struct gf_cli_start, field))
#define GF_CLI_START_TRANSPORT(of, at)                                                             \
	.name = "transport", .arg = "NAME", .group = (of), .kind = GF_SETTING_CHOICE,              \
	.offset = GF_CLI_START_AT(at, transport),                                                  \
	.help = "send between hosts by mpi, by ucx, or auto: mpi, or ucx "                         \
		"with --join",                                                                     \
	.names = gf_cli_transports
#define GF_CLI_START_JOIN(of, at)                                                                  \
	.name = "join", .arg = "PLACE", .group = (of), .kind = GF_SETTING_TEXT,                    \
	.offset = GF_CLI_START_AT(at, join),                                                       \
	.help = "meet the other ranks at a folder or HOST:PORT, without MPI",                      \
	.names = gf_cli_start_places
#define GF_CLI_START_RANK(of, at)                                                                  \
	.name = "rank", .arg = "R", .group = (of), .kind = GF_SETTING_INT,                         \
	.offset = GF_CLI_START_AT(at, rank), .high = INT_MAX,                                      \
	.help = "with --join: this process's rank (the launcher's)"
#define GF_CLI_START_RANKS(of, at, more)                                                           \
	.name = "ranks", .arg = "P", .group = (of), .kind = GF_SETTING_INT,                        \
	.offset = GF_CLI_START_AT(at, ranks), .low = 1, .high = INT_MAX,                           \
	.help = "with --join: the number of ranks (the launcher's); 1: this process alone" more
extern const char *const gf_cli_start_places[]; /* suggestions */
extern const char *const gf_cli_transports[];   /* NULL-ended */

enum { GF_CLI_TRANSPORT_AUTO, GF_CLI_TRANSPORT_MPI };
/* The one that was asked for by name; NULL: none was. */
const char *gf_cli_start_transport(const struct gf_cli_start *s);

/* The launcher's environment says that this is one of several ranks. A command that no launcher of
 * ranks has started may have inherited it (a task of Slurm that starts torchrun), so that only the
 * ranks that are found then count. */
void gf_cli_start_hint(struct gf_cli *cli);

/* Completes what the options have left open, and tells cli of the rank that it has. mpi: MPI was
 * asked for by name. -EINVAL names the option or variable. */
int gf_cli_start_finish(struct gf_cli *cli, struct gf_cli_start *s, bool mpi, struct gf_error *err);

/* The scheduler's name for this job, "job 47"; NULL: there is none. The caller frees. */
char *gf_cli_job_name(void);

#endif
