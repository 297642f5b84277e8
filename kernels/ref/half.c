/* SPDX-License-Identifier: BSD-3-Clause */
#include "code_half.h"
#include "half.h"

typedef uint16_t narrow_fn(float x);
typedef float widen_fn(uint16_t h);

GF_INLINE void encode(uint16_t *to, const float *from, size_t n,
		      narrow_fn *narrow)
{
	for (size_t i = 0; i < n; i++)
		to[i] = narrow(from[i]);
}

GF_INLINE void decode(float *to, const uint16_t *from, size_t n,
		      widen_fn *widen, int add)
{
	for (size_t i = 0; i < n; i++)
		to[i] = add ? to[i] + widen(from[i]) : widen(from[i]);
}

GF_CODE_HALF(f16, f16_of, f16_to)
GF_CODE_HALF(bf16, bf16_of, bf16_to)
GF_CODE_HALF(trunc16, trunc16_of, bf16_to)

void gf_kernels_fill_half_ref(struct gf_kernels *k)
{
	k->codecs[GF_CODEC_F16] = GF_CODEC_FNS(f16);
	k->codecs[GF_CODEC_BF16] = GF_CODEC_FNS(bf16);
	k->codecs[GF_CODEC_TRUNC16] = GF_CODEC_FNS(trunc16);
}
