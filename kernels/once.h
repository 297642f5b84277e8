/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_ONCE_H
#define GF_KERNELS_ONCE_H

#include "cell.h"
#include "code_q8.h"
#include "softmax.h"
#include "vector.h"

/* The kernels that are written once, for all sets alike. */
static inline void fill_once(struct gf_kernels *k)
{
	fill_vector(k);
	fill_q8(k);
	fill_cell(k);
	fill_softmax(k);
}

#endif
