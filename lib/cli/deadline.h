/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_DEADLINE_H
#define GF_CLI_DEADLINE_H

#include "cli/cli.h"

/*
 * A deadline for a call that waits for other processes and has no timeout of its own: MPI_Init
 * waits for ever for a rank that never starts, MPI_Finalize for one that never ends. Unless the
 * deadline is called off in time, the process prints a message and ends with exit status 4; the
 * launcher then ends the other ranks.
 *
 * A launcher starts processes one after the other, on a large or crowded machine for seconds, and
 * MPI does not say which of them are late. So a start may take GF_TIMEOUT_START_S, even if less is
 * asked for, unless a process of the same launcher on this host is found to be stopped. The result
 * is NULL, and nothing happens, if timeout_s is 0 (never). One rank without a launcher is watched,
 * too, since MPI's own threads have stood still there.
 */
struct gf_deadline;

/* join: NULL, or a place, at which ranks meet within up to three such limits by themselves: the
 * deadline is for what has none, as the look-up of a host. */
struct gf_deadline *gf_cli_start_deadline(const struct gf_cli *cli, const char *join,
					  double timeout_s);
/* The deadline of the end, in which nothing takes long. alone: the exit status of a rank that is
 * alone and has told its result, else -1. Such a rank ends with it, soon, and says no more: nobody
 * waits for it. */
struct gf_deadline *gf_cli_close_deadline(const struct gf_cli *cli, double timeout_s, int alone);
/* A call of a library, what being a clause that says so. It may take longer by what other waits
 * take before their own limit is told. */
struct gf_deadline *gf_cli_call_deadline(const struct gf_cli *cli, const char *what,
					 double timeout_s);
/* A write to a full pipe waits for ever for its reader, and so does the opening of a named pipe.
 * This deadline is cli->reader_s. path: NULL is standard output and error; of others, regular files
 * have no deadline. */
struct gf_deadline *gf_cli_reader_deadline(const struct gf_cli *cli, const char *path);
/* NULL is allowed. */
void gf_cli_end_deadline(struct gf_deadline *d);

#endif
