/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_LOADER_H
#define GF_DATA_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/augment.h"
#include "data/dataset.h"

/*
 * A rank's training batches, in order. While one is computed with, threads
 * fetch the next one, each some of its samples; they sleep when that is done,
 * so that the processor which is left to communication stays free most of the
 * time. The samples of a batch depend on its number alone: any batch may be
 * asked for; the next one is merely there sooner.
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

/* Is that batch there, so that taking it does not wait? */
bool gf_loader_ready(struct gf_loader *l, size_t step, size_t part);
/* Valid until the next call. */
const struct gf_batch *gf_loader_take(struct gf_loader *l, size_t step,
				      size_t part);

#endif
