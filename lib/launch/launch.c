/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/launch.h"

#include "cli/deadline.h"

int gf_launch_join(struct gf_launch *l, struct gf_error *err)
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
	int rc = l->cli->launched || l->ask
			 ? gf_comm_open(&how, &l->comm, err)
			 : gf_comm_local_new(1, &l->comm, err);

	gf_cli_end_deadline(deadline);
	if (rc == 0)
		gf_session_begin(&l->session, l->comm, l->timeout_s);
	else
		l->comm = NULL;
	return rc;
}

/* The status is told while the others still wait in leave: the first process to
 * end with a status ends the job. */
int gf_launch_end(struct gf_launch *l, int rc, struct gf_error *err)
{
	struct gf_comm *comm = l->comm;
	bool lost;
	int status;

	rc = gf_session_end(&l->session, rc, err);
	lost = comm && comm->broken && comm->ranks > 1;
	status = gf_cli_exit_rank(l->cli, rc, comm && !lost, err);
	if (l->before_abort)
		l->before_abort(l->ctx);
	if (lost)
		gf_comm_abort(comm, status);
	l->end = gf_cli_close_deadline(l->cli, l->timeout_s);
	return status;
}

void gf_launch_leave(struct gf_launch *l)
{
	gf_comm_close(l->comm);
	gf_cli_end_deadline(l->end);
	l->comm = NULL;
	l->end = NULL;
}
