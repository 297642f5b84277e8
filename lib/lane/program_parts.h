/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_LANE_PROGRAM_PARTS_H
#define GF_LANE_PROGRAM_PARTS_H

#include <stdint.h>

#include "lane/program.h"

/* A device program's inside; private to lib/lane: program.c chooses the way and
 * goes by stage, program_steps.c goes by step, wire.c has the memory for that.
 */
/* The elements before the first multiple of a grain. */
static inline size_t gf_lane_program_head(size_t skew_elems)
{
	return skew_elems ? GF_LANE_GRAIN_ELEMS - skew_elems : 0;
}
/* gf_lane_program_of for a message that is skewed. */
void gf_lane_program_skewed(const struct gf_schedule *s,
			    const struct gf_codec *codec, size_t skew_elems,
			    struct gf_lane_program *p);
struct gf_lane_step *gf_lane_program_add(struct gf_lane_program *p,
					 enum gf_lane_op op,
					 struct gf_range range);

/*
 * The use of the wire memory while a program is made: places for the data that
 * a round's transfers send and receive. A place is given back after the last
 * step that uses it. A place that holds the code of a range serves all sends of
 * that range until the range is written.
 */
struct gf_lane_place {
	size_t at, end;
	struct gf_range range; /* its code lies there; count 0: none */
	uint32_t until;        /* the last step of the schedule to use it */
};

struct gf_lane_wire {
	struct gf_lane_place *places; /* by `at`, apart */
	size_t nplaces, capacity;
	size_t most_bytes; /* that were ever in use */
};

void gf_lane_wire_release(struct gf_lane_wire *w);
/* Finds room for it; `at` and `end` are filled in, the rest is given. Returns
 * `at`. */
size_t gf_lane_wire_take(struct gf_lane_wire *w, struct gf_lane_place place,
			 size_t size_bytes);
/* The place whose code serves that step's range, or NULL. */
const struct gf_lane_place *gf_lane_wire_find(const struct gf_lane_wire *w,
					      struct gf_range range,
					      uint32_t step);
/* All steps before this one are done: gives back their places. */
void gf_lane_wire_pass(struct gf_lane_wire *w, uint32_t step);

#endif
