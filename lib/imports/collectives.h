/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_IMPORTS_COLLECTIVES_H
#define GF_IMPORTS_COLLECTIVES_H

#include <stddef.h>
#include <stdint.h>

#include "imports/importers.h"

/* What a collective does; by this order the first that a name begins with. */
enum gf_collective_kind {
	GF_COLLECTIVE_ALL_REDUCE,
	GF_COLLECTIVE_OTHER_ALL_REDUCE, /* of several tensors, or sparse */
	GF_COLLECTIVE_ALL_GATHER,
	GF_COLLECTIVE_REDUCE_SCATTER,
	GF_COLLECTIVE_BROADCAST,
	GF_COLLECTIVE_ALL_TO_ALL,
	GF_COLLECTIVE_BARRIER,
	GF_COLLECTIVE_REDUCE,
	GF_COLLECTIVE_GATHER,
	GF_COLLECTIVE_SCATTER,
	GF_COLLECTIVE_OTHER,
	GF_COLLECTIVE_SETS /* of a plan's selection; no name begins so */
};

/* "all-reduce" */
const char *gf_collective_name(enum gf_collective_kind kind);
/* By the name that NCCL, gloo or PyTorch gives it: "AllReduce", "all_reduce", "_allgather_base". */
enum gf_collective_kind gf_collective_kind(const char *name);

/*
 * The all-reduces of a job, as its ranks have recorded them. A rank's time holds its wait for the
 * last rank to come, so an all-reduce takes the time of the rank that waited least. Ranks are
 * matched by communicator and sequence number: their clocks are not compared. Zero-initialise, and
 * set `imported`; the owner calls gf_collectives_release.
 */
struct gf_collective {
	uint64_t group;  /* gf_collectives_group */
	int ranks;       /* of the group */
	size_t sequence; /* within the group: the same on each of its ranks */
	size_t size_bytes;
	size_t place; /* in the file; 0: not known */
	double time_s;
	int choice; /* of `choices` */
};

/* How the library ran some of them ("RING LL"), and how many. */
struct gf_collectives_choice {
	char *name;
	size_t count;
};

struct gf_collectives {
	struct gf_collective *all;
	struct gf_collectives_choice *choices;
	size_t count, capacity, nchoices, choice_capacity;
	struct gf_imported *imported;
};

/* A communicator's number, from its name and number of ranks. */
uint64_t gf_collectives_group(const char *name, int ranks);
/* choice: NULL if the file does not say it. */
void gf_collectives_add(struct gf_collectives *c, const struct gf_collective *r,
			const char *choice);
/* Keeps the all-reduces of the largest group, or of one of so many ranks
 * (0: not told), that all ranks have recorded whose files are there, each once; returns how many
 * ranks that are. Remarks if some are absent. */
size_t gf_collectives_match(struct gf_collectives *c, const char *file, int ranks,
			    struct gf_text *remarks);
/* Adds a network with the median of each size as the algorithm
 * "library", since the library chose by size. -EINVAL: no two sizes. */
int gf_collectives_finish(const struct gf_collectives *c, const struct gf_import *in,
			  struct gf_profile *out, struct gf_text *remarks, struct gf_error *err);
void gf_collectives_release(struct gf_collectives *c);

#endif
