/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_LOADER_H
#define GF_DATA_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "data/augment.h"
#include "data/dataset.h"

/*
 * A rank's training batches, in order. While one is computed with, a thread
 * fetches the next one; it sleeps when that is done, so that the processor
 * which is left to communication stays free most of the time. The samples of a
 * batch depend on its number alone: any batch may be asked for; the next one is
 * merely there sooner.
 *
 * A step has `accumulate` batches (micro-batches), numbered from 0; steps
 * count from 1 over the whole run.
 */
struct gf_loader_config {
	const struct gf_dataset *data; /* borrowed; outlives the loader */
	struct gf_augment augment;
	size_t batch, accumulate;
	int ranks, rank;
	uint64_t seed;
};

struct gf_batch {
	float *values;
	int32_t *labels;
	uint64_t first_sample; /* the first one's number in the whole run */
};

struct gf_loader;

/* Needs a whole step in an epoch. */
struct gf_loader *gf_loader_new(const struct gf_loader_config *config);
void gf_loader_free(struct gf_loader *l);

/* Valid until the next call. */
const struct gf_batch *gf_loader_take(struct gf_loader *l, size_t step,
				      size_t part);

#endif
