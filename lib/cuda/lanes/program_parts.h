/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_LANES_PROGRAM_PARTS_H
#define GF_LANES_PROGRAM_PARTS_H

#include <stdint.h>

#include "cuda/lanes/program.h"

/* A device program's inside; private to lib/cuda/lanes: program.c chooses the way and goes by
 * stage, program_steps.c goes by step. */
/* The elements before the first multiple of a grain. */
static inline size_t gf_lane_program_head(size_t skew_elems)
{
	return skew_elems ? GF_LANE_GRAIN_ELEMS - skew_elems : 0;
}
/* gf_lane_program_of for a message that is skewed. */
void gf_lane_program_skewed(const struct gf_schedule *s, const struct gf_codec *codec,
			    size_t skew_elems, struct gf_lane_program *p);
struct gf_lane_step *gf_lane_program_add(struct gf_lane_program *p, enum gf_lane_op op,
					 struct gf_range range);

#endif
