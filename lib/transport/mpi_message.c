/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages over MPI.
 *
 * TAGS. MPI promises 15 bits and usually has more; what there is is divided between channel and
 * match, and a tag that does not fit is refused.
 *
 * SIZES. A count is an int, so a long message goes in pieces. The first of n pieces is n bytes
 * longer than the limit: no two sizes are cut alike, and a size mismatch always shows in some
 * piece. (Above its eager limit, Open MPI 4.1 copies straight from the sender's memory, and writes
 * a message that is longer than its receive before it notices. Then the check comes too late, so
 * callers must agree on equal sizes.)
 */
#include <inttypes.h>

#include "base/heap.h"
#include "transport/mpi_state.h"

static int map_tag(struct gf_comm *c, uint64_t tag, int *mapped, struct gf_error *err)
{
	uint64_t packed;
	int rc = gf_tag_pack(&gf_mpi_of(c)->tag_bits, tag, "this MPI's", &packed, err);

	if (!rc)
		*mapped = (int)packed;
	return rc;
}

size_t gf_mpi_count_pieces(size_t size_bytes, size_t limit)
{
	return size_bytes <= limit ? 1 : (size_bytes - 1) / limit + 1;
}

/* Piece i of a message: where it begins, and how long it is. */
static size_t piece(const struct gf_comm_request *r, size_t i, size_t *first)
{
	size_t extra = r->npieces > 1 ? r->npieces : 0;
	size_t limit = r->piece_bytes, begin, end;

	begin = i == 0 ? 0 : i * limit + extra;
	end = (i + 1) * limit + extra;
	if (begin > r->size_bytes)
		begin = r->size_bytes;
	if (end > r->size_bytes || i + 1 == r->npieces)
		end = r->size_bytes;
	*first = begin;
	return end - begin;
}

struct gf_comm_request *gf_mpi_take(struct gf_comm *c, size_t npieces)
{
	struct gf_mpi *m = gf_mpi_of(c);
	struct gf_comm_request *r = gf_slab_take(&m->requests);

	/* with the memory that it once had for its pieces */
	*r = (struct gf_comm_request){.many = r->many,
				      .capacity = r->capacity,
				      .npieces = npieces,
				      .piece_bytes = m->piece_bytes};
	if (npieces > 1 && npieces > r->capacity) {
		r->many = gf_xreallocarray(r->many, npieces, sizeof(*r->many));
		r->capacity = npieces;
	}
	r->pieces = npieces == 1 ? &r->one : r->many;
	for (size_t i = 0; i < npieces; i++)
		r->pieces[i] = MPI_REQUEST_NULL;
	return r;
}

static void give(struct gf_comm *c, struct gf_comm_request *r)
{
	gf_slab_give(&gf_mpi_of(c)->requests, r);
}

/* --- which have come ---------------------------------------------------- */

/*
 * Tests whether requests have ended. In a test of a request that has not ended, MPI polls the
 * network, and gives the processor away if nothing is there. A thread that waits for messages from
 * several ranks tests them in turn, and would pay that once for each. With more ranks than
 * processors, the first message to come would lie there while the others' turns pass. So the
 * network is polled once a round, for all requests on the list: when one of them is tested for the
 * second time in the round. If the last poll found something, the network is also polled when a
 * request is tested for the first time: perhaps its message is here, too, and the thread is about
 * to sleep.
 */
/* Puts the request's current piece on the list. */
static void note(struct gf_mpi *m, struct gf_comm_request *r)
{
	struct gf_mpi_asked *a = &m->asked;

	if (a->n == a->capacity) {
		a->capacity = a->capacity ? 2 * a->capacity : 64;
		a->list = gf_xreallocarray(a->list, a->capacity, sizeof(*a->list));
		a->come = gf_xreallocarray(a->come, a->capacity, sizeof(*a->come));
		/* one more: `nothing` */
		a->handles = gf_xreallocarray(a->handles, a->capacity + 1, sizeof(*a->handles));
		a->which = gf_xreallocarray(a->which, a->capacity + 1, sizeof(*a->which));
		a->states = gf_xreallocarray(a->states, a->capacity + 1, sizeof(*a->states));
	}
	a->handles[a->n] = r->pieces[r->done];
	a->list[a->n++] = r;
	r->place = a->n;
}

/* The request will not be tested any more. */
static void unask(struct gf_mpi *m, struct gf_comm_request *r)
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
 * Open MPI looks at the requests first and polls the network after that, so that a message found
 * there would be reported the next time, perhaps after a sleep. If one of the requests is always
 * done (`nothing`), Open MPI looks and does not poll.
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

/* Polls once, and takes the requests that have ended off the list. Returns their number, or the
 * failure. */
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
		unask(m, a->come[k]);
	a->found = n > 0;
	return n;
}

/* Has its next piece come? 1: r->code and r->state say how; 0; or the transport's failure. */
static int ask(struct gf_mpi *m, struct gf_comm_request *r, struct gf_error *err)
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

static bool mpi_poll(struct gf_comm *c)
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

/* --- messages ----------------------------------------------------------- */

/* Lets go of the pieces still under way. A receive that cannot be called back may yet write: the
 * caller keeps its buffers until nothing progresses MPI. */
void gf_mpi_cancel(struct gf_comm *c, struct gf_comm_request *r)
{
	int flag;

	unask(gf_mpi_of(c), r);
	for (size_t i = r->done; i < r->npieces; i++) {
		if (r->pieces[i] == MPI_REQUEST_NULL)
			continue;
		if (r->receive)
			MPI_Cancel(&r->pieces[i]);
		MPI_Test(&r->pieces[i], &flag, MPI_STATUS_IGNORE);
		if (r->pieces[i] != MPI_REQUEST_NULL && r->peer >= 0)
			MPI_Request_free(&r->pieces[i]);
	}
	give(c, r);
}

/* All pieces of a message, one way or the other. */
static int post(struct gf_comm *c, const struct gf_comm_request *message, char *data,
		struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_mpi *m = gf_mpi_of(c);
	size_t n = gf_mpi_count_pieces(message->size_bytes, m->piece_bytes);
	struct gf_comm_request *r;
	size_t i, first, size;
	int rc, tag;

	rc = map_tag(c, message->tag, &tag, err);
	if (rc)
		return rc;
	r = gf_mpi_take(c, n);
	r->receive = message->receive;
	r->peer = message->peer;
	r->tag = message->tag;
	r->size_bytes = message->size_bytes;
	for (i = 0; i < n; i++) {
		size = piece(r, i, &first);
		if (r->receive)
			MPI_TRY(MPI_Irecv, data + first, (int)size, MPI_BYTE, r->peer, tag,
				m->world, &r->pieces[i]);
		else
			MPI_TRY(MPI_Isend, data + first, (int)size, MPI_BYTE, r->peer, tag,
				m->world, &r->pieces[i]);
	}
	*request = r;
out:
	if (rc)
		gf_mpi_cancel(c, r);
	return rc;
}

static int mpi_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data, size_t size_bytes,
		     struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_comm_request message = {.peer = peer, .tag = tag, .size_bytes = size_bytes};

	return post(c, &message, (char *)(uintptr_t)data, request, err);
}

static int mpi_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		     struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_comm_request message = {
		.receive = true, .peer = peer, .tag = tag, .size_bytes = size_bytes};

	return post(c, &message, data, request, err);
}

/* A piece has come: is it as long as it should be? */
static int check_piece(const struct gf_comm_request *r, int code, const MPI_Status *status,
		       struct gf_error *err)
{
	size_t first, want = piece(r, r->done, &first);
	int class = MPI_SUCCESS, got = 0;

	if (!r->receive)
		return 0;
	if (code != MPI_SUCCESS)
		MPI_Error_class(code, &class);
	MPI_Get_count(status, MPI_BYTE, &got);
	if (class != MPI_ERR_TRUNCATE && (size_t)got == want)
		return 0;
	return gf_error_set(err, -EMSGSIZE,
			    "message from rank %d, channel %" PRIu64 ", match %" PRIu64
			    ": want %zu bytes, got %zu%s",
			    r->peer, r->tag >> 32, r->tag & UINT32_MAX, r->size_bytes,
			    first + (size_t)got,
			    r->npieces > 1 || (size_t)got > r->piece_bytes ? " or more" : "");
}

static int mpi_test(struct gf_comm *c, struct gf_comm_request *r, struct gf_error *err)
{
	int class, rc = 1;

	while (r->done < r->npieces) {
		rc = ask(gf_mpi_of(c), r, err);
		if (!rc)
			return 0;
		if (rc < 0)
			break;
		class = MPI_SUCCESS;
		if (r->code != MPI_SUCCESS)
			MPI_Error_class(r->code, &class);
		if (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE)
			rc = gf_mpi_fail(c, r->code, "MPI_Testsome", err);
		else
			rc = check_piece(r, r->code, &r->state, err);
		if (rc)
			break;
		rc = 1;
		r->done++;
	}
	if (rc < 0)
		gf_mpi_cancel(c, r);
	else
		give(c, r);
	return rc;
}

static int mpi_probe(struct gf_comm *c, uint64_t tag, int *peer, struct gf_error *err)
{
	MPI_Status status;
	int rc, mapped, flag;

	rc = map_tag(c, tag, &mapped, err);
	if (rc)
		return rc;
	MPI_TRY(MPI_Iprobe, MPI_ANY_SOURCE, mapped, gf_mpi_of(c)->world, &flag, &status);
	if (flag)
		*peer = status.MPI_SOURCE;
	rc = flag ? 1 : 0;
out:
	return rc;
}

const struct gf_comm_ops gf_mpi_messages = {
	.isend = mpi_isend,
	.irecv = mpi_irecv,
	.test = mpi_test,
	.poll = mpi_poll,
	.cancel = gf_mpi_cancel,
	.probe = mpi_probe,
};
