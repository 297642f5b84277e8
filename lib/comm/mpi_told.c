/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Allreduce, told how to go. Open MPI's coll_tuned reads its forced
 * algorithm and segment size when a communicator is made, so each told
 * all-reduce has a duplicate of its own, made while MPI's control variables
 * (MPI_T) hold its values. MPI_Iallreduce is another component's.
 */
#include "comm/mpi_state.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

static const char algorithm_name[] = "coll_tuned_allreduce_algorithm";
static const char segment_name[] = "coll_tuned_allreduce_algorithm_segmentsize";

/* coll_tuned looks at both if this is true, which is settled before MPI
 * begins. By itself it changes nothing. */
void gf_comm_mpi_listen(void)
{
	setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
}

/* The first words of MPI's own, without the "v" of the version. */
void gf_mpi_library(char *to, size_t room)
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

struct told {
	struct gf_comm_told told;
	struct gf_mpi *mpi;
	MPI_Comm comm;
	bool (*set_yields)(bool yields);
};

/* Swaps *value with the variable's. */
static int swap(const char *name, int *value)
{
	MPI_T_cvar_handle handle;
	int index, count, was, rc = MPI_T_cvar_get_index(name, &index);

	if (rc == MPI_SUCCESS)
		rc = MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = MPI_T_cvar_read(handle, &was);
	if (rc == MPI_SUCCESS)
		rc = MPI_T_cvar_write(handle, value);
	MPI_T_cvar_handle_free(&handle);
	*value = was;
	return rc;
}

/* As a job does: MPI yields or spins as it was begun. */
static int allreduce(struct gf_comm_told *told, void *data, size_t count_elems,
		     const struct gf_element *element, struct gf_error *err)
{
	struct told *t = (struct told *)told;
	struct gf_comm *c = &t->mpi->comm;
	MPI_Datatype type;
	MPI_Op op;
	int rc;

	if (count_elems > INT_MAX)
		return gf_error_set(err, -ENOTSUP,
				    "MPI_Allreduce takes at most %d elements, "
				    "got %zu",
				    INT_MAX, count_elems);
	rc = gf_mpi_number(t->mpi, element, &type, &op, err);
	if (rc)
		return rc;
	if (t->set_yields)
		t->set_yields(t->mpi->yields);
	MPI_TRY(MPI_Allreduce, MPI_IN_PLACE, data, (int)count_elems, type, op,
		t->comm);
out:
	if (t->set_yields)
		t->set_yields(false);
	return rc;
}

static void free_told(struct gf_comm_told *told)
{
	struct told *t = (struct told *)told;

	if (!t->mpi->comm.broken)
		MPI_Comm_free(&t->comm);
	free(t);
}

/* The variables have the values of every rank alike, so all fail alike. No
 * algorithm: they stay as they are. */
static int duplicate(struct gf_comm *c, int algorithm, int segment_bytes,
		     MPI_Comm *comm, struct gf_error *err)
{
	const bool tell = algorithm != 0;
	int rc = 0, tells = MPI_SUCCESS, level;

	MPI_TRY(MPI_T_init_thread, MPI_THREAD_SERIALIZED, &level);
	if (tell) {
		tells = swap(algorithm_name, &algorithm);
		if (tells == MPI_SUCCESS)
			tells = swap(segment_name, &segment_bytes);
	}
	if (tells == MPI_SUCCESS)
		MPI_TRY(MPI_Comm_dup, gf_mpi_of(c)->world, comm);
	else
		rc = gf_error_set(err, -ENOTSUP,
				  "%s cannot be told that algorithm of "
				  "MPI_Allreduce",
				  c->library);
	if (tell && tells == MPI_SUCCESS) {
		swap(segment_name, &segment_bytes);
		swap(algorithm_name, &algorithm);
	}
	MPI_T_finalize();
out:
	return rc;
}

int gf_mpi_tell(struct gf_comm *c, int algorithm, size_t segment_bytes,
		struct gf_comm_told **told, struct gf_error *err)
{
	struct told *t = gf_xcalloc(1, sizeof(*t));
	int rc;

	t->told = (struct gf_comm_told){.allreduce = allreduce,
					.free = free_told};
	t->mpi = gf_mpi_of(c);
	t->set_yields = gf_mpi_yielder();
	if (segment_bytes > INT_MAX)
		rc = gf_error_set(err, -ENOTSUP,
				  "want segments of at most %d bytes, got %zu",
				  INT_MAX, segment_bytes);
	else
		rc = duplicate(c, algorithm, (int)segment_bytes, &t->comm, err);
	if (rc)
		free(t);
	else
		*told = &t->told;
	return rc;
}
