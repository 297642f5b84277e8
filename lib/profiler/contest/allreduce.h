/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_ALLREDUCE_H
#define GF_CONTEST_ALLREDUCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "transport/comm.h"
#include "transport/message_element.h"
#include "profiler/contest/device.h"
#include "profiler/contest/exact.h"
#include "runtime/engine/burst.h"
#include "profiler/autotune/chooser.h"
#include "runtime/traces/rank_traces.h"

/*
 * One all-reduce, or a half of it, measured and verified: what gf-allreduce prints. Messages go
 * through the executor on the thread that calls (runtime/engine/burst.h); what a step of training
 * adds to that is profiler/network.h's to measure.
 *
 * A repeat begins with all ranks together; its time is combined over the ranks as `across` says. In
 * place, the inputs are put back before each repeat, outside its time; out of place, copying them
 * into the result is part of it. Contestants of one size take turns, repeat by repeat, so that all
 * of them meet the same machine.
 */
enum gf_contest_across { GF_ACROSS_MAX, GF_ACROSS_MEAN, GF_ACROSS_MIN, GF_ACROSS_RANK0 };
extern const char *const gf_contest_across_names[]; /* NULL-terminated */
/* nccl-tests' words for gf_dtype_names; ends with NULLs. */
extern const char *const gf_contest_dtype_words[][2];
/* ... its programs, and libraries' words, for gf_coll_half_names. */
extern const char *const gf_contest_collective_words[][2];

/*
 * A drawing of the last repeat in place of each contestant, step by step
 * (runtime/traces/rank_traces.h). Each size replaces the one before, so that the last size stays.
 * Nothing else is recorded. Only messages that the executor sends have steps; others are drawn as a
 * whole.
 */
struct gf_contest_timeline {
	struct gf_trace trace;
	struct gf_clock_offset offset;
};

/* Collective. Rank 0 writes the file. Before the first message the caller has compared the clocks.
 */
int gf_contest_timeline_write(const struct gf_contest_timeline *t, struct gf_comm *comm,
			      const char *path, struct gf_error *err);

enum gf_contest_placement { GF_OUT_OF_PLACE, GF_IN_PLACE };

struct gf_contest_allreduce_config {
	struct gf_comm *comm;
	enum gf_coll_half collective; /* a half is of even parts in the order of ranks */
	struct gf_element element;    /* a number, perhaps coded */
	int lanes;                    /* messages at once, each of the size */
	size_t segment_bytes;
	int warmup, repeats, checks;
	enum gf_contest_across across;
	size_t spoil; /* so many elements of rank 0's results are changed before they are checked */
	bool errors;  /* of sums are measured, too */
	double timeout_s; /* without progress; 0: none */
	/* Begins and ends a deadline for a call that cannot give up; or NULL.
	 */
	void (*hold)(void *ctx, bool begins);
	void *hold_ctx;
	const struct gf_plan *rule;           /* for auto; or NULL */
	struct gf_contest_timeline *timeline; /* or NULL */
	/* Schedules are proved before they run: on rank 0 a line for each (see gf_burst_prove).
	 * NULL: they are not. */
	struct gf_text *proofs;
	/* The memory that messages lie in; by NCCL, auto is `library` but for a rule. */
	struct gf_contest_device device;
};

/* -EINVAL unless it is what plans are about: f32, added up or averaged. */
int gf_contest_gradients(const struct gf_element *e, struct gf_error *err);

/* Elements of a type under an operation and, unless NULL, a codec. -EINVAL: what contradicts
 * itself, or no such codec. */
int gf_contest_element(enum gf_dtype dtype, enum gf_op op, const char *codec, struct gf_element *e,
		       struct gf_error *err);

/* Seconds; wrong over all ranks and checks. */
struct gf_contest_reading {
	double median_s, min_s, p25_s, p75_s, p90_s, p99_s, max_s;
	size_t wrong;
};

/* A contestant at a size. */
struct gf_contest_row {
	struct gf_way way;
	bool chosen;                  /* by auto */
	const char *selection;        /* of a plan; NULL: all gradients go */
	const struct gf_codec *codec; /* NULL: none; of several the worst */
	size_t messages;              /* that went together */
	/* Of one; of a plan's, of all. The elements of a half are one rank's part. */
	size_t size_bytes, count_elems;
	size_t wire_bytes;                    /* most that a rank sends; 0: unknown */
	struct gf_sum_error error;            /* in place; of config.errors */
	struct gf_contest_reading reading[2]; /* by placement */
};

struct gf_contest_allreduce;

/* Collective; messages of up to largest_elems. -ENOMEM where the hosts have not as much memory as
 * it takes. */
int gf_contest_allreduce_open(const struct gf_contest_allreduce_config *config,
			      size_t largest_elems, struct gf_contest_allreduce **b,
			      struct gf_error *err);
void gf_contest_allreduce_close(struct gf_contest_allreduce *b);

/* A way without an algorithm is auto. Measures all of them at a size; rows has room for nways. */
int gf_contest_allreduce_size(struct gf_contest_allreduce *b, const struct gf_way *ways,
			      size_t nways, size_t count_elems, struct gf_contest_row *rows,
			      struct gf_error *err);

/* Can that way be opened here? Collective. After -ETIMEDOUT, or with the communicator broken, only
 * closing is left. */
int gf_contest_allreduce_try(struct gf_contest_allreduce *b, const struct gf_way *way,
			     struct gf_error *err);

/* Each message of a plan by itself, with its algorithm, stages and codec; then all of them, ready
 * at once, by the plan's order and lanes: nmessages + 1 rows. The way of the last is the first
 * message's. */
int gf_contest_allreduce_plan(struct gf_contest_allreduce *b, const struct gf_plan *plan,
			      struct gf_contest_row *rows, struct gf_error *err);

/* The bandwidth of a transfer of size_bytes, in bytes per second: of the whole, and of the part
 * that a link carries, 2 (p-1)/p of it, and for a half (p-1)/p. */
double gf_contest_algbw(double size_bytes, double time_s);
double gf_contest_busbw(enum gf_coll_half collective, double size_bytes, double time_s, int ranks);

/* Does this host have wanted_bytes of memory left, for all its ranks together? The check comes
 * before memory is taken: the kernel hands out more than there is, and ends a process when the
 * memory is used. -ENOMEM names both. */
int gf_contest_memory_check(double wanted_bytes, struct gf_error *err);

#endif
