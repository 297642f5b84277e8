/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_ORDER_H
#define GF_DATA_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The samples that a rank trains on are a pure function of (seed, epoch, step,
 * rank): a checkpoint need not store them. In each step P ranks with batch B
 * see the samples that one rank with batch P*B sees.
 *
 * SHUFFLED. Each epoch is one permutation of all samples, the same on every
 * rank. Step s takes the next ranks*batch samples of it, rank r the r-th
 * `batch` of those. The tail that fills no whole step is dropped; another tail
 * every epoch.
 *
 * CONSECUTIVE, for text: the samples are cut into ranks*batch rows of equal
 * length, and step s takes the s-th sample of each row. So a place in the batch
 * reads on where it stopped in the step before, in every epoch the same.
 * Samples after the last row are dropped.
 */
struct gf_order {
	size_t *permutation; /* consecutive: one slice */
	size_t count;
	size_t epoch;
	uint64_t seed;
	bool consecutive;
};

void gf_order_init(struct gf_order *o, size_t count, uint64_t seed,
		   bool consecutive);
void gf_order_release(struct gf_order *o);

/* Whole steps in an epoch; 0 if there are fewer samples than ranks*batch. */
size_t gf_order_steps(const struct gf_order *o, int ranks, size_t batch);

/* The `batch` samples of one rank in one step (0-based in its epoch);
 * borrowed, valid until the next call. */
const size_t *gf_order_slice(struct gf_order *o, size_t epoch, size_t step,
			     int ranks, int rank, size_t batch);

/* Rank's share [*first, *first + *count) of samples in the given order, for
 * evaluation: contiguous, nearly equal, all samples covered. */
void gf_order_share(size_t samples, int ranks, int rank, size_t *first,
		    size_t *count);

#endif
