/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_BENCH_NETWORK_H
#define GF_BENCH_NETWORK_H

#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "bench/exchange.h"
#include "comm/comm.h"
#include "doc/profile.h"

/*
 * The network half of a profile: startup and per-byte cost of the all-reduce,
 * per algorithm, by least squares over sizes in powers of two, and how much
 * messages that travel together slow each other.
 *
 * A point is a short chain of equal messages through the engine, divided by
 * their number: what one message adds to a step, as the planner counts it.
 */
struct gf_bench_network {
	struct gf_comm *comm;
	const char *const *algorithms; /* NULL-terminated; NULL: all that can */
	size_t min_bytes, max_bytes;
	int lanes; /* contention is measured for 2..lanes at once */
	struct gf_bench_budget budget; /* per point, over all rounds */
	double timeout_s;
	/* (optional) how far it is, for a progress bar */
	void (*progress)(void *ctx, double fraction, const char *algorithm);
	void *progress_ctx;
};

/* -EINVAL unless the sizes are at least 8 and no algorithm is unknown; asks
 * nothing of comm. */
int gf_bench_network_check(const struct gf_bench_network *config,
			   struct gf_error *err);

/* Collective; all ranks get the same. remarks: one line for each fit that is
 * unphysical or poor, each algorithm that was left out and why. -EINVAL as
 * gf_bench_network_check. */
int gf_bench_network(const struct gf_bench_network *config,
		     struct gf_network **out, struct gf_text *remarks,
		     struct gf_error *err);

/* Startup, per-byte cost and quality from the points in cost->fit; a remark if
 * they are unphysical or poor. -EINVAL as gf_fit_linear. */
int gf_bench_fit(struct gf_allreduce_cost *cost, struct gf_text *remarks,
		 struct gf_error *err);

/*
 * Points are measured in rounds over all of them, not one after the other, so
 * that what disturbs the machine for a while does not fall on one size alone.
 */
#define GF_BENCH_ROUNDS 3
struct gf_bench_budget gf_bench_round(const struct gf_bench_budget *whole);

/* Sizes from min to at least max bytes in powers of two, the last being max
 * itself, whole f32 elements; the caller frees. */
size_t *gf_bench_sizes(size_t min_bytes, size_t max_bytes, size_t *count);

#endif
