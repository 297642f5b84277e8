/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduce.h"

#include "half.h"

#define HALF(op, name)                                                                             \
	static inline uint16_t op##_##name(uint16_t a, uint16_t b)                                 \
	{                                                                                          \
		return name##_of(op##_f32(name##_to(a), name##_to(b)));                            \
	}                                                                                          \
	GF_REDUCE(op, name, uint16_t)
#define HALVES(name)                                                                               \
	HALF(sum, name)                                                                            \
	HALF(prod, name)                                                                           \
	HALF(max, name)                                                                            \
	HALF(min, name)                                                                            \
	static void divide_##name(void *y, size_t n, int by)                                       \
	{                                                                                          \
		uint16_t *to = y;                                                                  \
                                                                                                   \
		for (size_t i = 0; i < n; i++)                                                     \
			to[i] = name##_of(name##_to(to[i]) / (float)by);                           \
	}

HALVES(f16)
HALVES(bf16)

void gf_kernels_fill_reduce_ref(struct gf_kernels *k)
{
	fill_whole_types(k);
	GF_REDUCES_FILL(k, GF_F16, f16);
	GF_REDUCES_FILL(k, GF_BF16, bf16);
}
