/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/launch.h"

#include <stdlib.h>

#include "base/end.h"
#include "base/timeout.h"
#include "cli/deadline.h"
#include "comm/session.h"

static int join(const struct gf_launch *l, struct gf_comm **comm,
		struct gf_error *err)
{
	static const struct gf_cli_start alone = {0};
	const struct gf_cli_start *s = l->start ? l->start : &alone;
	struct gf_deadline *deadline =
		gf_cli_start_deadline(l->cli, s->join, l->timeout_s);
	const struct gf_comm_how how = {
		.transport = l->transport,
		.meet = s->join,
		.rank = s->rank,
		.ranks = s->ranks,
		.timeout_s = gf_cli_open_limit_s(l->timeout_s),
	};
	int rc = l->cli->launched || l->ask ? gf_comm_open(&how, comm, err)
					    : gf_comm_local_new(1, comm, err);

	gf_cli_end_deadline(deadline);
	if (rc)
		*comm = NULL;
	return rc;
}

/* The ranks that there are count, not what a launcher's variables say: a
 * process may have inherited these. */
static void heed(const struct gf_launch *l, const struct gf_comm *comm)
{
	l->cli->rank = comm->rank;
	if (comm->ranks == 1 && l->cli->started)
		gf_cli_warn(l->cli,
			    "%s says %d processes, and MPI sees 1 rank: each "
			    "is a job of its own: start them by the launcher "
			    "of this MPI (mpirun, srun --mpi=pmix), or with "
			    "--join",
			    l->cli->started_says, l->cli->started);
}

/* The status is told while the others still wait in leave: the first process to
 * end with a status ends the job. */
static int tell(const struct gf_launch *l, struct gf_comm *comm, int rc,
		struct gf_error *err)
{
	bool lost = comm && comm->broken && comm->ranks > 1;
	int status;

	/* a launcher that stands still reads no message */
	if (lost || (rc < 0 && !comm))
		(void)gf_end_within(GF_TIMEOUT_ABORT_S, gf_cli_status(rc));
	status = gf_cli_exit_rank(l->cli, rc, comm && !lost, err);
	if (l->before_abort)
		l->before_abort(l->ctx);
	if (lost)
		gf_comm_abort(comm, status);
	return status;
}

int gf_launch_run(const struct gf_launch *l)
{
	struct gf_session session = {0};
	struct gf_error err = {""};
	struct gf_comm *comm;
	struct gf_deadline *end;
	int rc = join(l, &comm, &err), status;

	if (rc == 0) {
		heed(l, comm);
		gf_session_begin(&session, comm, l->timeout_s);
		if (comm->ranks > 1)
			l->cli->reader_s = session.watch.timeout_s;
		rc = gf_comm_same_text(comm, "command", l->doing, &err);
		rc = rc ? rc : l->work(l->ctx, comm, &err);
	}
	rc = gf_session_end(&session, rc, &err);
	status = tell(l, comm, rc, &err);
	end = gf_cli_close_deadline(l->cli, gf_session_limit_s(l->timeout_s),
				    comm && comm->ranks == 1 ? status : -1);
	if (l->release)
		l->release(l->ctx);
	gf_comm_close(comm);
	gf_cli_end_deadline(end);
	return status;
}

int gf_launch_try_outputs(const struct gf_cli *cli, struct gf_comm *comm,
			  struct gf_error *err)
{
	return gf_comm_agree(comm, gf_cli_try_outputs(cli, err), err);
}

int gf_launch_print(const struct gf_cli *cli, struct gf_comm *comm, char *text,
		    struct gf_error *err)
{
	int rc = comm->rank ? 0 : gf_cli_emit(cli, text, err);

	free(text);
	return gf_comm_agree(comm, rc, err);
}
