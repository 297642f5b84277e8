/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_RT_CSC_PARTS_H
#define GF_RT_CSC_PARTS_H

#include "rt/csc.h"

/* Between csc.c, which chooses and packs chunks, and csc_norms.c, which
 * measures them. */

/* Where a chunk begins in the pool, and its elements. */
size_t gf_csc_chunk_first(const struct gf_csc *c, size_t chunk);
size_t gf_csc_chunk_count(const struct gf_csc *c, size_t chunk);
/* The tensor with which it is ready. */
size_t gf_csc_chunk_last_tensor(const struct gf_csc *c, size_t chunk);

#endif
