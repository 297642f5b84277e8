/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI's blocking calls: MPI_Allreduce, told how to go, and its halves as they are. Open MPI's
 * coll_tuned reads its forced algorithm and segment size when a communicator is made, so each told
 * all-reduce has a duplicate of its own, made while MPI's control variables (MPI_T) hold its
 * values. MPI_Iallreduce is another component's. A component of a higher priority, such as han
 * between hosts since Open MPI 5, would carry out MPI_Allreduce instead, so such a duplicate puts
 * coll_tuned first.
 */
#include "transport/mpi_state.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/heap.h"

static const char algorithm_name[] = "coll_tuned_allreduce_algorithm";
static const char segment_name[] = "coll_tuned_allreduce_algorithm_segmentsize";
static const char priority_name[] = "coll_tuned_priority";

/* A communicator's wish for components before all others (mca/coll/base/coll_base_comm_select.c of
 * Open MPI 4.1 to 6.1). */
static const char wish_name[] = "ompi_comm_coll_preference";

/* coll_tuned looks at both if this is true, which is settled before MPI begins. By itself it
 * changes nothing. */
void gf_comm_mpi_listen(void)
{
	setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
}

struct told {
	struct gf_comm_told told;
	struct gf_mpi *mpi;
	MPI_Comm comm;
	bool (*set_yields)(bool yields);
};

/* Reads a variable: an int, or text of up to PATH_MAX; then writes *with, unless it is NULL. */
static int access_variable(const char *name, void *value, const int *with)
{
	MPI_T_cvar_handle handle;
	int index, count, rc = MPI_T_cvar_get_index(name, &index);

	if (rc == MPI_SUCCESS)
		rc = MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = MPI_T_cvar_read(handle, value);
	if (rc == MPI_SUCCESS && with)
		rc = MPI_T_cvar_write(handle, with);
	MPI_T_cvar_handle_free(&handle);
	return rc;
}

static int swap(const char *name, int *value)
{
	const int with = *value;

	return access_variable(name, value, &with);
}

/* Does that component, of a higher priority than coll_tuned's, carry out MPI_Allreduce of all
 * ranks? The first five pass it on, or serve other communicators; han serves several hosts. */
static bool overrules(const struct gf_comm *c, const char *component)
{
	static const char *const others[] = {"self", "inter", "sync", "cuda", "accelerator"};
	char switch_name[64];
	int on = 1;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strcmp(component, others[i]) == 0)
			return false;
	if (strcmp(component, "han") == 0 && c->local_ranks == c->ranks)
		return false;
	snprintf(switch_name, sizeof(switch_name), "coll_%s_enable", component);
	access_variable(switch_name, &on, NULL);
	return on;
}

/* Of those the one of the highest priority, in c->library: " with han (35) before tuned (30)". */
static void note_overruling(struct gf_comm *c)
{
	const size_t length = strlen(c->library);
	char name[64], component[32], about[1];
	int tuned, most, priority, n = 0, i, end, room, none, others[3];
	MPI_Datatype type;
	MPI_T_enum words;

	if (access_variable(priority_name, &tuned, NULL) != MPI_SUCCESS)
		return;
	most = tuned;
	MPI_T_cvar_get_num(&n);
	for (i = 0; i < n; i++) {
		room = sizeof(name);
		none = sizeof(about);
		end = 0;
		if (MPI_T_cvar_get_info(i, name, &room, &others[0], &type, &words, about, &none,
					&others[1], &others[2]) != MPI_SUCCESS ||
		    sscanf(name, "coll_%31[a-z0-9]_priority%n", component, &end) != 1 || !end ||
		    name[end] || access_variable(name, &priority, NULL) != MPI_SUCCESS ||
		    priority <= most || !overrules(c, component))
			continue;
		most = priority;
		snprintf(c->library + length, sizeof(c->library) - length,
			 " with %s (%d) before tuned (%d)", component, most, tuned);
	}
}

/* As a job does: MPI yields or spins as it was begun. */
static int run(struct gf_comm_told *told, bool scatters, bool gathers, void *data,
	       size_t count_elems, const struct gf_element *element, struct gf_error *err)
{
	struct told *t = (struct told *)told;
	struct gf_comm *c = &t->mpi->comm;
	MPI_Datatype type;
	MPI_Op op;
	const size_t part = count_elems / (size_t)c->ranks, part_bytes = part * element->size_bytes;
	int rc;

	if (count_elems > INT_MAX)
		return gf_error_set(err, -ENOTSUP, "MPI takes at most %d elements at once, got %zu",
				    INT_MAX, count_elems);
	if (scatters != gathers && count_elems % (size_t)c->ranks)
		return gf_error_set(err, -ENOTSUP,
				    "want equal parts for %d ranks, got %zu elements", c->ranks,
				    count_elems);
	rc = gf_mpi_number(t->mpi, element, &type, &op, err);
	if (rc)
		return rc;
	if (t->set_yields)
		t->set_yields(t->mpi->yields);
	if (scatters && gathers)
		MPI_TRY(MPI_Allreduce, MPI_IN_PLACE, data, (int)count_elems, type, op, t->comm);
	else if (gathers)
		MPI_TRY(MPI_Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, (int)part, type,
			t->comm);
	else
		MPI_TRY(MPI_Reduce_scatter_block, MPI_IN_PLACE, data, (int)part, type, op, t->comm);
	if (!gathers)
		memmove((char *)data + (size_t)c->rank * part_bytes, data, part_bytes);
out:
	if (t->set_yields)
		t->set_yields(false);
	return rc;
}

static void free_told(struct gf_comm_told *told)
{
	GF_FREED struct told *t = (struct told *)told;

	if (!t->mpi->comm.broken)
		MPI_Comm_free(&t->comm);
}

/* What keeps coll_tuned from doing as it is told; NULL: nothing. */
static const char *find_obstacle(const struct gf_comm *c)
{
	char rules[PATH_MAX] = "";
	int priority = -1, listens = 0;

	access_variable(priority_name, &priority, NULL);
	access_variable("coll_tuned_use_dynamic_rules", &listens, NULL);
	access_variable("coll_tuned_dynamic_rules_filename", rules, NULL);
	if (priority < 0)
		return "coll_tuned is left out of it (--mca coll, or a coll_tuned_priority below "
		       "0)";
	if (!listens)
		return "coll_tuned_use_dynamic_rules is 0";
	/* coll_tuned_decision_dynamic.c; since 5.0 they come second */
	if (*rules && strncmp(c->library, "Open MPI 4", 10) == 0)
		return "the rules of coll_tuned_dynamic_rules_filename come first";
	return NULL;
}

/* The variables have the values of every rank alike, so all fail alike. */
static int tell(const struct gf_comm *c, int *algorithm, int *segment_bytes, struct gf_error *err)
{
	const char *obstacle = find_obstacle(c);

	if (obstacle)
		return gf_error_set(err, -ENOTSUP, "%s cannot be told an algorithm here: %s",
				    c->library, obstacle);
	if (swap(algorithm_name, algorithm) == MPI_SUCCESS) {
		if (swap(segment_name, segment_bytes) == MPI_SUCCESS)
			return 0;
		swap(algorithm_name, algorithm);
	}
	return gf_error_set(err, -ENOTSUP, "%s cannot be told that algorithm of MPI_Allreduce",
			    c->library);
}

/* No algorithm: the variables stay as they are, and so do the components. */
static int duplicate(struct gf_comm *c, int algorithm, int segment_bytes, MPI_Comm *comm,
		     struct gf_error *err)
{
	struct gf_mpi *m = gf_mpi_of(c);
	const bool tells = algorithm != 0;
	MPI_Info wish = MPI_INFO_NULL;
	int rc = 0, level;

	if (!m->tools) {
		MPI_TRY(MPI_T_init_thread, MPI_THREAD_SERIALIZED, &level);
		m->tools = true;
		note_overruling(c);
	}
	if (tells)
		rc = tell(c, &algorithm, &segment_bytes, err);
	if (rc)
		return rc;
	if (tells) {
		MPI_TRY(MPI_Info_create, &wish);
		MPI_TRY(MPI_Info_set, wish, wish_name, "tuned");
	}
	MPI_TRY(MPI_Comm_dup_with_info, m->world, wish, comm);
out:
	if (wish != MPI_INFO_NULL)
		MPI_Info_free(&wish);
	if (tells) {
		swap(segment_name, &segment_bytes);
		swap(algorithm_name, &algorithm);
	}
	return rc;
}

int gf_mpi_tell(struct gf_comm *c, int algorithm, size_t segment_bytes, struct gf_comm_told **told,
		struct gf_error *err)
{
	struct told *t = gf_xcalloc(1, sizeof(*t));
	int rc;

	t->told = (struct gf_comm_told){.run = run, .free = free_told};
	t->mpi = gf_mpi_of(c);
	t->set_yields = gf_mpi_yielder();
	if (segment_bytes > INT_MAX)
		rc = gf_error_set(err, -ENOTSUP, "want segments of at most %d bytes, got %zu",
				  INT_MAX, segment_bytes);
	else
		rc = duplicate(c, algorithm, (int)segment_bytes, &t->comm, err);
	if (rc)
		free(t);
	else
		*told = &t->told;
	return rc;
}
