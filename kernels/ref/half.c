/* SPDX-License-Identifier: BSD-3-Clause */
#include "code_half.h"

GF_CODE_HALF(f16, f16_of, f16_to)

void gf_kernels_fill_half_ref(struct gf_kernels *k)
{
	fill_half(k);
	k->codecs[GF_CODEC_F16] = GF_CODEC_FNS(f16);
}
