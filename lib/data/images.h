/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_IMAGES_H
#define GF_DATA_IMAGES_H

#include "data/dataset.h"

/*
 * The common part of the formats of byte images: a dataset's priv points to one
 * of these (private to lib/data). Bytes and labels are allocated with malloc.
 */
struct gf_images {
	unsigned char *bytes[GF_PARTS];
	int32_t *labels[GF_PARTS];
	/* of each byte: a row of 256 per channel, or one for all of them */
	float (*value)[256];
	size_t nvalues;
};

/* A byte's value is byte / max, max being the largest of the training part. */
void gf_images_scale(const struct gf_dataset *d);

/* In place of that: (byte / max - mean[c]) / deviation[c] in channel c;
 * deviations are positive. */
void gf_images_normalise(const struct gf_dataset *d, unsigned max,
			 const double *mean, const double *deviation);

/* Mean and standard deviation of byte / max in each channel of the training
 * part, exact up to the rounding of the last steps; the deviation of a single
 * value is 1. */
void gf_images_statistics(const struct gf_dataset *d, unsigned max,
			  double *mean, double *deviation);

/* One of the d->count[part] labels of `file` by its number; want->classes 0:
 * any. Raises d->classes. */
int gf_images_label(struct gf_dataset *d, enum gf_part part, size_t index,
		    long long label, const struct gf_dataset_want *want,
		    const char *file, struct gf_error *err);

/* Callbacks of a format. */
int gf_images_sample(const struct gf_dataset *d, const struct gf_draw *draw,
		     float *values, int32_t *label, struct gf_error *err);
void gf_images_close(struct gf_dataset *d);

#endif
