/* SPDX-License-Identifier: BSD-3-Clause */
#include "vector.h"

void gf_kernels_fill_vector_avx2(struct gf_kernels *k)
{
	fill_vector(k);
}
