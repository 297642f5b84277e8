/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_KERNELS_X86_HALF_BLOCKS_H
#define GF_KERNELS_X86_HALF_BLOCKS_H

#include "reduce.h"

/*
 * Half precision by way of f32, in blocks that stay in the first cache. The conversions are the
 * table's best: every set's give the same bits.
 */
#define GF_HALF_BLOCK 1024

#define GF_HALF_BLOCKS(op, name, NUMBER)                                                           \
	static void reduce_##op##_##name(void *y, const void *x, size_t n)                         \
	{                                                                                          \
		const struct gf_codec_fns *f = &gf_kernels()->codecs[NUMBER];                      \
		uint16_t *to = y;                                                                  \
		const uint16_t *from = x;                                                          \
		float a[GF_HALF_BLOCK], b[GF_HALF_BLOCK];                                          \
                                                                                                   \
		for (size_t count; n; n -= count) {                                                \
			count = n < GF_HALF_BLOCK ? n : GF_HALF_BLOCK;                             \
			f->decode(a, to, count, 0);                                                \
			f->decode(b, from, count, 0);                                              \
			reduce_##op##_f32(a, b, count);                                            \
			f->encode(to, a, count, 0);                                                \
			to += count;                                                               \
			from += count;                                                             \
		}                                                                                  \
	}
#define GF_HALVES_BLOCKS(name, NUMBER)                                                             \
	GF_HALF_BLOCKS(sum, name, NUMBER)                                                          \
	GF_HALF_BLOCKS(prod, name, NUMBER)                                                         \
	GF_HALF_BLOCKS(max, name, NUMBER)                                                          \
	GF_HALF_BLOCKS(min, name, NUMBER)                                                          \
	static void divide_##name(void *y, size_t n, int by)                                       \
	{                                                                                          \
		const struct gf_codec_fns *f = &gf_kernels()->codecs[NUMBER];                      \
		uint16_t *to = y;                                                                  \
		float a[GF_HALF_BLOCK];                                                            \
                                                                                                   \
		for (size_t count; n; n -= count, to += count) {                                   \
			count = n < GF_HALF_BLOCK ? n : GF_HALF_BLOCK;                             \
			f->decode(a, to, count, 0);                                                \
			divide_f32(a, count, by);                                                  \
			f->encode(to, a, count, 0);                                                \
		}                                                                                  \
	}

GF_HALVES_BLOCKS(f16, GF_CODEC_F16)
GF_HALVES_BLOCKS(bf16, GF_CODEC_BF16)

static inline void fill_all_types(struct gf_kernels *k)
{
	fill_whole_types(k);
	GF_REDUCES_FILL(k, GF_F16, f16);
	GF_REDUCES_FILL(k, GF_BF16, bf16);
}

#endif
