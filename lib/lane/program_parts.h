/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_LANE_PROGRAM_PARTS_H
#define GF_LANE_PROGRAM_PARTS_H

#include <stdint.h>

#include "lane/program.h"

/* A device program's inside; private to lib/lane: program.c chooses the way and
 * goes by stage, steps.c goes by step, wire.c has the memory for that. */
/* The elements before the first multiple of a grain. */
static inline size_t gf_device_program_head(size_t skew_elems)
{
	return skew_elems ? GF_DEVICE_GRAIN_ELEMS - skew_elems : 0;
}
/* gf_device_program_of for a message that is skewed. */
void gf_device_program_skewed(const struct gf_schedule *s,
			      const struct gf_codec *codec, size_t skew_elems,
			      struct gf_device_program *p);
struct gf_device_step *gf_device_program_add(struct gf_device_program *p,
					     enum gf_device_op op,
					     struct gf_range range);

/*
 * The use of the wire memory while a program is made: places for the data that
 * a round's transfers send and receive. A place is given back after the last
 * step that uses it. A place that holds the code of a range serves all sends of
 * that range until the range is written.
 */
struct gf_device_place {
	size_t at, end;
	struct gf_range range; /* its code lies there; count 0: none */
	uint32_t until;        /* the last step of the schedule to use it */
};

struct gf_device_wire {
	struct gf_device_place *places; /* by `at`, apart */
	size_t nplaces, capacity;
	size_t most_bytes; /* that were ever in use */
};

void gf_device_wire_release(struct gf_device_wire *w);
/* Finds room for it; `at` and `end` are filled in, the rest is given. Returns
 * `at`. */
size_t gf_device_wire_take(struct gf_device_wire *w,
			   struct gf_device_place place, size_t size_bytes);
/* The place whose code serves that step's range, or NULL. */
const struct gf_device_place *
gf_device_wire_find(const struct gf_device_wire *w, struct gf_range range,
		    uint32_t step);
/* All steps before this one are done: gives back their places. */
void gf_device_wire_pass(struct gf_device_wire *w, uint32_t step);

#endif
