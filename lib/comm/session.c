/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/session.h"

#include <math.h>
#include "base/timeout.h"

double gf_session_limit_s(double timeout_s)
{
	return timeout_s > 0 ? fmax(timeout_s, GF_TIMEOUT_BETWEEN_STEPS_S) : 0;
}

void gf_session_begin(struct gf_session *s, struct gf_comm *comm,
		      double timeout_s)
{
	gf_watch_init(&s->watch, comm, gf_session_limit_s(timeout_s));
	s->watch.self.phase = GF_PHASE_CALL;
}

int gf_session_end(struct gf_session *s, int rc, struct gf_error *err)
{
	struct gf_comm *comm = s->watch.comm;
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
		gf_watch_leave(&s->watch, lost, &reason);
	gf_watch_release(&s->watch);
	if (!rc)
		*err = reason;
	return rc ? rc : lost;
}
