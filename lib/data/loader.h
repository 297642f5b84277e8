/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_LOADER_H
#define GF_DATA_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/augment.h"
#include "data/dataset.h"

/*
 * A rank's batches, in order: of training, and of its share of a test. While
 * one is computed with, threads fetch the next one, each some of its samples;
 * they sleep when that is done, so that the processor which is left to
 * communication stays free most of the time. The samples of a batch depend on
 * its number alone: any batch may be asked for; the next one is merely there
 * sooner. A batch with a sample that fails is refused when it is taken, with
 * the error of the first such sample, whichever thread met it.
 *
 * A step has `accumulate` batches (micro-batches), numbered from 0; steps
 * count from 1 over the whole run.
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
	/* Where the batches' values and labels lie; NULL: in memory of the
	 * loader's own. */
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
int gf_loader_take(struct gf_loader *l, size_t step, size_t part,
		   const struct gf_batch **batch, struct gf_error *err);
/* Batch `number` (from 0) of this rank's share of the test part; in *count its
 * samples, 0 after the last. */
int gf_loader_take_test(struct gf_loader *l, size_t number,
			const struct gf_batch **batch, size_t *count,
			struct gf_error *err);

#endif
