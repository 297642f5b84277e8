/* SPDX-License-Identifier: BSD-3-Clause */
#include "code_q8.h"

void gf_kernels_fill_q8_avx2(struct gf_kernels *k)
{
	fill_q8(k);
}
