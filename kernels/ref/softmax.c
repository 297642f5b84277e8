/* SPDX-License-Identifier: BSD-3-Clause */
#include "softmax.h"

void gf_kernels_fill_softmax_ref(struct gf_kernels *k)
{
	fill_softmax(k);
}
