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
	uint16_t *to;
	const float *from;

	struct quad {
		float4 x;
	};
	size_t phase() const
	{
		return same_phase(::phase(to, 2), ::phase(from, 4));
	}
	__device__ void load(size_t i, quad &q) const
	{
		q.x = load4(from + i);
	}
	__device__ void store(size_t i, const quad &q) const
	{
		store4(to + i, make_ushort4(Format::of(q.x.x), Format::of(q.x.y), Format::of(q.x.z),
					    Format::of(q.x.w)));
	}
	__device__ void one(size_t i) const
	{
		to[i] = Format::of(from[i]);
	}
};

template <class Format> struct decode {
	float *to;
	const uint16_t *from;

	struct quad {
		ushort4 x;
	};
	size_t phase() const
	{
		return same_phase(::phase(to, 4), ::phase(from, 2));
	}
	__device__ void load(size_t i, quad &q) const
	{
		q.x = load4(from + i);
	}
	__device__ void store(size_t i, const quad &q) const
	{
		store4(to + i, make_float4(Format::to(q.x.x), Format::to(q.x.y), Format::to(q.x.z),
					   Format::to(q.x.w)));
	}
	__device__ void one(size_t i) const
	{
		to[i] = Format::to(from[i]);
	}
};

template <class Format> struct decode_add {
	float *y;
	const uint16_t *x;

	struct quad {
		float4 y;
		ushort4 x;
	};
	size_t phase() const
	{
		return same_phase(::phase(y, 4), ::phase(x, 2));
	}
	__device__ void load(size_t i, quad &q) const
	{
		q.y = load4(y + i);
		q.x = load4(x + i);
	}
	__device__ void store(size_t i, const quad &q) const
	{
		store4(y + i, make_float4(q.y.x + Format::to(q.x.x), q.y.y + Format::to(q.x.y),
					  q.y.z + Format::to(q.x.z), q.y.w + Format::to(q.x.w)));
	}
	__device__ void one(size_t i) const
	{
		y[i] += Format::to(x[i]);
	}
};

} // namespace

#define CODE(name, format, what, to_type, from_type)                                               \
	void gf_cuda_##name(struct gf_gpu_stream *s, void *to, const void *from, size_t n, size_t) \
	{                                                                                          \
		each(s,                                                                            \
		     what<format>{static_cast<to_type *>(to),                                      \
				  static_cast<const from_type *>(from)},                           \
		     n);                                                                           \
	}

CODE(f16_encode, f16, encode, uint16_t, float)
CODE(f16_decode, f16, decode, float, uint16_t)
CODE(f16_decode_add, f16, decode_add, float, uint16_t)
CODE(bf16_encode, bf16, encode, uint16_t, float)
CODE(bf16_decode, bf16, decode, float, uint16_t)
CODE(bf16_decode_add, bf16, decode_add, float, uint16_t)
CODE(trunc16_encode, trunc16, encode, uint16_t, float)
