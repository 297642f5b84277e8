/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_LAUNCH_LAUNCH_H
#define GF_LAUNCH_LAUNCH_H

#include "base/error.h"
#include "cli/cli.h"
#include "cli/start.h"
#include "comm/comm.h"
#include "engine/session.h"

/*
 * A command as one of the ranks of a job, or alone without a launcher. Ranks
 * find each other, work, meet for the last time and part; no wait outlasts
 * timeout_s, and one rank says what has failed on all of them alike.
 *
 *	struct gf_launch l = {.cli = &cli, .start = &start, .timeout_s = 60};
 *	int rc = gf_launch_join(&l, &err), status;
 *
 *	if (!rc)
 *		rc = run(l.comm, &err);
 *	status = gf_launch_end(&l, rc, &err);
 *	(release what no other rank can wait for)
 *	gf_launch_leave(&l);
 *	return status;
 */
struct gf_launch {
	const struct gf_cli *cli;
	const struct gf_cli_start *start; /* NULL: MPI's ranks alone */
	const char *transport; /* between hosts; NULL: the first that can */
	double timeout_s;      /* 0: never */
	bool ask; /* the transport, even where no launcher can be seen */
	/* In gf_launch_end, before a job that has lost a rank is aborted, and
	 * at any other end (optional): releases what must not remain when
	 * the process is killed. */
	void (*before_abort)(void *ctx);
	void *ctx;
	struct gf_comm *comm; /* NULL: not joined */
	struct gf_session session;
	struct gf_deadline *end;
};

int gf_launch_join(struct gf_launch *l, struct gf_error *err);
/* The last meeting. rc: how the rank's work has ended (1: the answer is no).
 * Closes standard output, prints what has failed, and returns the status for
 * main. A rank that has lost the others prints that, and ends the whole job. */
int gf_launch_end(struct gf_launch *l, int rc, struct gf_error *err);
/* Closes the communicator. */
void gf_launch_leave(struct gf_launch *l);

#endif
