/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHODS_H
#define GF_TRAIN_METHODS_H

#include "train/method.h"

/* The methods of registry.c, one file each. */
extern const struct gf_method_ops gf_method_dense;

#endif
