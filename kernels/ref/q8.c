/* SPDX-License-Identifier: BSD-3-Clause */
#include "code_q8.h"

void gf_kernels_fill_q8_ref(struct gf_kernels *k)
{
	fill_q8(k);
}
