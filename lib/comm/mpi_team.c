/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Over MPI: collectives of teams, each on a communicator of its own. A channel
 * has its own communicators: MPI wants one order of the collectives of a
 * communicator on all members, and messages on two channels may overtake each
 * other.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/heap.h"
#include "comm/mpi_state.h"

struct gf_comm_team {
	struct gf_comm_team *next;
	uint32_t channel;
	int first, stride, size;
	MPI_Comm comm;
	int *counts, *places; /* of the collective being started */
};

/* The members' ranks in the world; MPI keeps no reference. */
static int make(struct gf_comm *c, struct gf_comm_team *t, struct gf_error *err)
{
	MPI_Group world = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
	int range[1][3] = {
		{t->first, t->first + (t->size - 1) * t->stride, t->stride}};
	int rc = 0;

	MPI_TRY(MPI_Comm_group, gf_mpi_of(c)->world, &world);
	MPI_TRY(MPI_Group_range_incl, world, 1, range, &members);
	MPI_TRY(MPI_Comm_create_group, gf_mpi_of(c)->world, members, 0,
		&t->comm);
	MPI_TRY(MPI_Comm_set_errhandler, t->comm, MPI_ERRORS_RETURN);
out:
	if (members != MPI_GROUP_NULL)
		MPI_Group_free(&members);
	if (world != MPI_GROUP_NULL)
		MPI_Group_free(&world);
	return rc;
}

int gf_mpi_team(struct gf_comm *c, uint32_t channel, int first, int stride,
		int size, struct gf_comm_team **team, struct gf_error *err)
{
	struct gf_mpi *m = gf_mpi_of(c);
	struct gf_comm_team *t;
	int rc;

	for (t = m->teams; t; t = t->next)
		if (t->channel == channel && t->first == first &&
		    t->stride == stride && t->size == size)
			break;
	*team = t;
	if (t)
		return 0;
	t = gf_xcalloc(1, sizeof(*t));
	*t = (struct gf_comm_team){.channel = channel,
				   .first = first,
				   .stride = stride,
				   .size = size};
	rc = make(c, t, err);
	if (rc) {
		free(t);
		return rc;
	}
	t->counts = gf_xcalloc((size_t)size, sizeof(*t->counts));
	t->places = gf_xcalloc((size_t)size, sizeof(*t->places));
	t->next = m->teams;
	m->teams = *team = t;
	return 0;
}

void gf_mpi_teams_free(struct gf_mpi *m)
{
	struct gf_comm_team *t;

	while ((t = m->teams)) {
		m->teams = t->next;
		if (!m->comm.broken)
			MPI_Comm_free(&t->comm);
		free(t->counts);
		free(t->places);
		free(t);
	}
}

/* The parts of n elements, each one element longer than others or not. */
static int cut(struct gf_comm_team *t, size_t n, struct gf_error *err)
{
	size_t size = (size_t)t->size, place = 0, i;

	if (n > INT_MAX)
		return gf_error_set(err, -ENOTSUP,
				    "stage mpi: want at most %d elements, got "
				    "%zu",
				    INT_MAX, n);
	for (i = 0; i < size; i++) {
		t->counts[i] = (int)(n / size + (i < n % size));
		t->places[i] = (int)place;
		place += (size_t)t->counts[i];
	}
	return 0;
}

int gf_mpi_iteam(struct gf_comm *c, struct gf_comm_team *t, bool gathers,
		 void *data, size_t n, const struct gf_element *element,
		 struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_comm_request *r;
	MPI_Datatype type;
	MPI_Op op;
	int rc = gf_mpi_number(gf_mpi_of(c), element, &type, &op, err);

	rc = rc ? rc : cut(t, n, err);
	if (rc)
		return rc;
	r = gf_mpi_take(c, 1);
	r->peer = -1;
	if (gathers)
		MPI_TRY(MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
			data, t->counts, t->places, type, t->comm,
			&r->pieces[0]);
	else
		MPI_TRY(MPI_Ireduce_scatter, MPI_IN_PLACE, data, t->counts,
			type, op, t->comm, &r->pieces[0]);
	*request = r;
out:
	if (rc)
		gf_mpi_cancel(c, r);
	return rc;
}
