/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Over MPI: what all ranks do together.
 *
 * MPI cannot take a collective back. If on_wait gives up, the collective stays
 * pending, and a late rank's bytes are written when they come: the caller's
 * memory may be gone by then. So bytes go through a carton, which stays, too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "comm/backoff.h"
#include "comm/mpi_state.h"

#define CARTON_BYTES ((size_t)4 << 20)

struct carton {
	struct gf_left left;
	char data[];
};

static struct carton *carton(size_t size_bytes)
{
	return gf_xmalloc(sizeof(struct carton) + size_bytes);
}

/* After a failure MPI may yet use it. */
static void put_away(struct gf_comm *c, struct carton *box, int rc)
{
	if (rc)
		gf_comm_leave(c, &box->left);
	else
		free(box);
}

static size_t most_bytes(const struct gf_mpi *m)
{
	return m->piece_bytes < CARTON_BYTES ? m->piece_bytes : CARTON_BYTES;
}

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
	size_t limit = most_bytes(gf_mpi_of(c)), first, size;
	struct carton *box = carton(size_bytes < limit ? size_bytes : limit);
	MPI_Request request;
	int rc = 0;

	for (first = 0; first < size_bytes && !rc; first += size) {
		size = size_bytes - first < limit ? size_bytes - first : limit;
		if (c->rank == root)
			memcpy(box->data, (char *)data + first, size);
		MPI_TRY(MPI_Ibcast, box->data, (int)size, MPI_BYTE, root,
			gf_mpi_of(c)->world, &request);
		rc = finish(c, &request, err);
		if (!rc && c->rank != root)
			memcpy((char *)data + first, box->data, size);
	}
out:
	put_away(c, box, rc);
	return rc;
}

int gf_mpi_allgather(struct gf_comm *c, const void *send, size_t size_bytes,
		     void *recv, struct gf_error *err)
{
	const size_t own = (size_t)c->rank * size_bytes;
	const size_t all = (size_t)c->ranks * size_bytes;
	struct carton *box;
	MPI_Request request;
	char *to = recv;
	int rank, rc = 0;

	if (size_bytes > most_bytes(gf_mpi_of(c))) {
		memcpy(to + own, send, size_bytes);
		for (rank = 0; rank < c->ranks && !rc; rank++)
			rc = gf_mpi_bcast(c, rank,
					  to + (size_t)rank * size_bytes,
					  size_bytes, err);
		return rc;
	}
	box = carton(all);
	memcpy(box->data + own, send, size_bytes);
	MPI_TRY(MPI_Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, box->data,
		(int)size_bytes, MPI_BYTE, gf_mpi_of(c)->world, &request);
	rc = finish(c, &request, err);
	if (!rc)
		memcpy(to, box->data, all);
out:
	put_away(c, box, rc);
	return rc;
}

int gf_mpi_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
		      const struct gf_element *element,
		      struct gf_request **request, struct gf_error *err)
{
	size_t limit = gf_mpi_of(c)->piece_bytes / element->size_bytes, i,
	       count;
	struct gf_request *r;
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
