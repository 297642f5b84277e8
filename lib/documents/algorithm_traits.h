/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DOCUMENTS_ALGORITHM_TRAITS_H
#define GF_DOCUMENTS_ALGORITHM_TRAITS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/*
 * The traits of all-reduce algorithms: what documents are checked with. Callers never compare
 * names: they ask for the trait that they need. A name without an entry has no trait, and documents
 * with it are refused.
 */
enum gf_algorithm_trait {
	/* Takes factors: groups of ranks reduce one level after the other. */
	GF_ALGORITHM_LEVELS = 1 << 0,
	/* ... and only two of them: groups, and their masters. */
	GF_ALGORITHM_TWO_LEVELS = 1 << 1,
	/* ... each by an algorithm of its own (gf_stage_algorithm). */
	GF_ALGORITHM_STAGES = 1 << 2,
	/* Comes as a reduce-scatter and an all-gather. */
	GF_ALGORITHM_HALVES = 1 << 3,
	/* Decodes what it received before it adds: any codec will do. */
	GF_ALGORITHM_ENCODED = 1 << 4,
	/* Adds in one order, so that all ranks have the same bits. */
	GF_ALGORITHM_SAME_BITS = 1 << 5,
	/* Some ranks may serve and contribute nothing. */
	GF_ALGORITHM_SERVERS = 1 << 6,
	/* Used where it is named or was measured, else not a choice. */
	GF_ALGORITHM_ON_REQUEST = 1 << 7,
	/* An element is a sparse set, which is merged; no plan names it. */
	GF_ALGORITHM_SETS = 1 << 8,
	/* Cuts the message among the power of two below the ranks; the others fold in. */
	GF_ALGORITHM_FOLDS = 1 << 9,
	/* Adds every element in one order, wherever it stands in a message: ranks beyond the
	 * largest power of two p' to rank - p', then neighbours, then pairs of them, and so on. So
	 * sums do not depend on how gradients are cut into messages. */
	GF_ALGORITHM_ONE_ORDER = 1 << 10,
	/* ... and rounds every term before it adds, under a codec, too. */
	GF_ALGORITHM_ONE_ROUNDING = 1 << 11,
	/* A library's own, which may be told how to go (documents/library_tuning.h).
	 */
	GF_ALGORITHM_TOLD = 1 << 12,
	/* Its halves may leave copies: the inner stages, of some of its factors, scatter and
	 * gather, and the outer ones reduce the parts over the copies, before the gather. */
	GF_ALGORITHM_COPIES = 1 << 13,
};

/* What a schedule, or a line of a profile, is of. */
enum gf_coll_half {
	GF_COLL_WHOLE,          /* an all-reduce */
	GF_COLL_REDUCE_SCATTER, /* its first half: each rank owns a part */
	GF_COLL_ALL_GATHER,     /* its second half, from that state */
};
extern const char *const gf_coll_half_names[]; /* all_reduce reduce_scatter all_gather */

#define GF_ALGORITHM_OWN_STEPS (GF_ALGORITHM_ENCODED | GF_ALGORITHM_SAME_BITS)

/*
 * How the entry of an algorithm begins: the half that documents are checked with. An algorithm is
 * one file, lib/collectives/algorithms/NAME.c, which defines `gf_algorithm_NAME`
 * (collectives/algorithm.h: schedule and cost); one of sparse sets, which no plan names, defines
 * `gf_sparse_NAME`. The commands' lists, the verifier's cases and the measurements follow.
 */
#define GF_ALGORITHM_ENTRY                                                                         \
	const char *name;                                                                          \
	const char *description; /* one line, for --list */                                        \
	unsigned place;          /* in listings, ascending (lib/list.sh) */                        \
	unsigned traits

struct gf_algorithm_traits {
	GF_ALGORITHM_ENTRY;
};

/* The i-th that a plan may name, in the order of listings; NULL: there is none. */
const struct gf_algorithm_traits *gf_algorithm_at(size_t i);

/* Has the algorithm of that name all of these traits? */
bool gf_algorithm_has(const char *name, unsigned traits);
/* -EINVAL: no plan can name it. */
int gf_algorithm_check(const char *name, struct gf_error *err);
/* Are the sums of that algorithm, of messages in that codec, the same bits however gradients are
 * cut into messages? A codec with a scale per block has blocks that begin where messages do. */
bool gf_algorithm_reproduces(const char *name, const char *codec);

/*
 * What carries out a stage: the reduction of one factor of a decomposition (Cho et al. 2019,
 * BlueConnect, section 3: each level by the implementation that suits its fabric). A stage is
 * carried out as its name says, or refused.
 */
enum gf_stage_trait {
	/* Runs between processors. */
	GF_STAGE_BY_HOST = 1 << 0,
	/* Runs between GPUs. */
	GF_STAGE_BY_GPU = 1 << 1,
	/* Recursive halving: takes powers of two. */
	GF_STAGE_HALVES = 1 << 2,
	/* Every rank reads from all others: they share a host's memory. */
	GF_STAGE_ONE_HOST = 1 << 3,
	/* One call of a library, which moves f32 as they are. */
	GF_STAGE_CALL = 1 << 4,
	/* Algorithms with levels, but without GF_ALGORITHM_STAGES, run it. */
	GF_STAGE_RING = 1 << 5,
};

/* The stage algorithm of that name, as a constant; NULL: there is none, or name is NULL. */
const char *gf_stage_algorithm(const char *name);
/* Has the stage algorithm of that name all of these traits? */
bool gf_stage_has(const char *name, unsigned traits);
/* The stage algorithm where none is named: nccl between GPUs, else halving, which is never dearer
 * than a ring within one level, where it can. */
const char *gf_stage_unsaid(int factor, bool gpus);
/* Can it reduce `factor` ranks? */
bool gf_stage_takes(const char *name, int factor);
/* All names, in the order of listings; NULL-terminated. */
extern const char *const gf_stage_names[];
/* -EINVAL: there is no stage algorithm of that name, or it does not take that factor. */
int gf_stage_check(const char *name, int factor, struct gf_error *err);

#endif
