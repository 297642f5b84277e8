/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_AUGMENT_H
#define GF_DATA_AUGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/dataset.h"

/*
 * Images of the training part, changed a little each time: mirrored left to
 * right in one of two cases, and moved by up to `pad` pixels either way, what
 * comes in being 0 (padding and a random crop; He et al. 2016 take 4 for
 * CIFAR). What happens to a sample depends on the seed, the epoch and the
 * sample alone: not on who computes it, nor on a run having been resumed.
 */
struct gf_augment {
	bool flip;
	size_t pad;
};

/* "none", or some of "flip" and "crop:N", separated by commas. */
int gf_augment_parse(const char *text, struct gf_augment *a,
		     struct gf_error *err);

/* Whether the data are images that can be changed so. */
int gf_augment_check(const struct gf_augment *a, const struct gf_dataset *d,
		     struct gf_error *err);

/* One sample of the training part, in place; room for one more behind. */
void gf_augment_sample(const struct gf_augment *a, const struct gf_dataset *d,
		       uint64_t seed, size_t epoch, size_t index, float *values,
		       float *room);

#endif
