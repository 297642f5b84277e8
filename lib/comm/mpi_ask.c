/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Has it come? MPI asks the network, and gives the processor away when nothing
 * is there, for every request that it is asked about in vain. Who waits for
 * messages from several ranks goes round asking, and would pay that once for
 * each; with more ranks than processors, what came first would lie there while
 * the others' turns pass. So the network is asked once a round, for all that
 * are waited for: when one of them is asked about for the second time since.
 */
#include <stdlib.h>

#include "base/heap.h"
#include "comm/mpi_state.h"

/* Its piece comes onto the list. */
static void note(struct gf_mpi *m, struct gf_request *r)
{
	struct gf_mpi_asked *a = &m->asked;

	if (a->n == a->capacity) {
		a->capacity = a->capacity ? 2 * a->capacity : 64;
		a->list = gf_xreallocarray(a->list, a->capacity,
					   sizeof(*a->list));
		a->come = gf_xreallocarray(a->come, a->capacity,
					   sizeof(*a->come));
		a->handles = gf_xreallocarray(a->handles, a->capacity,
					      sizeof(*a->handles));
		a->which = gf_xreallocarray(a->which, a->capacity,
					    sizeof(*a->which));
		a->states = gf_xreallocarray(a->states, a->capacity,
					     sizeof(*a->states));
	}
	a->handles[a->n] = r->pieces[r->done];
	a->list[a->n++] = r;
	r->place = a->n;
}

void gf_mpi_unask(struct gf_mpi *m, struct gf_request *r)
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

/* What MPI says has come is off the list. Their number, or the failure. */
static int ask_all(struct gf_mpi *m, struct gf_error *err)
{
	struct gf_mpi_asked *a = &m->asked;
	struct gf_request *r;
	int n = 0, code, k;

	a->round++;
	code = MPI_Testsome((int)a->n, a->handles, &n, a->which, a->states);
	if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
		return gf_mpi_fail(&m->comm, code, "MPI_Testsome", err);
	if (n <= 0) /* MPI_UNDEFINED: all of them null */
		return 0;
	for (k = 0; k < n; k++)
		a->come[k] = a->list[a->which[k]];
	for (k = 0; k < n; k++) {
		r = a->come[k];
		r->come = true;
		r->state = a->states[k];
		r->code = code == MPI_SUCCESS ? code : r->state.MPI_ERROR;
		gf_mpi_unask(m, r);
	}
	return n;
}

int gf_mpi_ask(struct gf_mpi *m, struct gf_request *r, struct gf_error *err)
{
	int rc = 0;

	if (!r->come && r->place && r->round == m->asked.round)
		rc = ask_all(m, err);
	if (rc < 0)
		return rc;
	if (r->come) {
		r->come = false;
		return 1;
	}
	if (!r->place)
		note(m, r);
	r->round = m->asked.round;
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
