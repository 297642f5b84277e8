/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_LOADER_H
#define GF_DATA_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/augment.h"
#include "data/dataset.h"

/*
 * The samples that a rank trains on are a pure function of (seed, epoch, step, rank): a checkpoint
 * need not store them. In each step P ranks with batch B see the samples that one rank with batch
 * P*B sees.
 *
 * SHUFFLED. Each epoch is one permutation of all samples, the same on every rank. Step s takes the
 * next ranks*batch samples of it, rank r the r-th `batch` of those. The tail that fills no whole
 * step is dropped; another tail every epoch.
 *
 * CONSECUTIVE, for text: the samples are cut into ranks*batch rows of equal length, and step s
 * takes the s-th sample of each row. So a place in the batch reads on where it stopped in the step
 * before, in every epoch the same. Samples after the last row are dropped.
 */
struct gf_order {
	size_t *permutation; /* consecutive: one slice */
	size_t count;
	size_t epoch;
	uint64_t seed;
	bool consecutive;
};

void gf_order_init(struct gf_order *o, size_t count, uint64_t seed, bool consecutive);
void gf_order_release(struct gf_order *o);

/* Whole steps in an epoch; 0 if there are fewer samples than ranks*batch. */
size_t gf_order_steps(const struct gf_order *o, int ranks, size_t batch);

/* The `batch` samples of one rank in one step (0-based in its epoch);
 * borrowed, valid until the next call. */
const size_t *gf_order_slice(struct gf_order *o, size_t epoch, size_t step, int ranks, int rank,
			     size_t batch);

/* Rank's share [*first, *first + *count) of samples in the given order, for evaluation: contiguous,
 * nearly equal, all samples covered. */
void gf_order_share(size_t samples, int ranks, int rank, size_t *first, size_t *count);

/*
 * A rank's batches, in order: of training, and of its share of a test. While one is computed with,
 * threads fetch the next one, each some of its samples; they sleep when that is done, so that the
 * processor which is left to communication stays free most of the time. The samples of a batch
 * depend on its number alone: any batch may be asked for; the next one is merely there sooner. A
 * batch with a sample that fails is refused when it is taken, with the error of the first such
 * sample, whichever thread met it.
 *
 * A step has `accumulate` batches (micro-batches), numbered from 0; steps count from 1 over the
 * whole run.
 */
#define GF_LOADER_BATCHES 2 /* the caller's and the next one */

struct gf_batch {
	float *values;
	int32_t *labels;
	uint64_t first_sample; /* the first one's number in the whole run */
};

struct gf_loader_config {
	const struct gf_dataset *data; /* borrowed; outlives the loader */
	struct gf_augment augment;
	size_t batch, accumulate;
	size_t test_samples; /* of the test part, evenly spread; 0: all */
	int ranks, rank;
	uint64_t seed;
	size_t threads; /* 0: one */
	/* Where the batches' values and labels lie; NULL: in memory of the loader's own. */
	const struct gf_batch *room; /* GF_LOADER_BATCHES; copied */
};

struct gf_loader;

/* Needs a whole step in an epoch. */
struct gf_loader *gf_loader_new(const struct gf_loader_config *config);
void gf_loader_free(struct gf_loader *l);

/* Samples of a test of at most so many; 0: of all. */
size_t gf_loader_tested(const struct gf_dataset *data, size_t most);

/* Is that batch there, so that taking it does not wait? */
bool gf_loader_ready(struct gf_loader *l, size_t step, size_t part);
/* The batch is valid until the next call of either. */
int gf_loader_take(struct gf_loader *l, size_t step, size_t part, const struct gf_batch **batch,
		   struct gf_error *err);
/* Batch `number` (from 0) of this rank's share of the test part; in *count its samples, 0 after the
 * last. */
int gf_loader_take_test(struct gf_loader *l, size_t number, const struct gf_batch **batch,
			size_t *count, struct gf_error *err);

#endif
