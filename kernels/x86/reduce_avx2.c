/* SPDX-License-Identifier: BSD-3-Clause */
#include "half_blocks.h"

void gf_kernels_fill_reduce_avx2(struct gf_kernels *k)
{
	fill_all_types(k);
}
