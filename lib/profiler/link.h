/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_LINK_H
#define GF_PROFILER_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "collectives/schedule.h"
#include "runtime/exec/exec.h"
#include "transport/comm.h"
#include "transport/watch.h"

/*
 * Transfers between ranks with no all-reduce around them, as schedules through the executor that
 * training uses. Whatever blocks is watched (transport/watch.h): a rank that does not come is
 * named.
 */
struct gf_measure_link {
	struct gf_comm *comm; /* borrowed; belongs to the link until closed */
	struct gf_exec *exec;
	struct gf_watch watch;
};

void gf_measure_link_open(struct gf_measure_link *l, struct gf_comm *comm, double timeout_s);
void gf_measure_link_close(struct gf_measure_link *l);

/*
 * A rank's part. A rank with both peers is a link of a ring: in each round it sends on the data
 * received in the one before. A rank with one peer only sends or only receives; the receiver then
 * tells the sender that all has come. A rank with no peer stands by, or, if it reduces, adds up on
 * its own.
 */
struct gf_measure_hop {
	int to, from; /* -1: nobody */
	size_t bytes; /* of a message, whole f32 */
	int rounds;
	int messages; /* of each round, all at once */
	bool reduce;  /* adds what is received to what is there */
};

/* As steps of a message of twice the bytes. */
void gf_measure_hop_schedule(const struct gf_measure_hop *hop, int rank, int ranks,
			     struct gf_schedule *s);

/* The mover of hops: a link, or NCCL between GPUs (profiler/network_parts.h).
 */
struct gf_measure_mover {
	struct gf_comm *comm;
	/* Collective: ranks meet, then all hops go, so many times; times_s[i] until this rank's
	 * last step. */
	int (*run)(void *ctx, const struct gf_measure_hop *hop, double *times_s, int repeats,
		   struct gf_error *err);
	/* (optional) Is what comes from there added as it comes, with no memory of its own in
	 * between? */
	bool (*adds)(void *ctx, int from);
	void *ctx;
};

struct gf_measure_mover gf_measure_link_mover(struct gf_measure_link *l);

#endif
