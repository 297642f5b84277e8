/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_LANE_LANE_PARTS_H
#define GF_LANE_LANE_PARTS_H

#include "lane/lane.h"

/* A lane's inside; private to lib/lane: lane.c enqueues programs, graphs.c
 * keeps them as graphs. */

/* A program on its data. */
struct gf_lane_graph {
	const struct gf_lane_program *program;
	void *data;
	struct gf_gpu_graph *graph; /* NULL: not captured, or not any more */
};

/* Operation by operation. */
int gf_lane_enqueue(struct gf_lane *l, const struct gf_lane_program *p,
		    void *data, struct gf_error *err);
/* Frees all graphs of a lane; they are captured anew when they are wanted. */
void gf_lane_drop(struct gf_lane *l);

#endif
