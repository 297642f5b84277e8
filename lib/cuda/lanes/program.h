/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_LANES_PROGRAM_H
#define GF_LANES_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "collectives/algorithm.h"
#include "collectives/codecs/codec.h"
#include "collectives/parts.h"
#include "collectives/schedule.h"
#include "gf_gpu_kernels.h"

/*
 * A message as the work that one rank enqueues on a GPU's stream: kernels and NCCL's operations,
 * strictly one after the other. Only the transfers of a group go together, and the group ends when
 * all of them have. A program is made once and enqueued in every step; the host never waits in
 * between.
 *
 * There are two kinds of programs:
 *  - library: one all-reduce, or of a half one reduce-scatter or all-gather;
 *  - by step: any schedule. Steps gather in a group as long as none waits for another of the group.
 *    Receives that reduce or decode land beside the message, in the wire memory, and kernels take
 *    them up after the group. Encoded data that is sent on goes as it came. Data for many peers is
 *    encoded once. A call (collectives/schedule.h, CALLS) is a reduce-scatter
 * or an all-gather of NCCL's within a team. These want equal parts, so the
 *    elements that are left over go as small all-reduces besides.
 *
 * gf_lane_program_schedule turns one back into a schedule, whose steps wait for each other as the
 * stream makes them, for the verifier: it proves that no group waits for ever and that every sum is
 * complete.
 */
enum gf_lane_op {
	GF_LANE_ENCODE,      /* wire = range */
	GF_LANE_DECODE,      /* range = wire */
	GF_LANE_REDUCE_WIRE, /* range = range + wire */
	GF_LANE_COPY,        /* range = from */
	GF_LANE_REDUCE,      /* range = range + from */
	GF_LANE_GROUP,
	GF_LANE_GROUP_END,
	GF_LANE_SEND, /* range, or wire */
	GF_LANE_RECV,
	GF_LANE_ALL_REDUCE,     /* range, over all ranks */
	GF_LANE_REDUCE_SCATTER, /* range, in `team`; its part remains */
	GF_LANE_ALL_GATHER,     /* the way back */
};

struct gf_lane_step {
	enum gf_lane_op op;
	bool on_wire; /* SEND, RECV */
	int peer;
	size_t team;           /* into the program's teams */
	struct gf_range range; /* elements of the message or of scratch */
	struct gf_range from;  /* COPY, REDUCE */
	/* Bytes; a multiple of 256 after a codec, else as far past a multiple of a grain as the
	 * range. */
	size_t wire_at;
};

/* NCCL moves 16 bytes at a time if both sides begin at multiples of 16, and one otherwise; it is
 * fastest from cache lines. So parts that go as they lie begin at multiples of this many f32 in
 * memory. */
#define GF_LANE_GRAIN_ELEMS 32

/*
 * Elements that are sparse sets (collectives/algorithms/gtopk.c), each of the same size, and merged
 * where others are added. The size may change between two runs of a program, but not beyond what it
 * was made with.
 */
struct gf_lane_sets {
	size_t size_bytes;
	/* Enqueues: the set at `to` becomes the sum of both. */
	int (*merge)(void *ctx, struct gf_gpu_stream *s, void *to, const void *from,
		     struct gf_error *err);
	void *ctx;
};

struct gf_lane_program {
	int rank, ranks, contributors; /* as the schedule's */
	size_t count_elems, scratch_elems, wire_bytes;
	size_t skew_elems;               /* that the message lies past such a multiple */
	struct gf_range owned;           /* of a half */
	const struct gf_codec *codec;    /* NULL: as it is */
	const struct gf_lane_sets *sets; /* NULL: elements are f32 */
	struct gf_lane_step *steps;
	size_t nsteps, capacity;
	struct gf_group *teams; /* of its calls, as the schedule's */
	size_t nteams;
};

/* How an algorithm goes; args->skew_elems is the program's. -ENOTSUP: there is no way. codec: NULL
 * or "f32" is f32; another one goes by step, or not with `library`. */
int gf_lane_program_new(const struct gf_algorithm *a, const struct gf_coll_args *args, int rank,
			const struct gf_codec *codec, struct gf_lane_program *p,
			struct gf_error *err);
/* By step, whatever the algorithm. */
void gf_lane_program_of(const struct gf_schedule *s, const struct gf_codec *codec,
			struct gf_lane_program *p);
/* By step, with elements that are sets; borrowed for as long as p lives. */
void gf_lane_program_of_sets(const struct gf_schedule *s, const struct gf_lane_sets *sets,
			     struct gf_lane_program *p);
void gf_lane_program_release(struct gf_lane_program *p);

/* For the verifier; sets must have multiples of 256 bytes. With a codec, the schedule has steps of
 * its own that round values: it is not `lossy`. */
void gf_lane_program_schedule(const struct gf_lane_program *p, struct gf_schedule *s);

/* The ranks that this rank exchanges data with, as "ranks 0, 2 and 5 more"; the caller frees. */
char *gf_lane_program_peers(const struct gf_lane_program *p);

/* Bytes that this rank sends. Those of `library` are unknown and not counted. */
size_t gf_lane_program_sent(const struct gf_lane_program *p);

/* Bytes of elements in memory, and on the wire. */
static inline size_t gf_lane_program_bytes(const struct gf_lane_program *p, size_t count_elems)
{
	return count_elems * (p->sets ? p->sets->size_bytes : sizeof(float));
}
size_t gf_lane_program_wire_bytes(const struct gf_lane_program *p, size_t count_elems);

/* Inside: program.c chooses the way and goes by stage, program_steps.c goes by step. */

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
