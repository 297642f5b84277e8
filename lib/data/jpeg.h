/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_JPEG_H
#define GF_DATA_JPEG_H

#include "data/pixels.h"

/*
 * A JPEG file's window as a sample's values, by libjpeg-turbo (private to
 * lib/data). No more is decoded than the window's rows and blocks, at 1/8, 1/4
 * or 1/2 of the size where that leaves as many pixels as are wanted. Grey and
 * CMYK pictures become RGB, those with Adobe's mark from inverted inks. A file
 * that is damaged in what is decoded, or ends early, is -EINVAL, and so is one
 * of more than 2^27 pixels, or 100 scans: small files can be slow ones.
 */
typedef int gf_jpeg_reader(const char *path, const struct gf_draw *draw,
			   const struct gf_picture_want *want, float *values,
			   struct gf_error *err);
gf_jpeg_reader gf_jpeg_read;

/* That, or NULL in a build without libjpeg-turbo (registry.c). */
extern gf_jpeg_reader *const gf_data_jpeg_reader;

#endif
