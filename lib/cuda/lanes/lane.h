/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cuda/lanes: NCCL lanes, and the programs that schedules become on them. */
#ifndef GF_LANES_LANE_H
#define GF_LANES_LANE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "cuda/lanes/program.h"
#include "cuda/lanes/nccl.h"
#include "cuda/gpu.h"

/*
 * A lane of messages between GPUs: a stream, the communicators that its programs use, and the
 * memory in which they land. Messages of one lane go one after the other.
 *
 * All ranks open their lanes, prepare the same programs in the same order, and enqueue them in the
 * same order. One thread at a time.
 */
struct gf_lane_team {
	int stride, size;
	struct gf_nccl_comm *comm;
};

struct gf_lane {
	struct gf_gpu *gpu; /* borrowed */
	const struct gf_nccl_ops *nccl;
	double timeout_s; /* for a communicator to be ready; <= 0: no limit */
	/* Called while waiting; what it returns, if not 0, ends the wait. */
	int (*on_wait)(void *ctx, struct gf_error *err); /* (optional) */
	void *on_wait_ctx;
	/* Programs become graphs, but for those of sets. Then all ranks run each program on places
	 * that come and go in the same order: NCCL wants an operation captured by all or none. */
	bool captures;

	int rank;
	struct gf_gpu_stream *stream;
	struct gf_nccl_comm *all;
	struct gf_lane_team *teams; /* made by splitting `all` */
	size_t nteams, teams_capacity;
	size_t scratch_bytes, wire_bytes; /* the most that a program wants */
	size_t scratch_room, wire_room;   /* what is reserved, likewise */
	char *scratch, *wire;
	struct gf_lane_graph *graphs; /* of programs that have run */
	size_t ngraphs, graphs_capacity, next_graph;
};

/* On all ranks, with the id that one of them has made. The fields down to on_wait_ctx are the
 * caller's. blocks: see cuda/lanes/nccl.h. */
int gf_lane_open(struct gf_lane *l, const unsigned char id[GF_NCCL_ID_BYTES], int ranks, int rank,
		 struct gf_nccl_blocks blocks, struct gf_error *err);
/* When all ranks have opened it: waits until they have found each other. If a rank could not open
 * its lane, the others would wait for ever: agree first. */
int gf_lane_meet(struct gf_lane *l, struct gf_error *err);
/* Makes the communicators that a program wants and there are not yet; on all ranks. The program
 * lives until it is forgotten, or the lane is closed. */
int gf_lane_prepare(struct gf_lane *l, const struct gf_lane_program *p, struct gf_error *err);
/* After the last of the programs: reserves their memory. More programs may be prepared later, and
 * memory for them reserved, while nothing is under way. Programs are captured anew then, on all
 * ranks. */
int gf_lane_reserve(struct gf_lane *l, struct gf_error *err);
/* On all ranks: the program may go. */
void gf_lane_forget(struct gf_lane *l, const struct gf_lane_program *p);
/* Enqueues it on data, of the program's elements; allocates nothing. */
int gf_lane_run(struct gf_lane *l, const struct gf_lane_program *p, void *data,
		struct gf_error *err);
/* Has something failed on the way? 0 or a negative errno. */
int gf_lane_check(struct gf_lane *l, struct gf_error *err);
/* Gives up the work under way on a device, of all its lanes at once; only close is left. Zeros are
 * allowed, here and there. */
void gf_lanes_abort(struct gf_lane *lanes, size_t n);
/* Zeroes. */
void gf_lane_close(struct gf_lane *l);

#endif
