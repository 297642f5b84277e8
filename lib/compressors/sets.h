/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMPRESSORS_SETS_H
#define GF_COMPRESSORS_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "collectives/codecs/codec.h"
#include "runtime/work.h"

/*
 * Top-k selection of one message's gradients with a residual, and the sums of sparse sets (gTop-k,
 * Shi et al. 2019).
 *
 * A SET is exactly k values at distinct ascending indices, which count from the message's first
 * element. It travels as collectives/codecs/codec.h has it; a finite value beyond the codec's
 * greatest goes as that. What the codec loses of a value returns to `data` of the rank that encodes
 * it; where sets are merged, only if the value's index is in the result or partial sums are
 * conserved: else the ranks that sent the value put all of it back.
 *
 * A message's gradients are in `data`. gf_sparse_select adds the residual to them and takes the k
 * largest magnitudes out (zeros stay in their place): from then on `data` is what the residual
 * becomes, if the step is not skipped.
 */
enum gf_putback { GF_PUTBACK_PAPER, GF_PUTBACK_CONSERVE, GF_PUTBACK_NAIVE };

struct gf_sparse_message {
	/* given */
	bool merges; /* gtopk: k of the sum, along a tree; else topk */
	enum gf_putback putback;
	int ranks;
	size_t count_elems;
	const struct gf_codec *codec; /* NULL: a plain one */
	float *data;                  /* this step's gradients; borrowed */
	const float *residual;        /* borrowed; NULL: none */
	void *sets;        /* ranks of them where all are gathered, else one; borrowed, of
			    * gf_sparse_sets_bytes(most k) */
	uint32_t *scratch; /* gf_sparse_scratch_elems; borrowed, messages on one thread may share
			    * it */
	/* own */
	size_t k;       /* of this step */
	uint32_t *sent; /* by this rank */
	float *sent_value;
	uint32_t *index; /* gtopk's result, ascending */
	float *value;
	size_t nresult;
	uint32_t *merged; /* sets in one */
	float *merged_value;
	/* with a codec: decoded sets, values before encoding, and what merges lost, nlost lists of
	 * k */
	void *plain;
	float *before;
	uint32_t *lost;
	float *lost_value;
	size_t nlost;
	bool damaged; /* what came was no set; nothing of it was used */
};

size_t gf_sparse_set_bytes(const struct gf_sparse_message *m, size_t k);
/* Are all ranks' sets gathered (topk, and gtopk's naive form)? Else they are merged along a
 * tree. */
bool gf_sparse_gathers(const struct gf_sparse_message *m);
/* How they go: algorithm, half and number of sets. */
void gf_sparse_goes(const struct gf_sparse_message *m, struct gf_work *w);
/* Bytes of `sets`, elements of `scratch`, where k is most_k at most. */
size_t gf_sparse_sets_bytes(const struct gf_sparse_message *m, size_t most_k);
size_t gf_sparse_scratch_elems(const struct gf_sparse_message *m, size_t most_k);

/* -EINVAL: more elements than an index can name. */
int gf_sparse_init(struct gf_sparse_message *m, size_t most_k, struct gf_error *err);
void gf_sparse_release(struct gf_sparse_message *m);

/* Puts this rank's set in its place among `sets`. */
void gf_sparse_select(struct gf_sparse_message *m, size_t k, int rank);
/* The place among `sets` of this rank's set. */
size_t gf_sparse_own_place(const struct gf_sparse_message *m, int rank);
/* gf_merge_fn on sets; ctx is the message. Under putback conserve, dropped values return to data,
 * and so to this rank's residual. */
void gf_sparse_merge(void *message, void *to, const void *from, size_t count);
/* All `sets` are there. Sets that cannot be decoded set `damaged`. gtopk: the result is the k
 * largest of their sum; what this rank sent in vain returns to data, unless that is conserved
 * already. */
void gf_sparse_conclude(struct gf_sparse_message *m);
/* The first element whose value is not finite in what all ranks have in common; count_elems:
 * none. */
size_t gf_sparse_bad(const struct gf_sparse_message *m);
/* How many sets are what all ranks have in common: the first ones in `sets`. */
size_t gf_sparse_common(const struct gf_sparse_message *m);
/* Adds the sum over ranks to sum, count_elems long. */
void gf_sparse_add(const struct gf_sparse_message *m, float *sum);

#endif
