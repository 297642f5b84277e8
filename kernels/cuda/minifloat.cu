/* SPDX-License-Identifier: BSD-3-Clause */
// Blocks of fp8 and fp4 (kernels/minifloat.h). A strip is so many blocks of the
// codec's own length that its codes fill whole groups of 16 bytes. A block of
// threads codes a strip by way of shared memory, and all its accesses to global
// memory have 16 bytes, several of them under way at a time. What remains, and
// blocks of other lengths and addresses, go to a team of lanes for each block,
// a lane making a byte of codes at a time.
#include "each.h"
#include "minifloat.h"
#include "sets.h"

namespace
{

struct fp8 {
	static const unsigned BLOCK = 128, TEAM = WARP, PER_BYTE = 1;
	static __device__ minifloat format()
	{
		return e4m3();
	}
};

// A block of 32 has 16 bytes: two of them share a warp.
struct fp4 {
	static const unsigned BLOCK = 32, TEAM = WARP / 2, PER_BYTE = 2;
	static __device__ minifloat format()
	{
		return e2m1();
	}
};

// --- strips ------------------------------------------------------------------

#define QUADS       4 // groups of four elements that a thread holds
#define STRIP_ELEMS (THREADS * 4 * QUADS)

template <class Codec> struct strip {
	static const unsigned PER_BLOCK = Codec::BLOCK / 4; // lanes
	static const unsigned CODES = 4 / Codec::PER_BYTE;  // bytes of a quad
	static const unsigned BLOCK_BYTES = GF_SCALE_BYTES + Codec::BLOCK / Codec::PER_BYTE;
	static const unsigned BYTES = STRIP_ELEMS / Codec::BLOCK * BLOCK_BYTES;
	static const unsigned WORDS = BYTES / sizeof(uint4);
	static_assert(BYTES % sizeof(uint4) == 0, "whole groups of 16 bytes");

	// Where the codes of the strip's quad q lie; q is the first of its
	// block where place is 0.
	static __device__ unsigned byte(unsigned q)
	{
		return q / PER_BLOCK * BLOCK_BYTES;
	}
	static __device__ unsigned place(unsigned q)
	{
		return q % PER_BLOCK;
	}
};

__device__ float4 read_quad(const float *p, bool aligned)
{
	return aligned ? load4(p) : make_float4(p[0], p[1], p[2], p[3]);
}

__device__ void write_quad(float *p, float4 v, bool aligned)
{
	if (aligned) {
		store4(p, v);
		return;
	}
	p[0] = v.x;
	p[1] = v.y;
	p[2] = v.z;
	p[3] = v.w;
}

__device__ uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

// The codes of four values, the first in the lowest bits.
template <class Codec> __device__ uint32_t codes_of(float4 v, float inverse)
{
	const minifloat f = Codec::format();

	return minifloat_of(f, v.x * inverse) | minifloat_of(f, v.y * inverse) << f.bits |
	       minifloat_of(f, v.z * inverse) << 2 * f.bits |
	       minifloat_of(f, v.w * inverse) << 3 * f.bits;
}

template <class Codec> __device__ void encode_strip(uint8_t *to, const float *from, bool aligned)
{
	typedef strip<Codec> S;
	__shared__ uint4 words[S::WORDS];
	uint8_t *bytes = reinterpret_cast<uint8_t *>(words);
	float4 v[QUADS];

#pragma unroll
	for (unsigned u = 0; u < QUADS; u++)
		v[u] = read_quad(from + 4 * (u * THREADS + threadIdx.x), aligned);
#pragma unroll
	for (unsigned u = 0; u < QUADS; u++) {
		const unsigned q = u * THREADS + threadIdx.x;
		uint8_t *b = bytes + S::byte(q);
		uint32_t largest = larger(larger(magnitude(v[u].x), magnitude(v[u].y)),
					  larger(magnitude(v[u].z), magnitude(v[u].w)));
		uint32_t codes;
		uint8_t scale;

		for (unsigned d = S::PER_BLOCK / 2; d > 0; d /= 2)
			largest = larger(largest, __shfl_xor_sync(ALL, largest, (int)d));
		scale = scale_of(Codec::format(), largest);
		codes = codes_of<Codec>(v[u], scale_inverse(scale));
		if (scale == GF_SCALE_NAN)
			codes = 0;
		if (S::place(q) == 0)
			b[0] = scale;
		b += GF_SCALE_BYTES + S::place(q) * S::CODES;
		for (unsigned k = 0; k < S::CODES; k++)
			b[k] = (uint8_t)(codes >> 8 * k);
	}
	__syncthreads();
	for (unsigned w = threadIdx.x; w < S::WORDS; w += THREADS)
		reinterpret_cast<uint4 *>(to)[w] = words[w];
}

// As minifloat_to. The f32 with the code's bits in the places of its own is too
// small by a power of two, also if it is denormal: multiplying is exact.
template <class Codec> __device__ float value_of(uint32_t code)
{
	const minifloat f = Codec::format();
	const uint32_t top = 1u << (f.bits - 1), a = code & (top - 1);
	const uint32_t sign = (code & top) << (32 - f.bits);

	if (a > f.largest)
		return float_of(sign | 0x7fc00000);
	return float_of(sign | a << (23 - f.fraction)) * float_of((254 - f.bias) << 23);
}

template <class Codec, bool Add>
__device__ void decode_strip(float *to, const uint8_t *from, bool aligned)
{
	typedef strip<Codec> S;
	__shared__ uint4 words[S::WORDS];
	const uint8_t *bytes = reinterpret_cast<const uint8_t *>(words);
	const uint32_t mask = (1u << Codec::format().bits) - 1;
	float4 y[QUADS];

#pragma unroll
	for (unsigned u = 0; u < QUADS; u++)
		y[u] = Add ? read_quad(to + 4 * (u * THREADS + threadIdx.x), aligned)
			   : make_float4(0, 0, 0, 0);
	for (unsigned w = threadIdx.x; w < S::WORDS; w += THREADS)
		words[w] = reinterpret_cast<const uint4 *>(from)[w];
	__syncthreads();
#pragma unroll
	for (unsigned u = 0; u < QUADS; u++) {
		const unsigned q = u * THREADS + threadIdx.x;
		const uint8_t *b = bytes + S::byte(q);
		const float scale = scale_to(b[0]);
		float v[4];

		b += GF_SCALE_BYTES + S::place(q) * S::CODES;
		for (unsigned j = 0; j < 4; j++)
			v[j] = value_of<Codec>(b[j / Codec::PER_BYTE] >>
						       minifloat_shift(Codec::format(), j) &
					       mask) *
			       scale;
		if (Add)
			y[u] = make_float4(y[u].x + v[0], y[u].y + v[1], y[u].z + v[2],
					   y[u].w + v[3]);
		else
			y[u] = make_float4(v[0], v[1], v[2], v[3]);
		write_quad(to + 4 * q, y[u], aligned);
	}
}

// --- blocks one by one
// ---------------------------------------------------------

// What a team codes: a block's elements, and its bytes after those of the
// blocks before it.
struct place {
	size_t first, count, bytes;
	unsigned lane;
};

// count 0: no block is left for the team, whose lanes still meet the others.
template <class Codec>
__device__ place place_of(size_t first_block, size_t n, size_t block_elems, size_t *byte)
{
	const size_t block = (first_block * THREADS + threadIdx.x) / Codec::TEAM;
	place p;

	p.first = block * block_elems;
	p.count = p.first >= n ? 0 : n - p.first < block_elems ? n - p.first : block_elems;
	p.bytes = minifloat_bytes(Codec::format(), p.count) - GF_SCALE_BYTES;
	p.lane = threadIdx.x % Codec::TEAM;
	*byte = block * minifloat_bytes(Codec::format(), block_elems);
	return p;
}

template <class Codec>
__device__ void encode_blocks(size_t first_block, uint8_t *to, const float *from, size_t n,
			      size_t block_elems)
{
	const minifloat f = Codec::format();
	size_t byte;
	const place p = place_of<Codec>(first_block, n, block_elems, &byte);
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
				codes |= minifloat_of(f, x[i] * inverse) << minifloat_shift(f, i);
		}
		to[byte + GF_SCALE_BYTES + b] = (uint8_t)codes;
	}
}

template <class Codec, bool Add>
__device__ void decode_blocks(size_t first_block, float *to, const uint8_t *from, size_t n,
			      size_t block_elems)
{
	const minifloat f = Codec::format();
	size_t byte;
	const place p = place_of<Codec>(first_block, n, block_elems, &byte);
	float *y = to + p.first;
	float scale;

	if (p.count == 0)
		return;
	scale = scale_to(from[byte]);
	for (size_t i = p.lane; i < p.count; i += Codec::TEAM) {
		const uint32_t codes = from[byte + GF_SCALE_BYTES + i / Codec::PER_BYTE];
		const float v =
			minifloat_to(f, codes >> minifloat_shift(f, i) & ((1u << f.bits) - 1)) *
			scale;

		y[i] = Add ? y[i] + v : v;
	}
}

// --- both --------------------------------------------------------------------

// The first `strips` blocks of threads take a strip each, the others the blocks
// after those.
template <class Codec>
__global__ void __launch_bounds__(THREADS) encode(uint8_t *to, const float *from, size_t n,
						  size_t block_elems, unsigned strips, bool aligned)
{
	const size_t done = (size_t)strips * STRIP_ELEMS;

	if (blockIdx.x < strips)
		encode_strip<Codec>(to + (size_t)blockIdx.x * strip<Codec>::BYTES,
				    from + (size_t)blockIdx.x * STRIP_ELEMS, aligned);
	else
		encode_blocks<Codec>(blockIdx.x - strips, to + (size_t)strips * strip<Codec>::BYTES,
				     from + done, n - done, block_elems);
}

template <class Codec, bool Add>
__global__ void __launch_bounds__(THREADS) decode(float *to, const uint8_t *from, size_t n,
						  size_t block_elems, unsigned strips, bool aligned)
{
	const size_t done = (size_t)strips * STRIP_ELEMS;

	if (blockIdx.x < strips)
		decode_strip<Codec, Add>(to + (size_t)blockIdx.x * STRIP_ELEMS,
					 from + (size_t)blockIdx.x * strip<Codec>::BYTES, aligned);
	else
		decode_blocks<Codec, Add>(blockIdx.x - strips, to + done,
					  from + (size_t)strips * strip<Codec>::BYTES, n - done,
					  block_elems);
}

template <class Codec> unsigned strips_of(const void *codes, size_t n, size_t block_elems)
{
	return block_elems == Codec::BLOCK && (uintptr_t)codes % sizeof(uint4) == 0
		       ? (unsigned)(n / STRIP_ELEMS)
		       : 0;
}

template <class Codec> size_t cuda_blocks(unsigned strips, size_t n, size_t block_elems)
{
	return strips + blocks_for(blocks_for(n - (size_t)strips * STRIP_ELEMS, block_elems),
				   THREADS / Codec::TEAM);
}

template <class Codec>
void launch_encode(struct gf_gpu_stream *s, void *to, const void *from, size_t n,
		   size_t block_elems)
{
	const unsigned strips = strips_of<Codec>(to, n, block_elems);

	if (n)
		LAUNCH(encode<Codec>, cuda_blocks<Codec>(strips, n, block_elems), s,
		       static_cast<uint8_t *>(to), static_cast<const float *>(from), n, block_elems,
		       strips, phase(from, 4) == 0);
}

template <class Codec, bool Add>
void launch_decode(struct gf_gpu_stream *s, void *to, const void *from, size_t n,
		   size_t block_elems)
{
	const unsigned strips = strips_of<Codec>(from, n, block_elems);

	if (n)
		LAUNCH((decode<Codec, Add>), cuda_blocks<Codec>(strips, n, block_elems), s,
		       static_cast<float *>(to), static_cast<const uint8_t *>(from), n, block_elems,
		       strips, phase(to, 4) == 0);
}

} // namespace

#define CODE(codec)                                                                                \
	void gf_cuda_##codec##_encode(struct gf_gpu_stream *s, void *to, const void *from,         \
				      size_t n, size_t block_elems)                                \
	{                                                                                          \
		launch_encode<codec>(s, to, from, n, block_elems);                                 \
	}                                                                                          \
	void gf_cuda_##codec##_decode(struct gf_gpu_stream *s, void *to, const void *from,         \
				      size_t n, size_t block_elems)                                \
	{                                                                                          \
		launch_decode<codec, false>(s, to, from, n, block_elems);                          \
	}                                                                                          \
	void gf_cuda_##codec##_decode_add(struct gf_gpu_stream *s, void *to, const void *from,     \
					  size_t n, size_t block_elems)                            \
	{                                                                                          \
		launch_decode<codec, true>(s, to, from, n, block_elems);                           \
	}

CODE(fp8)
CODE(fp4)
