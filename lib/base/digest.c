/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/digest.h"

#include <stdio.h>
#include <string.h>

static const uint32_t round_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotr(uint32_t x, int k)
{
	return (x >> k) | (x << (32 - k));
}

static void expand(const unsigned char *block, uint32_t w[64])
{
	int i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] + (rotr(a, 7) ^ rotr(a, 18) ^ (a >> 3)) +
		       (rotr(b, 17) ^ rotr(b, 19) ^ (b >> 10));
	}
}

/* Round `i` of eight: the state's words go round in place of moving. */
static inline void mix(uint32_t s[8], int i, uint32_t added)
{
	const uint32_t a = s[(8 - i) & 7], b = s[(9 - i) & 7], c = s[(10 - i) & 7],
		       e = s[(12 - i) & 7], f = s[(13 - i) & 7], g = s[(14 - i) & 7];
	const uint32_t t = s[(15 - i) & 7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) +
			   ((e & f) ^ (~e & g)) + added;

	s[(11 - i) & 7] += t;
	s[(15 - i) & 7] =
		t + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void compress(uint32_t state[8], const unsigned char *block, size_t blocks)
{
	uint32_t w[64], s[8];

	for (; blocks; blocks--, block += GF_DIGEST_BLOCK) {
		expand(block, w);
		memcpy(s, state, sizeof(s));
		for (int i = 0; i < 64; i += 8)
#pragma GCC unroll 8
			for (int k = 0; k < 8; k++)
				mix(s, k, round_constants[i + k] + w[i + k]);
		for (int i = 0; i < 8; i++)
			state[i] += s[i];
	}
}

void gf_digest_init(struct gf_digest *d)
{
	static const uint32_t start[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memset(d, 0, sizeof(*d));
	memcpy(d->state, start, sizeof(start));
}

void gf_digest_add(struct gf_digest *d, const void *data, size_t size)
{
	const unsigned char *in = data;

	while (size) {
		size_t used = d->length_bytes % GF_DIGEST_BLOCK;
		size_t n = GF_DIGEST_BLOCK - used;

		if (!used && size >= GF_DIGEST_BLOCK) {
			n = size / GF_DIGEST_BLOCK * GF_DIGEST_BLOCK;
			compress(d->state, in, n / GF_DIGEST_BLOCK);
		} else {
			n = n < size ? n : size;
			memcpy(d->block + used, in, n);
			if (used + n == GF_DIGEST_BLOCK)
				compress(d->state, d->block, 1);
		}
		d->length_bytes += n;
		in += n;
		size -= n;
	}
}

void gf_digest_end(struct gf_digest *d, unsigned char out[GF_DIGEST_BYTES])
{
	uint64_t length_bits = d->length_bytes * 8;
	unsigned char tail[8];

	gf_digest_add(d, "\x80", 1);
	while (d->length_bytes % GF_DIGEST_BLOCK != 56)
		gf_digest_add(d, "", 1);
	for (int i = 0; i < 8; i++)
		tail[i] = (unsigned char)(length_bits >> (56 - 8 * i));
	gf_digest_add(d, tail, sizeof(tail));
	for (int i = 0; i < GF_DIGEST_BYTES; i++)
		out[i] = (unsigned char)(d->state[i / 4] >> (24 - 8 * (i % 4)));
}

void gf_digest_hex(const unsigned char raw[GF_DIGEST_BYTES], char out[GF_DIGEST_HEX])
{
	for (int i = 0; i < GF_DIGEST_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

void gf_digest_text(const void *data, size_t size, char out[GF_DIGEST_TEXT])
{
	unsigned char raw[GF_DIGEST_BYTES];
	struct gf_digest d;

	gf_digest_init(&d);
	gf_digest_add(&d, data, size);
	gf_digest_end(&d, raw);
	memcpy(out, "sha256:", 7);
	gf_digest_hex(raw, out + 7);
}
