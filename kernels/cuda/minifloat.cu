/* SPDX-License-Identifier: BSD-3-Clause */
// Blocks of fp8 and fp4 (kernels/minifloat.h), a team of lanes to each block:
// a lane makes a byte of codes at a time.
#include "device.h"
#include "minifloat.h"
#include "sets.h"

namespace
{

struct fp8 {
	static const unsigned TEAM = WARP, PER_BYTE = 1;
	static __device__ minifloat format()
	{
		return e4m3();
	}
};

// A block of 32 has 16 bytes: two of them share a warp.
struct fp4 {
	static const unsigned TEAM = WARP / 2, PER_BYTE = 2;
	static __device__ minifloat format()
	{
		return e2m1();
	}
};

// What a team codes: a block's elements, and its bytes after those of the
// blocks before it.
struct place {
	size_t first, count, bytes;
	unsigned lane;
};

// count 0: no block is left for the team, whose lanes still meet the others.
template <class Codec>
__device__ place place_of(size_t n, size_t block_elems, size_t *byte)
{
	const size_t block =
		((size_t)blockIdx.x * THREADS + threadIdx.x) / Codec::TEAM;
	place p;

	p.first = block * block_elems;
	p.count = p.first >= n                ? 0
		  : n - p.first < block_elems ? n - p.first
					      : block_elems;
	p.bytes = minifloat_bytes(Codec::format(), p.count) - GF_SCALE_BYTES;
	p.lane = threadIdx.x % Codec::TEAM;
	*byte = block * minifloat_bytes(Codec::format(), block_elems);
	return p;
}

template <class Codec>
__global__ void __launch_bounds__(THREADS)
	encode(uint8_t *to, const float *from, size_t n, size_t block_elems)
{
	const minifloat f = Codec::format();
	size_t byte;
	const place p = place_of<Codec>(n, block_elems, &byte);
	const float *x = from + p.first;
	uint32_t largest = 0;
	uint8_t scale;
	float inverse;

	for (size_t i = p.lane; i < p.count; i += Codec::TEAM)
		if (magnitude(x[i]) > largest)
			largest = magnitude(x[i]);
	for (unsigned d = Codec::TEAM / 2; d > 0; d /= 2) {
		const uint32_t other = __shfl_xor_sync(ALL, largest, (int)d);

		largest = other > largest ? other : largest;
	}
	if (p.count == 0)
		return;
	scale = scale_of(f, largest);
	inverse = scale == GF_SCALE_NAN ? 0.0f : scale_inverse(scale);
	if (p.lane == 0)
		to[byte] = scale;
	for (size_t b = p.lane; b < p.bytes; b += Codec::TEAM) {
		uint32_t codes = 0;

		for (unsigned k = 0; k < Codec::PER_BYTE; k++) {
			const size_t i = b * Codec::PER_BYTE + k;

			if (i < p.count && scale != GF_SCALE_NAN)
				codes |= minifloat_of(f, x[i] * inverse)
					 << minifloat_shift(f, i);
		}
		to[byte + GF_SCALE_BYTES + b] = (uint8_t)codes;
	}
}

template <class Codec, bool Add>
__global__ void __launch_bounds__(THREADS)
	decode(float *to, const uint8_t *from, size_t n, size_t block_elems)
{
	const minifloat f = Codec::format();
	size_t byte;
	const place p = place_of<Codec>(n, block_elems, &byte);
	float *y = to + p.first;
	float scale;

	if (p.count == 0)
		return;
	scale = scale_to(from[byte]);
	for (size_t i = p.lane; i < p.count; i += Codec::TEAM) {
		const uint32_t codes =
			from[byte + GF_SCALE_BYTES + i / Codec::PER_BYTE];
		const float v = minifloat_to(f, codes >> minifloat_shift(f, i) &
							((1u << f.bits) - 1)) *
				scale;

		y[i] = Add ? y[i] + v : v;
	}
}

template <class Codec> size_t cuda_blocks(size_t n, size_t block_elems)
{
	return blocks_for(blocks_for(n, block_elems), THREADS / Codec::TEAM);
}

} // namespace

#define CODE(codec)                                                            \
	void gf_cuda_##codec##_encode(struct gf_gpu_stream *s, void *to,       \
				      const void *from, size_t n,              \
				      size_t block_elems)                      \
	{                                                                      \
		if (n)                                                         \
			LAUNCH(encode<codec>,                                  \
			       cuda_blocks<codec>(n, block_elems), s,          \
			       static_cast<uint8_t *>(to),                     \
			       static_cast<const float *>(from), n,            \
			       block_elems);                                   \
	}                                                                      \
	DECODE(codec, decode, false)                                           \
	DECODE(codec, decode_add, true)

#define DECODE(codec, name, add)                                               \
	void gf_cuda_##codec##_##name(struct gf_gpu_stream *s, void *to,       \
				      const void *from, size_t n,              \
				      size_t block_elems)                      \
	{                                                                      \
		if (n)                                                         \
			LAUNCH((decode<codec, add>),                           \
			       cuda_blocks<codec>(n, block_elems), s,          \
			       static_cast<float *>(to),                       \
			       static_cast<const uint8_t *>(from), n,          \
			       block_elems);                                   \
	}

CODE(fp8)
CODE(fp4)
