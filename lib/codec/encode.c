/* SPDX-License-Identifier: BSD-3-Clause */
#include "codec/encode.h"

#include <assert.h>

#include "gf_kernels.h"

/* gf_codec_send decodes a chunk while the first cache holds it. */
#define CHUNK_ELEMS 4096
#define CHUNK_BYTES (CHUNK_ELEMS * sizeof(float))

static const struct gf_codec_fns *code_of(const struct gf_codec *c)
{
	return &gf_kernels()->codecs[gf_codec_number(c)];
}

void gf_codec_encode(const struct gf_codec *c, void *wire, const float *from,
		     size_t n)
{
	code_of(c)->encode(wire, from, n, c->block_elems);
}

void gf_codec_decode(const struct gf_codec *c, float *to, const void *wire,
		     size_t n)
{
	code_of(c)->decode(to, wire, n, c->block_elems);
}

void gf_codec_decode_add(const struct gf_codec *c, float *to, const void *wire,
			 size_t n)
{
	code_of(c)->decode_add(to, wire, n, c->block_elems);
}

/* A chunk of n elements that begins a block ends one, or the message. */
static size_t chunk(const struct gf_codec *c, size_t n)
{
	size_t most = CHUNK_ELEMS;

	if (c->block_elems)
		most -= CHUNK_ELEMS % c->block_elems;
	return n < most ? n : most;
}

void gf_codec_send(const struct gf_codec *c, void *wire, float *data, size_t n)
{
	char *to = wire;
	size_t count;

	for (; n; n -= count, data += count) {
		count = chunk(c, n);
		gf_codec_encode(c, to, data, count);
		gf_codec_decode(c, data, to, count);
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
