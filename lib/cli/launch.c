/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/launch.h"

#include <math.h>
#include <stdlib.h>

#include "base/end.h"
#include "base/timeout.h"
#include "cli/deadline.h"
#include "transport/watch.h"

/* For gf_comm_open, which takes 0 for a default, where 0 is never. */
static const double years_s = 1e8;

static int join(const struct gf_launch *l, struct gf_comm **comm, struct gf_error *err)
{
	static const struct gf_cli_start alone = {0};
	const struct gf_cli_start *s = l->start ? l->start : &alone;
	struct gf_deadline *deadline = gf_cli_start_deadline(l->cli, s->join, l->timeout_s);
	const struct gf_comm_how how = {
		.transport = l->transport,
		.meet = s->join,
		.rank = s->rank,
		.ranks = s->ranks,
		.timeout_s = l->timeout_s > 0 ? l->timeout_s : years_s,
		.variable = getenv,
	};
	int rc = 0;

	gf_comm_settle(&how);
	if (l->cli->launched || l->ask)
		rc = gf_comm_open(&how, comm, err);
	else
		*comm = gf_comm_alone_new();
	gf_cli_end_deadline(deadline);
	if (rc)
		*comm = NULL;
	return rc;
}

/* The ranks that there are count, not what a launcher's variables say: a process may have inherited
 * these. Processes of which each would be a job of its own are refused, unless that was asked for;
 * the first of them says so. */
static int heed(const struct gf_launch *l, const struct gf_comm *comm, struct gf_error *err)
{
	static const char says[] = "%s says %d processes, and MPI sees 1 rank: start them by the "
				   "launcher of this MPI (mpirun, srun --mpi=pmix), or with --join";

	if (comm->ranks > 1 || !l->cli->started || (l->start && l->start->ranks == 1)) {
		l->cli->rank = comm->rank;
		return 0;
	}
	gf_error_set(err, -EINVAL, says, l->cli->started_says, l->cli->started);
	if (l->start) {
		gf_error_prefix(err, "each would be a job of its own (--ranks 1)");
		return -EINVAL;
	}
	if (l->cli->rank == 0)
		gf_cli_warn(l->cli, "each is a job of its own: %s", err->text);
	l->cli->rank = comm->rank;
	return 0;
}

/* The status is told while the others still wait in leave: the first process to end with a status
 * ends the job. */
static int tell(const struct gf_launch *l, struct gf_comm *comm, int rc, struct gf_error *err)
{
	bool lost = comm && comm->broken && comm->ranks > 1;
	int status;

	/* a launcher that stands still reads no message */
	if (lost || (rc < 0 && !comm))
		(void)gf_end_within(GF_TIMEOUT_ABORT_S, gf_cli_status(rc));
	status = gf_cli_exit(l->cli, rc, comm && !lost, err);
	if (l->before_abort)
		l->before_abort(l->ctx);
	if (lost)
		gf_comm_abort(comm, status);
	return status;
}

/* Outside of steps a time-out counts as this; 0: never. Nothing answers for a rank that reads its
 * data or builds its net, so it is never shorter than GF_TIMEOUT_BETWEEN_STEPS_S. */
static double limit_s(double timeout_s)
{
	return timeout_s > 0 ? fmax(timeout_s, GF_TIMEOUT_BETWEEN_STEPS_S) : 0;
}

/* The ranks meet for the last time: what follows, in which MPI waits without a limit, then finds
 * all of them. rc: how the rank's work has ended; w: zeros if not begun. Returns rc, or if it is 0
 * the failure to meet; then, as after any failure that some rank may not come back from, the
 * communicator is `broken`.
 */
static int end_session(struct gf_watch *w, int rc, struct gf_error *err)
{
	struct gf_comm *comm = w->comm;
	struct gf_error reason = *err;
	int lost = rc;

	if (!comm)
		return rc;
	if (!comm->broken) {
		lost = gf_comm_barrier(comm, &reason);
		if (lost)
			gf_error_prefix(&reason, "end");
	}
	if (lost)
		gf_watch_leave(w, lost, &reason);
	gf_watch_release(w);
	if (!rc)
		*err = reason;
	return rc ?: lost;
}

/* A session watches every wait of a command's ranks, from the moment at which they have found each
 * other to the one at which they part, also where no engine runs. */
int gf_launch_run(const struct gf_launch *l)
{
	struct gf_watch session = {0};
	struct gf_error err = {""};
	struct gf_comm *comm;
	struct gf_deadline *end;
	int rc = join(l, &comm, &err), status;

	if (rc == 0) {
		rc = heed(l, comm, &err);
		gf_watch_init(&session, comm, limit_s(l->timeout_s));
		session.self.phase = GF_PHASE_CALL;
		if (comm->ranks > 1)
			l->cli->reader_s = session.timeout_s;
		rc = rc ?: gf_comm_same_text(comm, "command", l->doing, &err);
		rc = rc ?: l->work(l->ctx, comm, &err);
	}
	rc = end_session(&session, rc, &err);
	status = tell(l, comm, rc, &err);
	end = gf_cli_close_deadline(l->cli, limit_s(l->timeout_s),
				    comm && comm->ranks == 1 ? status : -1);
	if (l->release)
		l->release(l->ctx);
	gf_comm_close(comm);
	gf_cli_end_deadline(end);
	return status;
}

int gf_launch_try_outputs(const struct gf_cli *cli, struct gf_comm *comm, struct gf_error *err)
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
