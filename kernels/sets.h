/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_SETS_H
#define GF_KERNELS_SETS_H

#include "gf_kernels.h"

/*
 * What table.c is made of: each file of kernels/ref and kernels/x86 puts the
 * functions of its family into a table; those of x86 replace ref's. A family
 * need not be in every set.
 */
void gf_kernels_fill_vector_ref(struct gf_kernels *k);
void gf_kernels_fill_vector_avx2(struct gf_kernels *k);
void gf_kernels_fill_vector_avx512(struct gf_kernels *k);

void gf_kernels_fill_sgd_ref(struct gf_kernels *k);
void gf_kernels_fill_sgd_avx2(struct gf_kernels *k);
void gf_kernels_fill_sgd_avx512(struct gf_kernels *k);

#endif
