/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_NCCL_LOAD_H
#define GF_COMM_NCCL_LOAD_H

#include "comm/nccl.h"

/* What registry.c asks; private to lib/comm. */
int gf_nccl_open_library(const struct gf_nccl_ops **ops, struct gf_error *err);

#endif
