/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI: the only file that calls it, and the only one that narrows to int.
 *
 * TAGS. MPI promises 15 bits and usually has more; what there is is divided
 * between channel and match, and a tag that does not fit is refused. The
 * library's own channels are counted down from the top.
 *
 * SIZES. A count is an int, so a long message goes in pieces. The first of n
 * pieces is n bytes longer than the limit: no two sizes are cut alike, and a
 * size mismatch always shows in some piece. (Open MPI 4.1 notices that a
 * message is longer than its receive only after it has written it, when it
 * copies straight from the sender's memory: above its eager limit the check
 * comes too late, and equal sizes are the caller's business to agree on.)
 *
 * WAITING. Nothing here calls a blocking MPI function between open and close:
 * collectives are the non-blocking ones, tested with back-off, because a
 * blocked rank could neither give up nor answer whether it is alive.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "comm/backoff.h"
#include "comm/comm.h"
#include "comm/pages.h"

#define PIECE_BYTES ((size_t)1 << 30)

struct gf_request {
	MPI_Request one, *pieces; /* &one, or npieces allocated */
	size_t npieces, done;
	bool receive;
	int peer;
	uint64_t tag;
	size_t size_bytes, piece_bytes;
	struct gf_request *next_free;
};

struct mpi {
	struct gf_comm comm;
	MPI_Comm world; /* a duplicate: nobody else's messages are in it */
	int channel_bits, match_bits;
	size_t piece_bytes;
	struct gf_request *free;
};

#if defined(__SANITIZE_ADDRESS__)
/* Open MPI keeps memory until the process ends, some of it from modules that
 * it has unloaded by then, where no suppression finds it: a process that used
 * it is not searched for leaks. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	int used = 0;

	MPI_Initialized(&used);
	return used;
}
#endif

static struct mpi *of(struct gf_comm *c)
{
	return c->priv;
}

static int fail(struct gf_comm *c, int code, const char *call,
		struct gf_error *err)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;

	if (c)
		c->broken = true;
	MPI_Error_string(code, text, &length);
	return gf_error_set(err, -EIO, "%s: %s", call, text);
}

/* Needs c, err, rc and a label out. */
#define MPI_TRY(call, ...)                                                     \
	do {                                                                   \
		int code_ = call(__VA_ARGS__);                                 \
		if (code_ != MPI_SUCCESS) {                                    \
			rc = fail(c, code_, #call, err);                       \
			goto out;                                              \
		}                                                              \
	} while (0)

static int map_tag(struct gf_comm *c, uint64_t tag, int *mapped,
		   struct gf_error *err)
{
	const struct mpi *m = of(c);
	uint64_t channel = tag >> 32, match = tag & UINT32_MAX;
	uint64_t channels = (uint64_t)1 << m->channel_bits;

	if (channel > GF_CHANNEL_LAST) {
		channel = channels - 1 - (GF_CHANNEL_GATHER - channel);
		channels = channel + 1;
	} else {
		channels -= GF_CHANNEL_GATHER - GF_CHANNEL_LIVENESS + 1;
	}
	if (channel >= channels || match >> m->match_bits)
		return gf_error_set(err, -EOVERFLOW,
				    "channel %" PRIu64 ", match %" PRIu64
				    ": more than this MPI's tags hold "
				    "(%d + %d bits)",
				    tag >> 32, match, m->channel_bits,
				    m->match_bits);
	*mapped = (int)(channel << m->match_bits | match);
	return 0;
}

static size_t count_pieces(size_t size_bytes, size_t limit)
{
	return size_bytes <= limit ? 1 : (size_bytes - 1) / limit + 1;
}

/* Piece i of a message: where it begins, and how long it is. */
static size_t piece(const struct gf_request *r, size_t i, size_t *first)
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

static struct gf_request *take(struct gf_comm *c, size_t npieces)
{
	struct mpi *m = of(c);
	struct gf_request *r = m->free;
	size_t i;

	if (r)
		m->free = r->next_free;
	else
		r = gf_xmalloc(sizeof(*r));
	memset(r, 0, sizeof(*r));
	r->npieces = npieces;
	r->piece_bytes = m->piece_bytes;
	r->pieces = npieces == 1 ? &r->one
				 : gf_xcalloc(npieces, sizeof(*r->pieces));
	for (i = 0; i < npieces; i++)
		r->pieces[i] = MPI_REQUEST_NULL;
	return r;
}

static void give(struct gf_comm *c, struct gf_request *r)
{
	struct mpi *m = of(c);

	if (r->pieces != &r->one)
		free(r->pieces);
	r->next_free = m->free;
	m->free = r;
}

/* Lets go of what is still under way. A receive that cannot be called back
 * may yet write: the caller keeps its buffers until nothing progresses MPI. */
static void mpi_cancel(struct gf_comm *c, struct gf_request *r)
{
	size_t i;
	int flag;

	for (i = r->done; i < r->npieces; i++) {
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

static struct gf_request *message(struct gf_comm *c, int peer, uint64_t tag,
				  size_t size_bytes)
{
	struct gf_request *r =
		take(c, count_pieces(size_bytes, of(c)->piece_bytes));

	r->peer = peer;
	r->tag = tag;
	r->size_bytes = size_bytes;
	return r;
}

static int mpi_isend(struct gf_comm *c, int peer, uint64_t tag,
		     const void *data, size_t size_bytes,
		     struct gf_request **request, struct gf_error *err)
{
	struct gf_request *r;
	size_t i, first, size;
	int rc, mapped;

	rc = map_tag(c, tag, &mapped, err);
	if (rc)
		return rc;
	r = message(c, peer, tag, size_bytes);
	for (i = 0; i < r->npieces; i++) {
		size = piece(r, i, &first);
		MPI_TRY(MPI_Isend, (const char *)data + first, (int)size,
			MPI_BYTE, peer, mapped, of(c)->world, &r->pieces[i]);
	}
	*request = r;
out:
	if (rc)
		mpi_cancel(c, r);
	return rc;
}

static int mpi_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data,
		     size_t size_bytes, struct gf_request **request,
		     struct gf_error *err)
{
	struct gf_request *r;
	size_t i, first, size;
	int rc, mapped;

	rc = map_tag(c, tag, &mapped, err);
	if (rc)
		return rc;
	r = message(c, peer, tag, size_bytes);
	r->receive = true;
	for (i = 0; i < r->npieces; i++) {
		size = piece(r, i, &first);
		MPI_TRY(MPI_Irecv, (char *)data + first, (int)size, MPI_BYTE,
			peer, mapped, of(c)->world, &r->pieces[i]);
	}
	*request = r;
out:
	if (rc)
		mpi_cancel(c, r);
	return rc;
}

/* A piece has come: is it as long as it should be? */
static int check_piece(const struct gf_request *r, int code,
		       const MPI_Status *status, struct gf_error *err)
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
			    "message from rank %d, channel %" PRIu64
			    ", match %" PRIu64 ": want %zu bytes, got %zu%s",
			    r->peer, r->tag >> 32, r->tag & UINT32_MAX,
			    r->size_bytes, first + (size_t)got,
			    r->npieces > 1 || (size_t)got > r->piece_bytes
				    ? " or more"
				    : "");
}

static int mpi_test(struct gf_comm *c, struct gf_request *r,
		    struct gf_error *err)
{
	MPI_Status status;
	int flag, code, class, rc = 1;

	while (r->done < r->npieces) {
		code = MPI_Test(&r->pieces[r->done], &flag, &status);
		class = MPI_SUCCESS;
		if (code != MPI_SUCCESS)
			MPI_Error_class(code, &class);
		if (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE) {
			rc = fail(c, code, "MPI_Test", err);
			break;
		}
		if (!flag && class == MPI_SUCCESS)
			return 0;
		rc = check_piece(r, code, &status, err);
		if (rc)
			break;
		rc = 1;
		r->done++;
	}
	if (rc < 0)
		mpi_cancel(c, r);
	else
		give(c, r);
	return rc;
}

static int mpi_probe(struct gf_comm *c, uint64_t tag, int *peer,
		     struct gf_error *err)
{
	MPI_Status status;
	int rc, mapped, flag;

	rc = map_tag(c, tag, &mapped, err);
	if (rc)
		return rc;
	MPI_TRY(MPI_Iprobe, MPI_ANY_SOURCE, mapped, of(c)->world, &flag,
		&status);
	if (flag)
		*peer = status.MPI_SOURCE;
	rc = flag ? 1 : 0;
out:
	return rc;
}

/* A collective that has been started. When on_wait gives up it stays behind:
 * MPI cannot take it back. */
static int finish(struct gf_comm *c, MPI_Request *request, struct gf_error *err)
{
	struct gf_backoff backoff = {0};
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

static int mpi_barrier(struct gf_comm *c, struct gf_error *err)
{
	MPI_Request request;
	int rc = 0;

	MPI_TRY(MPI_Ibarrier, of(c)->world, &request);
	rc = finish(c, &request, err);
out:
	return rc;
}

static int mpi_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes,
		     struct gf_error *err)
{
	size_t limit = of(c)->piece_bytes, first, size;
	MPI_Request request;
	int rc = 0;

	for (first = 0; first < size_bytes && !rc; first += size) {
		size = size_bytes - first < limit ? size_bytes - first : limit;
		MPI_TRY(MPI_Ibcast, (char *)data + first, (int)size, MPI_BYTE,
			root, of(c)->world, &request);
		rc = finish(c, &request, err);
	}
out:
	return rc;
}

static int mpi_allgather(struct gf_comm *c, const void *send, size_t size_bytes,
			 void *recv, struct gf_error *err)
{
	MPI_Request request;
	char *to = recv;
	int rank, rc = 0;

	memcpy(to + (size_t)c->rank * size_bytes, send, size_bytes);
	if (size_bytes <= of(c)->piece_bytes) {
		MPI_TRY(MPI_Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to,
			(int)size_bytes, MPI_BYTE, of(c)->world, &request);
		rc = finish(c, &request, err);
		goto out;
	}
	for (rank = 0; rank < c->ranks && !rc; rank++)
		rc = mpi_bcast(c, rank, to + (size_t)rank * size_bytes,
			       size_bytes, err);
out:
	return rc;
}

static int mpi_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
			  const struct gf_element *element,
			  struct gf_request **request, struct gf_error *err)
{
	size_t limit = of(c)->piece_bytes / element->size_bytes, i, count;
	const MPI_Op ops[GF_OPS] = {[GF_OP_SUM] = MPI_SUM,
				    [GF_OP_AVG] = MPI_SUM,
				    [GF_OP_PROD] = MPI_PROD,
				    [GF_OP_MAX] = MPI_MAX,
				    [GF_OP_MIN] = MPI_MIN};
	MPI_Datatype types[GF_DTYPES] = {MPI_FLOAT, MPI_DOUBLE,
					 MPI_DATATYPE_NULL, MPI_DATATYPE_NULL,
					 MPI_INT32_T};
	struct gf_request *r;
	int rc = 0;

	if (!element->number || types[element->dtype] == MPI_DATATYPE_NULL)
		return gf_error_set(
			err, -ENOTSUP, "MPI has no all-reduce of %s",
			element->number ? gf_dtype_names[element->dtype]
					: "sparse sets");
	r = take(c, count_pieces(count_elems, limit));

	/* All pieces at once: later ones must not come behind other messages'
	 * on one rank and before them on another. */
	r->peer = -1;
	for (i = 0; i < r->npieces; i++) {
		count = count_elems - i * limit;
		MPI_TRY(MPI_Iallreduce, MPI_IN_PLACE,
			(char *)data + i * limit * element->size_bytes,
			(int)(count < limit ? count : limit),
			types[element->dtype], ops[element->op], of(c)->world,
			&r->pieces[i]);
	}
	*request = r;
out:
	if (rc)
		mpi_cancel(c, r);
	return rc;
}

static void mpi_abort(struct gf_comm *c, int status)
{
	MPI_Abort(of(c)->world, status);
}

static int mpi_buffer_alloc(struct gf_comm *c, size_t size_bytes, void **data,
			    struct gf_error *err)
{
	(void)c;
	return gf_pages_alloc(size_bytes, data, err);
}

static void mpi_buffer_free(struct gf_comm *c, void *data)
{
	(void)c;
	gf_pages_free(data);
}

static void mpi_close(struct gf_comm *c)
{
	struct mpi *m = of(c);
	struct gf_request *r;

	/* MPI_Finalize would wait for the ranks that do not come back. */
	if (!c->broken) {
		MPI_Comm_free(&m->world);
		MPI_Finalize();
	}
	while ((r = m->free)) {
		m->free = r->next_free;
		free(r);
	}
	free(m);
}

static const struct gf_comm_ops mpi_ops = {
	.name = "mpi",
	.isend = mpi_isend,
	.irecv = mpi_irecv,
	.test = mpi_test,
	.cancel = mpi_cancel,
	.probe = mpi_probe,
	.barrier = mpi_barrier,
	.bcast = mpi_bcast,
	.allgather = mpi_allgather,
	.iallreduce = mpi_iallreduce,
	.abort = mpi_abort,
	.buffer_alloc = mpi_buffer_alloc,
	.buffer_free = mpi_buffer_free,
	.close = mpi_close,
};

static int start(struct gf_error *err)
{
	struct gf_comm *c = NULL;
	int rc = 0, begun, provided;

	MPI_TRY(MPI_Initialized, &begun);
	if (begun)
		return gf_error_set(err, -EBUSY, "MPI is already initialised");
	MPI_TRY(MPI_Init_thread, NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
	if (provided < MPI_THREAD_SERIALIZED)
		rc = gf_error_set(err, -ENOTSUP,
				  "want MPI_THREAD_SERIALIZED, this MPI "
				  "offers only level %d",
				  provided);
out:
	return rc;
}

/* Divides the bits of MPI's tags: matches, of which there are as many as
 * steps between two ranks, get a little more than half. */
static int divide_tags(struct mpi *m, struct gf_error *err)
{
	struct gf_comm *c = &m->comm;
	int rc = 0, found = 0, bits;
	int *upper = NULL;

	MPI_TRY(MPI_Comm_get_attr, m->world, MPI_TAG_UB, &upper, &found);
	if (!found || *upper < 32767)
		return gf_error_set(err, -ENOTSUP,
				    "want MPI_TAG_UB >= 32767, got %d",
				    found ? *upper : -1);
	for (bits = 15; bits < 31 && *upper >> bits; bits++)
		;
	if ((unsigned)*upper + 1 < 1u << bits)
		bits--;
	m->match_bits = (bits * 5 + 8) / 9;
	m->channel_bits = bits - m->match_bits;
out:
	return rc;
}

int gf_comm_mpi_open(struct gf_comm **comm, struct gf_error *err)
{
	struct mpi *m;
	struct gf_comm *c = NULL;
	MPI_Comm host;
	int rc;

	rc = start(err);
	if (rc)
		return rc;
	m = gf_xcalloc(1, sizeof(*m));
	c = &m->comm;
	c->ops = &mpi_ops;
	c->priv = m;
	m->piece_bytes = PIECE_BYTES;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_TRY(MPI_Comm_dup, MPI_COMM_WORLD, &m->world);
	MPI_TRY(MPI_Comm_set_errhandler, m->world, MPI_ERRORS_RETURN);
	MPI_TRY(MPI_Comm_rank, m->world, &c->rank);
	MPI_TRY(MPI_Comm_size, m->world, &c->ranks);
	MPI_TRY(MPI_Comm_split_type, m->world, MPI_COMM_TYPE_SHARED, 0,
		MPI_INFO_NULL, &host);
	MPI_TRY(MPI_Comm_rank, host, &c->local_rank);
	MPI_TRY(MPI_Comm_size, host, &c->local_ranks);
	MPI_TRY(MPI_Allreduce, &c->rank, &c->host, 1, MPI_INT, MPI_MIN, host);
	MPI_TRY(MPI_Comm_free, &host);
	rc = divide_tags(m, err);
	if (rc)
		goto out;
	*comm = c;
out:
	if (rc)
		free(m);
	return rc;
}

void gf_comm_mpi_piece_bytes(struct gf_comm *c, size_t piece_bytes)
{
	if (c->ops == &mpi_ops)
		of(c)->piece_bytes = piece_bytes;
}
