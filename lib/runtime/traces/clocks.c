/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/traces/rank_traces.h"

#include <math.h>

#include "base/clock.h"

#define ROUNDS 32
/* No engine runs yet: all channels are free. */
#define CHANNEL 0

static int send(struct gf_comm *c, int peer, double *value, struct gf_error *err)
{
	struct gf_comm_request *request;
	int rc = c->ops->isend(c, peer, gf_tag(CHANNEL, 0), value, sizeof(*value), &request, err);

	return rc ? rc : gf_comm_wait(c, request, err);
}

static int receive(struct gf_comm *c, int peer, double *value, struct gf_error *err)
{
	struct gf_comm_request *request;
	int rc = c->ops->irecv(c, peer, gf_tag(CHANNEL, 0), value, sizeof(*value), &request, err);

	return rc ? rc : gf_comm_wait(c, request, err);
}

/* Rank 0: answers one rank with its own time. */
static int answer(struct gf_comm *c, int peer, struct gf_error *err)
{
	double question, now;
	int i, rc = 0;

	for (i = 0; !rc && i < ROUNDS; i++) {
		rc = receive(c, peer, &question, err);
		now = gf_clock_s();
		if (!rc)
			rc = send(c, peer, &now, err);
	}
	return rc;
}

static int ask(struct gf_comm *c, struct gf_clock_offset *o, struct gf_error *err)
{
	double before, after, there;
	int i, rc = 0;

	o->uncertainty_s = INFINITY;
	for (i = 0; !rc && i < ROUNDS; i++) {
		before = gf_clock_s();
		rc = send(c, 0, &before, err);
		if (!rc)
			rc = receive(c, 0, &there, err);
		after = gf_clock_s();
		if (rc || (after - before) / 2 >= o->uncertainty_s)
			continue;
		o->uncertainty_s = (after - before) / 2;
		o->offset_s = (before + after) / 2 - there;
	}
	if (fabs(o->offset_s) <= o->uncertainty_s)
		o->offset_s = 0;
	return rc;
}

int gf_trace_compare_clocks(struct gf_comm *comm, struct gf_clock_offset *offset,
			    struct gf_error *err)
{
	struct gf_clock_offset o = {.origin_s = gf_clock_s()};
	int peer, rc;

	rc = gf_comm_bcast(comm, 0, &o.origin_s, sizeof(o.origin_s), err);
	for (peer = 1; !rc && comm->rank == 0 && peer < comm->ranks; peer++)
		rc = answer(comm, peer, err);
	if (!rc && comm->rank > 0)
		rc = ask(comm, &o, err);
	if (!rc)
		*offset = o;
	return rc;
}
