/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SELECT_SELECTIONS_H
#define GF_SELECT_SELECTIONS_H

#include "select/select.h"

/* The running halves that registry.c lists, one file each. */
extern const struct gf_select_ops gf_select_dense;
extern const struct gf_select_ops gf_select_csc, gf_select_csc_gpu;
extern const struct gf_select_ops gf_select_topk, gf_select_topk_gpu;
extern const struct gf_select_ops gf_select_dgc, gf_select_onebit;
extern const struct gf_select_ops gf_select_randomk, gf_select_powersgd;

#endif
