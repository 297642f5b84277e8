/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_SESSION_H
#define GF_COMM_SESSION_H

#include "base/error.h"
#include "comm/watch.h"

/*
 * A session watches every wait of a command's ranks, from the moment at which
 * they have found each other to the one at which they part, also where no
 * engine runs. Zeros: not begun.
 *
 * Between steps nothing answers for a rank that reads its data or builds its
 * net. So the time-out is never shorter than GF_TIMEOUT_BETWEEN_STEPS_S.
 */
/* Outside of steps a time-out counts as this; 0: never. */
double gf_session_limit_s(double timeout_s);

struct gf_session {
	struct gf_watch watch;
};

void gf_session_begin(struct gf_session *s, struct gf_comm *comm,
		      double timeout_s);
/* The ranks meet for the last time: what follows, in which MPI waits without a
 * limit, then finds all of them. rc: how the rank's work has ended. Returns rc,
 * or if it is 0 the failure to meet; then, as after any failure that some rank
 * may not come back from, the communicator is `broken`. */
int gf_session_end(struct gf_session *s, int rc, struct gf_error *err);

#endif
