/* SPDX-License-Identifier: BSD-3-Clause */
// Sixteen-bit codecs. The hardware converts all numbers as kernels/half.h does;
// it treats NaN in a way of its own, so NaN goes by half.h.
#include "each.h"
#include "half.h"
#include "sets.h"

namespace
{

struct f16 {
	static __device__ uint16_t of(float x)
	{
		if (magnitude(x) > 0x7f800000)
			return f16_of(x);
		return __half_as_ushort(__float2half_rn(x));
	}
	static __device__ float to(uint16_t h)
	{
		if ((h & 0x7c00) == 0x7c00)
			return f16_to(h);
		return __half2float(__ushort_as_half(h));
	}
};

struct bf16 {
	static __device__ uint16_t of(float x)
	{
		return bf16_of(x);
	}
	static __device__ float to(uint16_t h)
	{
		return bf16_to(h);
	}
};

struct trunc16 {
	static __device__ uint16_t of(float x)
	{
		return trunc16_of(x);
	}
};

template <class Format> struct encode {
	__device__ uint16_t operator()(uint16_t, float x) const
	{
		return Format::of(x);
	}
};

template <class Format> struct decode {
	__device__ float operator()(float, uint16_t x) const
	{
		return Format::to(x);
	}
};

template <class Format> struct decode_add {
	__device__ float operator()(float y, uint16_t x) const
	{
		return y + Format::to(x);
	}
};

} // namespace

#define CODE(name, format, what, to_type, from_type, reads)                                        \
	void gf_cuda_##name(struct gf_gpu_stream *s, void *to, const void *from, size_t n, size_t) \
	{                                                                                          \
		each(s,                                                                            \
		     changed<to_type, from_type, reads, what<format>>{                             \
			     static_cast<to_type *>(to),                                           \
			     static_cast<const from_type *>(from),                                 \
			     {}},                                                                  \
		     n);                                                                           \
	}

CODE(f16_encode, f16, encode, uint16_t, float, false)
CODE(f16_decode, f16, decode, float, uint16_t, false)
CODE(f16_decode_add, f16, decode_add, float, uint16_t, true)
CODE(bf16_encode, bf16, encode, uint16_t, float, false)
CODE(bf16_decode, bf16, decode, float, uint16_t, false)
CODE(bf16_decode_add, bf16, decode_add, float, uint16_t, true)
CODE(trunc16_encode, trunc16, encode, uint16_t, float, false)
