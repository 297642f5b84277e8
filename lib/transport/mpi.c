/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI: begins and ends it, and has the collective calls. The transport's files are in
 * transport/mpi_state.h. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <string.h>

#include "base/heap.h"
#include "base/text.h"
#include "transport/mpi_state.h"
#include "transport/pages.h"

#define PIECE_BYTES ((size_t)1 << 30)

int gf_mpi_fail(struct gf_comm *c, int code, const char *call, struct gf_error *err)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int length = 0;

	if (c)
		c->broken = true;
	MPI_Error_string(code, text, &length);
	return gf_error_set(err, -EIO, "%s: %s", call, text);
}

/* Open MPI sets this once, by the environment: a job with more ranks than slots yields. No call of
 * the standard changes it. */
bool (*gf_mpi_yielder(void))(bool yields)
{
	bool (*set)(bool);

	*(void **)&set = dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
	return set;
}

bool gf_mpi_set_yields(bool yields)
{
	bool (*set)(bool) = gf_mpi_yielder();

	return set && set(yields);
}

/* --- the library's own reduction ---------------------------------------- */

static int mpi_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
			  const struct gf_element *element, struct gf_comm_request **request,
			  struct gf_error *err)
{
	size_t limit = gf_mpi_of(c)->piece_bytes / element->size_bytes, i, count;
	struct gf_comm_request *r;
	MPI_Datatype type;
	MPI_Op op;
	int rc = gf_mpi_number(gf_mpi_of(c), element, &type, &op, err);

	if (rc)
		return rc;
	r = gf_mpi_take(c, gf_mpi_count_pieces(count_elems, limit));
	/* All pieces start at once: on every rank they must have the same order relative to the
	 * pieces of other messages. */
	r->peer = -1;
	for (i = 0; i < r->npieces; i++) {
		count = count_elems - i * limit;
		MPI_TRY(MPI_Iallreduce, MPI_IN_PLACE,
			(char *)data + i * limit * element->size_bytes,
			(int)(count < limit ? count : limit), type, op, gf_mpi_of(c)->world,
			&r->pieces[i]);
	}
	*request = r;
out:
	if (rc)
		gf_mpi_cancel(c, r);
	return rc;
}

/* --- teams -------------------------------------------------------------- */

/*
 * Each team is a communicator of its own. A channel has its own communicators: MPI wants one order
 * of the collectives of a communicator on all members, and messages on two channels may overtake
 * each other.
 */
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
	int range[1][3] = {{t->first, t->first + (t->size - 1) * t->stride, t->stride}};
	int rc = 0;

	MPI_TRY(MPI_Comm_group, gf_mpi_of(c)->world, &world);
	MPI_TRY(MPI_Group_range_incl, world, 1, range, &members);
	MPI_TRY(MPI_Comm_create_group, gf_mpi_of(c)->world, members, 0, &t->comm);
	MPI_TRY(MPI_Comm_set_errhandler, t->comm, MPI_ERRORS_RETURN);
out:
	if (members != MPI_GROUP_NULL)
		MPI_Group_free(&members);
	if (world != MPI_GROUP_NULL)
		MPI_Group_free(&world);
	return rc;
}

static int mpi_team(struct gf_comm *c, uint32_t channel, int first, int stride, int size,
		    struct gf_comm_team **team, struct gf_error *err)
{
	struct gf_mpi *m = gf_mpi_of(c);
	struct gf_comm_team *t;
	int rc;

	for (t = m->teams; t; t = t->next)
		if (t->channel == channel && t->first == first && t->stride == stride &&
		    t->size == size)
			break;
	*team = t;
	if (t)
		return 0;
	t = gf_xcalloc(1, sizeof(*t));
	*t = (struct gf_comm_team){
		.channel = channel, .first = first, .stride = stride, .size = size};
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

static void free_teams(struct gf_mpi *m)
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
		return gf_error_set(err, -ENOTSUP, "stage mpi: want at most %d elements, got %zu",
				    INT_MAX, n);
	for (i = 0; i < size; i++) {
		t->counts[i] = (int)(n / size + (i < n % size));
		t->places[i] = (int)place;
		place += (size_t)t->counts[i];
	}
	return 0;
}

static int mpi_iteam(struct gf_comm *c, struct gf_comm_team *t, bool gathers, void *data, size_t n,
		     const struct gf_element *element, struct gf_comm_request **request,
		     struct gf_error *err)
{
	struct gf_comm_request *r;
	MPI_Datatype type;
	MPI_Op op;
	int rc = gf_mpi_number(gf_mpi_of(c), element, &type, &op, err);

	rc = rc ?: cut(t, n, err);
	if (rc)
		return rc;
	r = gf_mpi_take(c, 1);
	r->peer = -1;
	if (gathers)
		MPI_TRY(MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, t->counts,
			t->places, type, t->comm, &r->pieces[0]);
	else
		MPI_TRY(MPI_Ireduce_scatter, MPI_IN_PLACE, data, t->counts, type, op, t->comm,
			&r->pieces[0]);
	*request = r;
out:
	if (rc)
		gf_mpi_cancel(c, r);
	return rc;
}

/* --- the end ------------------------------------------------------------ */

static int note_library(struct dl_phdr_info *library, size_t size, void *names)
{
	(void)size;
	gf_text_addf(names, "%s\n", library->dlpi_name);
	return 0;
}

/* Open MPI 4.1 unloads its components while a thread of its own may still run in one of them, which
 * ended a job by SIGSEGV when all its work was done. Every library now stays until the process
 * ends. */
static void keep_libraries(void)
{
	GF_RELEASED(gf_text_release) struct gf_text names = {0};
	char *rest, *name;
	void *library;

	dl_iterate_phdr(note_library, &names);
	for (rest = names.data; (name = strsep(&rest, "\n"));) {
		library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
		if (library)
			dlclose(library);
	}
}

static void mpi_abort(struct gf_comm *c, int status)
{
	MPI_Abort(gf_mpi_of(c)->world, status);
}

static void mpi_close(struct gf_comm *c)
{
	GF_FREED struct gf_mpi *m = gf_mpi_of(c);
	struct gf_comm_request *r;

	free_teams(m);
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
}

/* A message under way may yet come, and a rank may yet fetch one. */
static void buffer_free(struct gf_comm *c, void *data)
{
	if (!c->broken)
		gf_pages_free(data);
}

static void fill_ops(struct gf_comm_ops *ops)
{
	*ops = gf_mpi_messages;
	ops->name = "mpi";
	ops->iallreduce = mpi_iallreduce;
	ops->tell = gf_mpi_tell;
	ops->team = mpi_team;
	ops->iteam = mpi_iteam;
	ops->abort = mpi_abort;
	ops->buffer_alloc = gf_pages_buffer_alloc;
	ops->buffer_free = buffer_free;
	ops->close = mpi_close;
}

/* --- the beginning ------------------------------------------------------ */

/* Divides the bits of MPI's tags: matches, of which there are as many as steps between two ranks,
 * get a little more than half. */
static int divide_tags(struct gf_mpi *m, struct gf_error *err)
{
	struct gf_comm *c = &m->comm;
	int rc = 0, found = 0, bits;
	int *upper = NULL;

	MPI_TRY(MPI_Comm_get_attr, m->world, MPI_TAG_UB, &upper, &found);
	if (!found || *upper < 32767)
		return gf_error_set(err, -ENOTSUP, "want MPI_TAG_UB >= 32767, got %d",
				    found ? *upper : -1);
	for (bits = 15; bits < 31 && *upper >> bits; bits++)
		;
	if ((unsigned)*upper + 1 < 1u << bits)
		bits--;
	m->tag_bits.match = (bits * 5 + 8) / 9;
	m->tag_bits.channel = bits - m->tag_bits.match;
	c->matches = (size_t)1 << m->tag_bits.match;
out:
	return rc;
}

/* "Open MPI 4.1.4", cut at the room: the first words of MPI's own, without the "v" of the
 * version. */
static void name_library(char *to, size_t room)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", *v;
	int length = 0;

	MPI_Get_library_version(text, &length);
	text[strcspn(text, ",\n")] = '\0';
	v = strstr(text, " v");
	if (v)
		memmove(v + 1, v + 2, strlen(v + 2) + 1);
	text[strcspn(text, "\t:")] = '\0';
	text[room - 1] = '\0';
	strcpy(to, text);
}

/* MPI is there already. It will do if several threads may call it at once, since the code that
 * began it may call it beside this library. An MPI that this library has begun need not allow that:
 * a second communicator is refused, and so is one after the end. */
static int share(struct gf_error *err)
{
	struct gf_comm *c = NULL;
	int rc = 0, ended, provided;

	MPI_TRY(MPI_Finalized, &ended);
	if (ended)
		return gf_error_set(err, -EBUSY, "MPI has ended in this process, and begins once");
	MPI_TRY(MPI_Query_thread, &provided);
	if (provided < MPI_THREAD_MULTIPLE)
		rc = gf_error_set(
			err, -EBUSY,
			"MPI is already initialised: want MPI_THREAD_MULTIPLE then, got level %d",
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
	if (provided < MPI_THREAD_SERIALIZED) {
		MPI_Finalize();
		rc = gf_error_set(err, -ENOTSUP,
				  "want MPI_THREAD_SERIALIZED, this MPI offers only level %d",
				  provided);
	}
out:
	return rc;
}

int gf_comm_mpi_open(struct gf_comm **comm, struct gf_error *err)
{
	struct gf_mpi *m;
	struct gf_comm *c = NULL;
	MPI_Comm host;
	bool own = false;
	int rc = start(&own, err);

	if (rc)
		return rc;
	m = gf_xcalloc(1, sizeof(*m));
	c = &m->comm;
	fill_ops(&m->ops);
	c->ops = &m->ops;
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
	MPI_TRY(MPI_Recv_init, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, m->world, &m->nothing);
	MPI_TRY(MPI_Comm_split_type, m->world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_TRY(MPI_Comm_rank, host, &c->local_rank);
	MPI_TRY(MPI_Comm_size, host, &c->local_ranks);
	MPI_TRY(MPI_Allreduce, &c->rank, &c->host, 1, MPI_INT, MPI_MIN, host);
	MPI_TRY(MPI_Comm_free, &host);
	name_library(c->library, sizeof(c->library));
	rc = gf_mpi_numbers_make(m, err);
	if (rc)
		goto out;
	/* Waiting is done here (transport/backoff.h). On Linux a thread that yields beside compute
	 * pays with a whole time slice. */
	if (own)
		m->yields = gf_mpi_set_yields(false);
	rc = divide_tags(m, err);
out:
	/* Once a call of MPI has failed, c is broken, and MPI is not asked to free what it has
	 * made. */
	if (rc)
		mpi_close(c);
	else
		*comm = c;
	return rc;
}

void gf_comm_mpi_piece_bytes(struct gf_comm *c, size_t piece_bytes)
{
	if (c->ops->close == mpi_close)
		gf_mpi_of(c)->piece_bytes = piece_bytes;
}

const struct gf_transport gf_transport_mpi = {
	.name = "mpi",
	.description = "between all ranks, by the MPI of this build",
	.place = 10,
	.launched = gf_comm_mpi_open,
};
