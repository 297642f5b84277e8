/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_LANE_NCCL_LOAD_H
#define GF_LANE_NCCL_LOAD_H

#include "lane/nccl.h"

/* What registry.c asks; private to lib/comm. */
int gf_nccl_open_library(const struct gf_nccl_ops **ops, struct gf_error *err);

#endif
