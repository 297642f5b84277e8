/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI: begins and ends it. The transport's files are in comm/mpi_state.h. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "comm/mpi_state.h"
#include "comm/pages.h"

#define PIECE_BYTES ((size_t)1 << 30)

int gf_mpi_fail(struct gf_comm *c, int code, const char *call,
		struct gf_error *err)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;

	if (c)
		c->broken = true;
	MPI_Error_string(code, text, &length);
	return gf_error_set(err, -EIO, "%s: %s", call, text);
}

static int note_library(struct dl_phdr_info *library, size_t size, void *names)
{
	(void)size;
	gf_text_addf(names, "%s\n", library->dlpi_name);
	return 0;
}

/* Open MPI 4.1 unloads its components while a thread of its own may still run
 * in one of them, which ended a job by SIGSEGV when all its work was done.
 * Every library now stays until the process ends. */
static void keep_libraries(void)
{
	struct gf_text names = {0};
	char *rest, *name;
	void *library;

	dl_iterate_phdr(note_library, &names);
	for (rest = names.data; (name = strsep(&rest, "\n"));) {
		library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
		if (library)
			dlclose(library);
	}
	gf_text_release(&names);
}

static void mpi_abort(struct gf_comm *c, int status)
{
	MPI_Abort(gf_mpi_of(c)->world, status);
}

static void mpi_close(struct gf_comm *c)
{
	struct gf_mpi *m = gf_mpi_of(c);
	struct gf_comm_request *r;

	gf_mpi_teams_free(m);
	/* MPI_Finalize would wait for the ranks that do not come back. */
	if (!c->broken) {
		if (m->tools)
			MPI_T_finalize();
		if (m->own)
			gf_mpi_set_yields(m->yields);
		gf_mpi_numbers_free(m);
		MPI_Request_free(&m->nothing);
		MPI_Comm_free(&m->world);
		if (m->own) {
			keep_libraries();
			MPI_Finalize();
		}
	}
	while ((r = gf_slab_spare(&m->requests)))
		free(r->many);
	gf_slab_release(&m->requests);
	gf_mpi_asked_release(&m->asked);
	free(m);
}

/* A message under way may yet come, and a rank may yet fetch one. */
static void buffer_free(struct gf_comm *c, void *data)
{
	if (!c->broken)
		gf_pages_free(data);
}

static const struct gf_comm_ops mpi_ops = {
	.name = "mpi",
	.isend = gf_mpi_isend,
	.irecv = gf_mpi_irecv,
	.test = gf_mpi_test,
	.poll = gf_mpi_poll,
	.cancel = gf_mpi_cancel,
	.probe = gf_mpi_probe,
	.barrier = gf_mpi_barrier,
	.bcast = gf_mpi_bcast,
	.allgather = gf_mpi_allgather,
	.iallreduce = gf_mpi_iallreduce,
	.tell = gf_mpi_tell,
	.team = gf_mpi_team,
	.iteam = gf_mpi_iteam,
	.abort = mpi_abort,
	.buffer_alloc = gf_pages_buffer_alloc,
	.buffer_free = buffer_free,
	.close = mpi_close,
};

/* MPI is there already. It will do if several threads may call it at once,
 * since the code that began it may call it beside this library. An MPI that
 * this library has begun need not allow that: a second communicator is refused,
 * and so is one after the end. */
static int share(struct gf_error *err)
{
	struct gf_comm *c = NULL;
	int rc = 0, ended, provided;

	MPI_TRY(MPI_Finalized, &ended);
	if (ended)
		return gf_error_set(err, -EBUSY,
				    "MPI has ended in this process, and "
				    "begins once");
	MPI_TRY(MPI_Query_thread, &provided);
	if (provided < MPI_THREAD_MULTIPLE)
		rc = gf_error_set(err, -EBUSY,
				  "MPI is already initialised: want "
				  "MPI_THREAD_MULTIPLE then, got level %d",
				  provided);
out:
	return rc;
}

static int start(bool *own, struct gf_error *err)
{
	struct gf_comm *c = NULL;
	int rc = 0, begun, provided;

	MPI_TRY(MPI_Initialized, &begun);
	*own = !begun;
	if (begun)
		return share(err);
	MPI_TRY(MPI_Init_thread, NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
	if (provided < MPI_THREAD_SERIALIZED)
		rc = gf_error_set(err, -ENOTSUP,
				  "want MPI_THREAD_SERIALIZED, this MPI "
				  "offers only level %d",
				  provided);
out:
	return rc;
}

int gf_comm_mpi_open(struct gf_comm **comm, struct gf_error *err)
{
	struct gf_mpi *m;
	struct gf_comm *c = NULL;
	MPI_Comm host;
	bool own = false;
	int rc;

	rc = start(&own, err);
	if (rc)
		return rc;
	m = gf_xcalloc(1, sizeof(*m));
	c = &m->comm;
	c->ops = &mpi_ops;
	c->priv = m;
	m->own = own;
	m->piece_bytes = PIECE_BYTES;
	gf_slab_init(&m->requests, sizeof(struct gf_comm_request));
	if (own)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_TRY(MPI_Comm_dup, MPI_COMM_WORLD, &m->world);
	MPI_TRY(MPI_Comm_set_errhandler, m->world, MPI_ERRORS_RETURN);
	MPI_TRY(MPI_Comm_rank, m->world, &c->rank);
	MPI_TRY(MPI_Comm_size, m->world, &c->ranks);
	MPI_TRY(MPI_Recv_init, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, m->world,
		&m->nothing);
	MPI_TRY(MPI_Comm_split_type, m->world, MPI_COMM_TYPE_SHARED, 0,
		MPI_INFO_NULL, &host);
	MPI_TRY(MPI_Comm_rank, host, &c->local_rank);
	MPI_TRY(MPI_Comm_size, host, &c->local_ranks);
	MPI_TRY(MPI_Allreduce, &c->rank, &c->host, 1, MPI_INT, MPI_MIN, host);
	MPI_TRY(MPI_Comm_free, &host);
	gf_mpi_library(c->library, sizeof(c->library));
	rc = gf_mpi_numbers_make(m, err);
	if (rc)
		goto out;
	/* Waiting is done here (comm/backoff.h). On Linux a thread that yields
	 * beside compute pays with a whole time slice. */
	if (own)
		m->yields = gf_mpi_set_yields(false);
	rc = gf_mpi_divide_tags(m, err);
out:
	/* Once a call of MPI has failed, c is broken, and MPI is not asked to
	 * free what it has made. */
	if (rc)
		mpi_close(c);
	else
		*comm = c;
	return rc;
}

void gf_comm_mpi_piece_bytes(struct gf_comm *c, size_t piece_bytes)
{
	if (c->ops == &mpi_ops)
		gf_mpi_of(c)->piece_bytes = piece_bytes;
}
