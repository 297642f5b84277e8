/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_AUGMENT_H
#define GF_DATA_AUGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/dataset.h"

/*
 * Augmentation changes the images of the training part a little each time. About half of them are
 * mirrored left to right, and each is moved by up to `pad` pixels either way, the pixels that come
 * in being 0 (padding and a random crop; He et al. 2016 take 4 for CIFAR). Of pictures that are
 * cropped, each shows a window of at least the share `area` (data/data_parts.h). The change depends on
 * the seed, the epoch and the sample alone: not on the rank that computes it, nor on whether a run
 * was resumed.
 */
struct gf_augment {
	bool flip;
	size_t pad;
	double area; /* 0: the middle */
};

/* "none", or some of "flip", "crop:N" and "resized-crop[:AREA]", separated by commas. */
int gf_augment_parse(const char *text, struct gf_augment *a, struct gf_error *err);

/* Whether the data are images that can be changed so. */
int gf_augment_check(const struct gf_augment *a, const struct gf_dataset *d, struct gf_error *err);

/* A sample of the training part in an epoch; `room` for the values of one. */
struct gf_augmented {
	uint64_t seed;
	size_t epoch, index;
	float *room;
};
int gf_augment_sample(const struct gf_augment *a, const struct gf_dataset *d,
		      const struct gf_augmented *which, float *values, int32_t *labels,
		      struct gf_error *err);

#endif
