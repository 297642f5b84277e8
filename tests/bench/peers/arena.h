/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BENCH_ARENA_H
#define GF_BENCH_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/comm.h"
#include "transport/watch.h"

/* Types that the files of allreduce_peers share: contestants and their data. */
enum { CONTESTANTS_MOST = 48, REPEATS_MOST = 401, PLUGINS_MOST = 8 };

struct options {
	size_t low, high, factor;
	double seconds, link;
	const char *plugins[PLUGINS_MOST], *store, *algorithms, *forced;
	const char *transports;
	int nplugins;
	bool verbose;
};

/* DEFAULT is what the others are compared with; LIMIT does not wait. */
enum standing { DEFAULT, PEER, OURS, LIMIT };

struct arena;
struct contestant;

/* A library: what its contestants do. All of it is collective. */
struct side {
	void (*enter)(struct arena *a); /* calls enlist; once */
	/* Before and after the runs of one size; optional. */
	void (*start)(struct arena *a, struct contestant *c);
	/* One all-reduce of the contestant's data, in place. */
	void (*run)(struct arena *a, struct contestant *c);
	void (*end)(struct arena *a, struct contestant *c);
	void (*leave)(struct arena *a); /* once; optional */
};

struct contestant {
	const struct side *side;
	enum standing standing;
	char name[40];
	int number;  /* the side's own */
	void *state; /* likewise */
	int family;  /* ours: its transport's number */
	bool leads;  /* ours: it is the family's auto */
	float *data; /* the arena's, unless the side has its own */
	/* of the size under way */
	bool out;
	double heat_s;
	double times[REPEATS_MOST], processor_s;
	int n;
};

struct arena {
	struct options o;
	struct gf_comm *comm;
	struct gf_watch watch;
	struct contestant list[CONTESTANTS_MOST];
	int n;
	float *data;
	size_t count;
};

extern const struct side mpi_side, plugin_side, our_side, memory_side;

/* Ends the job where rc is not 0. */
void must(int rc, const char *what);
struct contestant *enlist(struct arena *a, const struct side *side, enum standing standing,
			  const char *name);
/* The values of each rank's message before a run. */
static inline float input_of(const struct arena *a)
{
	return (float)(a->comm->rank + 1);
}
/* race.c: all contestants on the size a->count. */
void race(struct arena *a);
/* report.c: the heading, and what came of a race. */
void print_heading(const struct arena *a);
void print_race(struct arena *a);

#endif
