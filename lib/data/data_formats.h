/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_DATA_FORMATS_H
#define GF_DATA_DATA_FORMATS_H

#include "data/dataset.h"

/* The formats of registry.c. */
extern const struct gf_data_format gf_data_idx;       /* idx.c */
extern const struct gf_data_format gf_data_cifar10;   /* cifar.c */
extern const struct gf_data_format gf_data_cifar100;  /* cifar.c */
extern const struct gf_data_format gf_data_words;     /* text_data.c */
extern const struct gf_data_format gf_data_chars;     /* text_data.c */
extern const struct gf_data_format gf_data_jpeg;      /* jpeg_folder.c */
extern const struct gf_data_format gf_data_synthetic; /* synthetic_data.c */

#endif
