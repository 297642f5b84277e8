/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CLI_LAUNCH_H
#define GF_CLI_LAUNCH_H

#include "base/error.h"
#include "cli/cli.h"
#include "cli/start.h"
#include "transport/comm.h"

/*
 * A command as one of the ranks of a job, or alone without a launcher. Ranks find each other, work,
 * meet for the last time and part; no wait outlasts timeout_s, and one rank says what has failed on
 * all of them alike.
 *
 *	struct gf_launch l = {.cli = &cli, .start = &start, .timeout_s = 60,
 *			      .work = work, .ctx = &arguments};
 *
 *	return gf_launch_run(&l);
 */
struct gf_launch {
	struct gf_cli *cli;
	const struct gf_cli_start *start; /* NULL: MPI's ranks alone */
	const char *transport;            /* between hosts; NULL: the first that can */
	double timeout_s;                 /* 0: never */
	bool ask;                         /* the transport, even where no launcher can be seen */
	const char *doing;                /* which work; a rank that does other is refused */
	/* A rank's work. 1: the answer is no. */
	int (*work)(void *ctx, struct gf_comm *comm, struct gf_error *err);
	/* Before a job that has lost a rank is aborted, and at any other end (optional): releases
	 * what must not remain when the process is killed. */
	void (*before_abort)(void *ctx);
	/* After the last meeting, or without a job: releases things that no other rank can wait for
	 * (optional). */
	void (*release)(void *ctx);
	void *ctx;
};

/* Closes standard output, prints what has failed, and returns the status for main. A rank that has
 * lost the others prints that, and ends the whole job. */
int gf_launch_run(const struct gf_launch *l);

/* Collective. Can all files of the options be written? Asked before hours of work. */
int gf_launch_try_outputs(const struct gf_cli *cli, struct gf_comm *comm, struct gf_error *err);
/* Collective. Rank 0 writes the text to the command's output; it is freed on every rank. */
int gf_launch_print(const struct gf_cli *cli, struct gf_comm *comm, char *text,
		    struct gf_error *err);

#endif
