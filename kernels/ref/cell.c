/* SPDX-License-Identifier: BSD-3-Clause */
#include "cell.h"

void gf_kernels_fill_cell_ref(struct gf_kernels *k)
{
	fill_cell(k);
}
