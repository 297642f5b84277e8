/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Over MPI: what all ranks do together. MPI cannot take a collective back: if
 * on_wait gives up, the collective stays pending.
 */
#include "comm/backoff.h"
#include "comm/mpi_state.h"

/* Waits for a collective that has been started. */
static int finish(struct gf_comm *c, MPI_Request *request, struct gf_error *err)
{
	struct gf_backoff backoff = {.crowded = c->crowded};
	int rc = 0, flag = 0;

	for (;;) {
		MPI_TRY(MPI_Test, request, &flag, MPI_STATUS_IGNORE);
		if (flag)
			break;
		rc = c->on_wait ? c->on_wait(c->on_wait_ctx, err) : 0;
		if (rc) {
			c->broken = true;
			break;
		}
		gf_backoff_wait(&backoff);
	}
out:
	return rc;
}

int gf_mpi_barrier(struct gf_comm *c, struct gf_error *err)
{
	MPI_Request request;
	int rc = 0;

	MPI_TRY(MPI_Ibarrier, gf_mpi_of(c)->world, &request);
	rc = finish(c, &request, err);
out:
	return rc;
}

int gf_mpi_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes,
		 struct gf_error *err)
{
	MPI_Request request;
	int rc = 0;

	MPI_TRY(MPI_Ibcast, data, (int)size_bytes, MPI_BYTE, root,
		gf_mpi_of(c)->world, &request);
	rc = finish(c, &request, err);
out:
	return rc;
}

int gf_mpi_allgather(struct gf_comm *c, void *all, size_t size_bytes,
		     struct gf_error *err)
{
	MPI_Request request;
	int rc = 0;

	MPI_TRY(MPI_Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all,
		(int)size_bytes, MPI_BYTE, gf_mpi_of(c)->world, &request);
	rc = finish(c, &request, err);
out:
	return rc;
}

int gf_mpi_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
		      const struct gf_element *element,
		      struct gf_comm_request **request, struct gf_error *err)
{
	size_t limit = gf_mpi_of(c)->piece_bytes / element->size_bytes, i,
	       count;
	struct gf_comm_request *r;
	MPI_Datatype type;
	MPI_Op op;
	int rc;

	rc = gf_mpi_number(gf_mpi_of(c), element, &type, &op, err);
	if (rc)
		return rc;
	r = gf_mpi_take(c, gf_mpi_count_pieces(count_elems, limit));
	/* All pieces start at once: on every rank they must have the same order
	 * relative to the pieces of other messages. */
	r->peer = -1;
	for (i = 0; i < r->npieces; i++) {
		count = count_elems - i * limit;
		MPI_TRY(MPI_Iallreduce, MPI_IN_PLACE,
			(char *)data + i * limit * element->size_bytes,
			(int)(count < limit ? count : limit), type, op,
			gf_mpi_of(c)->world, &r->pieces[i]);
	}
	*request = r;
out:
	if (rc)
		gf_mpi_cancel(c, r);
	return rc;
}
