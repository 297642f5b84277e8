/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PROFILER_NETWORK_H
#define GF_PROFILER_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "profiler/contest/device.h"
#include "profiler/chain.h"
#include "transport/comm.h"
#include "documents/profile.h"
#include "documents/topology.h"

/*
 * The network half of a profile: startup and per-byte cost of the all-reduce, per algorithm, by
 * least squares over sizes, and how much messages that travel together slow each other; and the
 * same for a round on each level of the topology.
 *
 * A point of an algorithm is a short chain of equal messages through the engine, divided by their
 * number: what one message adds to a step, as the planner counts it.
 */
struct gf_measure_network {
	struct gf_comm *comm;
	const char *const *algorithms; /* NULL-terminated; NULL: all that can */
	/* NULL-terminated: of the halves by themselves, those named here are measured, too; NULL:
	 * none */
	const char *const *collectives;
	size_t min_bytes, max_bytes;
	/* Of a model; or 0. A message as long is measured by the algorithm that sends it fastest,
	 * besides what budget_s has time for. */
	size_t gradient_bytes;
	bool callers_memory; /* profiler/chain.h; not by NCCL, nor of halves */
	bool whole;          /* up to max_bytes, even if there is no time for it */
	int threads;         /* that compute, per rank */
	size_t lanes;        /* contention is measured for 2..lanes at once */
	double time_s;       /* per point, about */
	double budget_s;     /* for everything, about */
	double timeout_s;
	/* (optional) Everything goes by NCCL, if it has that. */
	const struct gf_contest_device *device;
	/* The levels that group the ranks, if their product is the ranks. Then levels are measured,
	 * and algorithms that work level by level get their factors from them. */
	const struct gf_level *levels;
	size_t nlevels;
	/* (optional) how far it is, for a progress bar */
	void (*progress)(void *ctx, double fraction, const char *what);
	void *progress_ctx;
};

/* -EINVAL unless there is room for 8 sizes and no algorithm or collective is unknown; asks nothing
 * of comm. */
int gf_measure_network_check(const struct gf_measure_network *config, struct gf_error *err);

/* Collective; all ranks get the same. remarks: one line for each fit that is unphysical or poor,
 * each algorithm that was left out and why, and for what there was no time for. -EINVAL as
 * gf_measure_network_check; -ENOTSUP: none of the algorithms runs on these ranks. */
int gf_measure_network(const struct gf_measure_network *config, struct gf_network **out,
		       struct gf_text *remarks, struct gf_error *err);

#endif
