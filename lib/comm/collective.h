/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_COLLECTIVE_H
#define GF_COMM_COLLECTIVE_H

#include "base/error.h"
#include "coll/algorithm.h"
#include "comm/exec.h"

/*
 * A message that may be of another size each time: what an algorithm needs for
 * a size (schedule, slots, staging) is made when the size first comes, and kept
 * for the next time. Whoever knows the sizes beforehand prepares them, and then
 * nothing is allocated while steps run.
 *
 *	gf_collective_new(x, &config, &c, &err);
 *	gf_collective_start(c, data, count, &err);
 *	gf_exec_wait(x, gf_collective_run(c), timeout_s, &err);
 *
 * DeAR's two halves of a message are two collectives of one channel over one
 * buffer, config.args.half GF_COLL_REDUCE_SCATTER and GF_COLL_ALL_GATHER; the
 * second is started after the first has ended.
 */
struct gf_collective;

struct gf_collective_config {
	const struct gf_algorithm *algorithm;
	/* Set by each start or from the element: count_elems, elem_bytes,
	 * lossy. Factors and stage names are borrowed for as long as the
	 * collective lives. */
	struct gf_coll_args args;
	struct gf_element element; /* zero: f32 sums */
	uint32_t channel;          /* as in gf_exec_config */
	/* So many sizes are kept, the longest unused goes first; 0: 8. */
	size_t sizes;
};

/* Whether the algorithm, the element and the transport go together, the first
 * prepare or start tells. */
struct gf_collective *
gf_collective_new(struct gf_exec *x, const struct gf_collective_config *config);
/* NULL is allowed; what is under way is abandoned. */
void gf_collective_free(struct gf_collective *c);

/* What a message of so many elements needs; errors as gf_algorithm_schedule
 * and gf_exec_run_new. Not while a message is under way. */
int gf_collective_prepare(struct gf_collective *c, size_t count_elems,
			  struct gf_error *err);
/* Prepares if need be, and starts; at most one at a time. */
int gf_collective_start(struct gf_collective *c, void *data, size_t count_elems,
			struct gf_error *err);
/* The run of the last start, for gf_exec_done, gf_exec_wait and so on;
 * borrowed, good until the next start. NULL before the first. */
struct gf_exec_run *gf_collective_run(const struct gf_collective *c);

#endif
