/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The all-reduce beside others', in one run. Under mpirun:
 *
 *	allreduce_peers [-b BYTES] [-e BYTES] [-f FACTOR] [-s SECONDS]
 *		[-l LINK_BYTES_PER_S] [-p PLUGIN.so]... [-d STORE] [-a LIST]
 *		[-m LIST] [-t TRANSPORTS] [-v]
 *
 * Contestants: ours (auto, and the algorithms of -a, or all; NAME:ring has rings in all but the
 * innermost stage, NAME@BYTES segments of so many bytes), MPI_Allreduce by default and by each
 * algorithm that Open MPI can be forced to (or those of -m: linear, nonoverlap, recdbl, ring,
 * segring, raben), and libraries that are loaded (plugins/). Ours go over each transport of -t
 * (mpi; mpi,ucx), which the names say.
 * Figures are medians (race.c); regret is how much slower auto was than the best of our own.
 *
 * The limit: with -l, 2(n-1)/n of the message over a link of that rate, n hosts, whose ranks share
 * it; else what the memory allows (memory.c).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "transport/mpi_state.h"

/* In the order in which they take turns; the first has the default. */
static const struct side *const sides[] = {&mpi_side, &plugin_side, &our_side, &memory_side, NULL};

void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "allreduce_peers: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

struct contestant *enlist(struct arena *a, const struct side *side, enum standing standing,
			  const char *name)
{
	struct contestant *c = &a->list[a->n];

	must(a->n++ == CONTESTANTS_MOST, "too many contestants");
	c->side = side;
	c->standing = standing;
	c->data = a->data;
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

static void parse(struct options *o, int argc, char **argv)
{
	int key;

	while ((key = getopt(argc, argv, "b:e:f:s:l:p:d:a:m:t:v")) != -1) {
		if (key == 'b')
			o->low = strtoul(optarg, NULL, 10);
		else if (key == 'e')
			o->high = strtoul(optarg, NULL, 10);
		else if (key == 'f')
			o->factor = strtoul(optarg, NULL, 10);
		else if (key == 's')
			o->seconds = strtod(optarg, NULL);
		else if (key == 'l')
			o->link = strtod(optarg, NULL);
		else if (key == 'p' && o->nplugins < PLUGINS_MOST)
			o->plugins[o->nplugins++] = optarg;
		else if (key == 'd')
			o->store = optarg;
		else if (key == 'a')
			o->algorithms = optarg;
		else if (key == 'm')
			o->forced = optarg;
		else if (key == 't')
			o->transports = optarg;
		else if (key == 'v')
			o->verbose = true;
		else
			exit(2);
	}
}

static void open_arena(struct arena *a)
{
	struct gf_error err = {""};
	const struct side *const *side;
	void *data;

	/* forced algorithms want it; without one the fixed rules hold still */
	setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 1);
	if (gf_comm_open(NULL, &a->comm, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(3);
	}
	/* as it does by itself; the library has turned it off for its own */
	gf_mpi_set_yields(a->comm->crowded);
	gf_watch_init(&a->watch, a->comm, 60);
	must(a->comm->ops->buffer_alloc(a->comm, a->o.high, &data, &err), err.text);
	a->data = data;
	for (side = sides; *side; side++)
		(*side)->enter(a);
}

static void close_arena(struct arena *a)
{
	const struct side *const *side;

	for (side = sides; *side; side++)
		if ((*side)->leave)
			(*side)->leave(a);
	gf_watch_release(&a->watch);
	a->comm->ops->buffer_free(a->comm, a->data);
	gf_comm_close(a->comm);
}

int main(int argc, char **argv)
{
	static struct arena a = {.o = {.low = 1024,
				       .high = 64 << 20,
				       .factor = 4,
				       .seconds = 2,
				       .algorithms = "ring,rhd,butterfly,"
						     "tree",
				       .transports = "mpi"}};
	size_t size;

	parse(&a.o, argc, argv);
	open_arena(&a);
	if (a.comm->rank == 0)
		print_heading(&a);
	for (size = a.o.low; size <= a.o.high; size *= a.o.factor) {
		a.count = size / sizeof(float);
		race(&a);
		if (a.comm->rank == 0)
			print_race(&a);
	}
	close_arena(&a);
	return 0;
}
