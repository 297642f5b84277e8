/* SPDX-License-Identifier: BSD-3-Clause */
#include "half_blocks.h"
#include "once.h"

void gf_kernels_fill_once_avx512(struct gf_kernels *k)
{
	fill_once(k);
	fill_all_types(k);
}
