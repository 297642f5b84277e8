/* SPDX-License-Identifier: BSD-3-Clause */
#include "codec/run.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "gf_kernels.h"

/* Of codecs without blocks: what is encoded is decoded again while the first
 * cache holds it. */
#define CHUNK_ELEMS 4096
/* Of one chunk or block. */
#define CHUNK_BYTES (CHUNK_ELEMS * sizeof(float))

/* One block, or any number of elements where there are no blocks. */
struct work {
	const char *name;
	void (*encode)(void *wire, const float *from, size_t n);
	void (*decode)(float *to, const void *wire, size_t n);
	void (*decode_add)(float *to, const void *wire, size_t n);
};

static void encode_f32(void *wire, const float *from, size_t n)
{
	memcpy(wire, from, n * sizeof(float));
}

static void decode_f32(float *to, const void *wire, size_t n)
{
	memcpy(to, wire, n * sizeof(float));
}

static void decode_add_f32(float *to, const void *wire, size_t n)
{
	gf_kernels()->add_f32(to, wire, n);
}

static void encode_f16(void *wire, const float *from, size_t n)
{
	gf_kernels()->f16_encode(wire, from, n);
}

static void decode_f16(float *to, const void *wire, size_t n)
{
	gf_kernels()->f16_decode(to, wire, n);
}

static void decode_add_f16(float *to, const void *wire, size_t n)
{
	gf_kernels()->f16_decode_add(to, wire, n);
}

static void encode_bf16(void *wire, const float *from, size_t n)
{
	gf_kernels()->bf16_encode(wire, from, n);
}

static void encode_trunc16(void *wire, const float *from, size_t n)
{
	gf_kernels()->trunc16_encode(wire, from, n);
}

static void decode_bf16(float *to, const void *wire, size_t n)
{
	gf_kernels()->bf16_decode(to, wire, n);
}

static void decode_add_bf16(float *to, const void *wire, size_t n)
{
	gf_kernels()->bf16_decode_add(to, wire, n);
}

static void encode_q8(void *wire, const float *from, size_t n)
{
	gf_kernels()->q8_encode(wire, from, n);
}

static void decode_q8(float *to, const void *wire, size_t n)
{
	gf_kernels()->q8_decode(to, wire, n);
}

static void decode_add_q8(float *to, const void *wire, size_t n)
{
	gf_kernels()->q8_decode_add(to, wire, n);
}

static const struct work works[] = {
	{"f32", encode_f32, decode_f32, decode_add_f32},
	{"f16", encode_f16, decode_f16, decode_add_f16},
	{"bf16", encode_bf16, decode_bf16, decode_add_bf16},
	{"trunc16", encode_trunc16, decode_bf16, decode_add_bf16},
	{"q8", encode_q8, decode_q8, decode_add_q8},
};

static const struct work *work_of(const struct gf_codec *c)
{
	const struct work *w = works;

	while (strcmp(w->name, c->name) != 0)
		w++;
	return w;
}

/* How much of n elements goes in one call. */
static size_t block(const struct gf_codec *c, size_t n)
{
	return c->block_elems && n > c->block_elems ? c->block_elems : n;
}

void gf_codec_encode(const struct gf_codec *c, void *wire, const float *from,
		     size_t n)
{
	const struct work *w = work_of(c);
	char *to = wire;
	size_t count;

	for (; n; n -= count, from += count) {
		count = block(c, n);
		w->encode(to, from, count);
		to += gf_codec_wire_bytes(c, count);
	}
}

void gf_codec_decode(const struct gf_codec *c, float *to, const void *wire,
		     size_t n)
{
	const struct work *w = work_of(c);
	const char *from = wire;
	size_t count;

	for (; n; n -= count, to += count) {
		count = block(c, n);
		w->decode(to, from, count);
		from += gf_codec_wire_bytes(c, count);
	}
}

void gf_codec_decode_add(const struct gf_codec *c, float *to, const void *wire,
			 size_t n)
{
	const struct work *w = work_of(c);
	const char *from = wire;
	size_t count;

	for (; n; n -= count, to += count) {
		count = block(c, n);
		w->decode_add(to, from, count);
		from += gf_codec_wire_bytes(c, count);
	}
}

static size_t chunk(const struct gf_codec *c, size_t n)
{
	size_t most = c->block_elems ? c->block_elems : CHUNK_ELEMS;

	return n < most ? n : most;
}

void gf_codec_send(const struct gf_codec *c, void *wire, float *data, size_t n)
{
	const struct work *w = work_of(c);
	char *to = wire;
	size_t count;

	for (; n; n -= count, data += count) {
		count = chunk(c, n);
		w->encode(to, data, count);
		w->decode(data, to, count);
		to += gf_codec_wire_bytes(c, count);
	}
}

void gf_codec_round(const struct gf_codec *c, float *data, size_t n)
{
	char wire[CHUNK_BYTES];
	size_t count;

	for (; n; n -= count, data += count) {
		count = chunk(c, n);
		assert(gf_codec_wire_bytes(c, count) <= sizeof(wire));
		gf_codec_send(c, wire, data, count);
	}
}
