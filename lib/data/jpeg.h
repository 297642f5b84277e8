/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_JPEG_H
#define GF_DATA_JPEG_H

#include <stddef.h>

#include "data/dataset.h"

/*
 * The window of a picture that a sample shows, and how its pixels become the sample's values
 * (private to lib/data).
 */
struct gf_crop {
	double left, top, width, height; /* in pixels */
};

/* AT RANDOM, torchvision's RandomResizedCrop (Szegedy et al. 2015): of a share of the area between
 * draw->area and 1, and of width / height between 3/4 and 4/3, evenly in its logarithm; where ten
 * tries do not fit, the largest window in the middle whose ratio lies there.
 * THE MIDDLE, as for tests of ImageNet: 224/256 of the largest window that has the ratio of `width`
 * to `height`. */
struct gf_crop gf_crop_draw(const struct gf_draw *draw, size_t picture_width, size_t picture_height,
			    size_t width, size_t height);

/* What a sample wants: byte b of channel c becomes gain[c] * b + offset[c]. */
struct gf_picture_want {
	size_t width, height;
	float gain[3], offset[3];
};

/*
 * A JPEG file's window as a sample's values, by libjpeg-turbo (private to lib/data). No more is
 * decoded than the window's rows and blocks, at 1/8, 1/4 or 1/2 of the size where that leaves as
 * many pixels as are wanted. Grey and CMYK pictures become RGB, those with Adobe's mark from
 * inverted inks. A file that is damaged in what is decoded, or ends early, is -EINVAL, and so is
 * one of more than 2^27 pixels, or 100 scans: small files can be slow ones.
 */
typedef int gf_jpeg_reader(const char *path, const struct gf_draw *draw,
			   const struct gf_picture_want *want, float *values, struct gf_error *err);
gf_jpeg_reader gf_jpeg_read;

/* That, or NULL in a build without libjpeg-turbo (registry.c). */
extern gf_jpeg_reader *const gf_data_jpeg_reader;

#endif
