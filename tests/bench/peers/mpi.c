/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce by default, and by each algorithm that Open MPI's "tuned" component can be forced
 * to. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "base/heap.h"

static const char *const names[] = {
	"mpi-default", "mpi-linear",  "mpi-nonoverlap", "mpi-recdbl",
	"mpi-ring",    "mpi-segring", "mpi-raben",
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static MPI_Comm comms[NAMES];

/* The component reads its parameter when a communicator is made. */
static bool force(int number)
{
	int index, count, provided;
	MPI_T_cvar_handle handle;

	if (MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided) ||
	    MPI_T_cvar_get_index("coll_tuned_allreduce_algorithm", &index) ||
	    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count))
		return false;
	return !MPI_T_cvar_write(handle, &number);
}

/* By -m, if it is said: "ring,raben". */
static bool is_wanted(const struct arena *a, const char *name)
{
	char *list, *rest, *word;
	bool found = !a->o.forced;

	rest = list = gf_xstrdup(a->o.forced ? a->o.forced : "");
	while ((word = strsep(&rest, ",")))
		found |= strcmp(word, name + strlen("mpi-")) == 0;
	free(list);
	return found;
}

static void enter(struct arena *a)
{
	int i;

	for (i = 0; i < NAMES; i++) {
		if (i > 0 && (!is_wanted(a, names[i]) || !force(i)))
			continue;
		must(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]), "MPI");
		enlist(a, &mpi_side, i > 0 ? PEER : DEFAULT, names[i])->number = i;
	}
	force(0);
}

static void run(struct arena *a, struct contestant *c)
{
	MPI_Allreduce(MPI_IN_PLACE, c->data, (int)a->count, MPI_FLOAT, MPI_SUM, comms[c->number]);
}

const struct side mpi_side = {.enter = enter, .run = run};
