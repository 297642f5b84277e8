/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_DATA_FORMATS_H
#define GF_DATA_FORMATS_H

#include "data/dataset.h"

/* The formats of registry.c, one file each. */
extern const struct gf_data_format gf_data_idx;
extern const struct gf_data_format gf_data_synthetic;

#endif
