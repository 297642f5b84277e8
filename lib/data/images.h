/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_IMAGES_H
#define GF_DATA_IMAGES_H

#include "data/dataset.h"

/*
 * What the formats of byte images have in common: a dataset's priv points to
 * one of these (private to lib/data). images and labels are allocated with
 * malloc, unless `mapped_bytes` says that the images are a file in memory.
 */
struct gf_images {
	unsigned char *bytes[GF_PARTS];
	size_t mapped_bytes[GF_PARTS];
	int32_t *labels[GF_PARTS];
	float value[256]; /* of each byte */
};

/* value[byte] = byte / max; max 0: the largest byte of the training part. */
void gf_images_scale(const struct gf_dataset *d, unsigned max);

/* One of the d->count[part] labels of `file` by its number; want->classes 0:
 * any. Raises d->classes. */
int gf_images_label(struct gf_dataset *d, enum gf_part part, size_t index,
		    size_t label, const struct gf_dataset_want *want,
		    const char *file, struct gf_error *err);

/* Callbacks of a format. */
void gf_images_sample(const struct gf_dataset *d, enum gf_part part,
		      size_t index, float *values, int32_t *label);
void gf_images_close(struct gf_dataset *d);

#endif
