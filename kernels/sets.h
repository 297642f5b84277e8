/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_SETS_H
#define GF_KERNELS_SETS_H

#include "gf_kernels.h"

/*
 * The parts of table.c: each file of kernels/ref and kernels/x86 puts the functions of its family
 * into a table; those of x86 replace ref's. A family need not be in every set.
 */
void gf_kernels_fill_once_ref(struct gf_kernels *k);
void gf_kernels_fill_once_avx2(struct gf_kernels *k);
void gf_kernels_fill_once_avx512(struct gf_kernels *k);

void gf_kernels_fill_reduce_ref(struct gf_kernels *k);

void gf_kernels_fill_half_ref(struct gf_kernels *k);
void gf_kernels_fill_half_avx2(struct gf_kernels *k);

void gf_kernels_fill_minifloat_ref(struct gf_kernels *k);
void gf_kernels_fill_minifloat_avx2(struct gf_kernels *k);
void gf_kernels_fill_minifloat_avx512(struct gf_kernels *k);

void gf_kernels_fill_topk_ref(struct gf_kernels *k);
void gf_kernels_fill_topk_avx2(struct gf_kernels *k);
void gf_kernels_fill_topk_avx512(struct gf_kernels *k);

/* A set's functions of a codec, by their names. */
#define GF_CODEC_FNS(name) ((struct gf_codec_fns){name##_encode, name##_decode, name##_decode_add})

/* Merging and scattering wait for memory, whatever the instructions. */
void gf_kernels_fill_sparse_ref(struct gf_kernels *k);
void gf_kernels_fill_indices_ref(struct gf_kernels *k);

#endif
