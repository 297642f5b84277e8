/* SPDX-License-Identifier: BSD-3-Clause */
#include "cell.h"

void gf_kernels_fill_cell_avx2(struct gf_kernels *k)
{
	fill_cell(k);
}
