/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests whether requests have ended. In a test of a request that has not ended,
 * MPI polls the network, and gives the processor away if nothing is there. A
 * thread that waits for messages from several ranks tests them in turn, and
 * would pay that once for each. With more ranks than processors, the first
 * message to come would lie there while the others' turns pass. So the network
 * is polled once a round, for all requests on the list: when one of them is
 * tested for the second time in the round. If the last poll found something,
 * the network is also polled when a request is tested for the first time:
 * perhaps its message is here, too, and the thread is about to sleep.
 */
#include <stdlib.h>

#include "base/heap.h"
#include "comm/mpi_state.h"

/* Puts the request's current piece on the list. */
static void note(struct gf_mpi *m, struct gf_comm_request *r)
{
	struct gf_mpi_asked *a = &m->asked;

	if (a->n == a->capacity) {
		a->capacity = a->capacity ? 2 * a->capacity : 64;
		a->list = gf_xreallocarray(a->list, a->capacity,
					   sizeof(*a->list));
		a->come = gf_xreallocarray(a->come, a->capacity,
					   sizeof(*a->come));
		/* one more: `nothing` */
		a->handles = gf_xreallocarray(a->handles, a->capacity + 1,
					      sizeof(*a->handles));
		a->which = gf_xreallocarray(a->which, a->capacity + 1,
					    sizeof(*a->which));
		a->states = gf_xreallocarray(a->states, a->capacity + 1,
					     sizeof(*a->states));
	}
	a->handles[a->n] = r->pieces[r->done];
	a->list[a->n++] = r;
	r->place = a->n;
}

void gf_mpi_unask(struct gf_mpi *m, struct gf_comm_request *r)
{
	struct gf_mpi_asked *a = &m->asked;

	if (!r->place)
		return;
	r->pieces[r->done] = a->handles[r->place - 1];
	a->n--;
	a->handles[r->place - 1] = a->handles[a->n];
	a->list[r->place - 1] = a->list[a->n];
	a->list[r->place - 1]->place = r->place;
	r->place = 0;
}

/*
 * Open MPI looks at the requests first and polls the network after that, so
 * that a message found there would be reported the next time, perhaps after a
 * sleep. If one of the requests is always done (`nothing`), Open MPI looks and
 * does not poll.
 */
static int test_some(struct gf_mpi *m, int *found)
{
	struct gf_mpi_asked *a = &m->asked;
	int n = (int)a->n, code;

	code = MPI_Testsome(n, a->handles, found, a->which, a->states);
	if (code != MPI_SUCCESS || *found != 0)
		return code;
	code = MPI_Start(&m->nothing);
	if (code != MPI_SUCCESS)
		return code;
	a->handles[n] = m->nothing;
	return MPI_Testsome(n + 1, a->handles, found, a->which, a->states);
}

/* Polls once, and takes the requests that have ended off the list. Returns
 * their number, or the failure. */
static int ask_all(struct gf_mpi *m, struct gf_error *err)
{
	struct gf_mpi_asked *a = &m->asked;
	int found = 0, n = 0, code, k;

	if (!a->n)
		return 0;
	a->round++;
	a->found = false;
	code = test_some(m, &found);
	if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
		return gf_mpi_fail(&m->comm, code, "MPI_Testsome", err);
	for (k = 0; k < found; k++) {
		struct gf_comm_request *r;

		if ((size_t)a->which[k] == a->n)
			continue;
		r = a->come[n++] = a->list[a->which[k]];
		r->come = true;
		r->state = a->states[k];
		r->code = code == MPI_SUCCESS ? code : r->state.MPI_ERROR;
	}
	for (k = 0; k < n; k++)
		gf_mpi_unask(m, a->come[k]);
	a->found = n > 0;
	return n;
}

int gf_mpi_ask(struct gf_mpi *m, struct gf_comm_request *r,
	       struct gf_error *err)
{
	struct gf_mpi_asked *a = &m->asked;
	bool again = r->place && r->round == a->round, first = !r->place;
	int rc = 0;

	if (!r->come && first)
		note(m, r);
	if (!r->come && (again || (first && a->found)))
		rc = ask_all(m, err);
	if (rc < 0)
		return rc;
	if (r->come) {
		r->come = false;
		return 1;
	}
	r->round = a->round;
	return 0;
}

bool gf_mpi_poll(struct gf_comm *c)
{
	return ask_all(gf_mpi_of(c), NULL) != 0;
}

void gf_mpi_asked_release(struct gf_mpi_asked *a)
{
	free(a->list);
	free(a->come);
	free(a->handles);
	free(a->which);
	free(a->states);
}
