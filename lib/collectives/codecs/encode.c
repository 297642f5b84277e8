/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/codecs/encode.h"

#include <assert.h>
#include <string.h>

#include "gf_kernels.h"

/* gf_codec_send decodes a chunk while the first cache holds it. */
#define CHUNK_ELEMS 4096
#define CHUNK_BYTES (CHUNK_ELEMS * sizeof(float))

static const struct gf_codec_fns *code_of(const struct gf_codec *c)
{
	return &gf_kernels()->codecs[gf_codec_number(c)];
}

void gf_codec_encode(const struct gf_codec *c, void *wire, const float *from, size_t n)
{
	code_of(c)->encode(wire, from, n, c->block_elems);
}

void gf_codec_decode(const struct gf_codec *c, float *to, const void *wire, size_t n)
{
	code_of(c)->decode(to, wire, n, c->block_elems);
}

void gf_codec_decode_add(const struct gf_codec *c, float *to, const void *wire, size_t n)
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

void gf_codec_write_set(const struct gf_codec *c, size_t count_elems, void *wire,
			const uint32_t *index, float *value, size_t k)
{
	const struct gf_index_form f = gf_index_form(count_elems, k);

	if (c->plain) {
		memcpy(wire, index, k * sizeof(*index));
		memcpy((char *)wire + k * sizeof(*index), value, k * sizeof(*value));
		return;
	}
	gf_kernels()->pack_indices(wire, index, k, f.low_bits, f.upper_bits);
	gf_codec_send(c, (char *)wire + f.bytes, value, k);
}

static bool ascend(const uint32_t *index, size_t k, size_t count_elems)
{
	size_t wrong = k && index[k - 1] >= count_elems, i;

	for (i = 1; i < k; i++)
		wrong += index[i] <= index[i - 1];
	return wrong == 0;
}

bool gf_codec_read_set(const struct gf_codec *c, size_t count_elems, const void *wire,
		       uint32_t *index, float *value, size_t k)
{
	const struct gf_index_form f = gf_index_form(count_elems, k);

	if (c->plain) {
		memcpy(index, wire, k * sizeof(*index));
		memcpy(value, (const char *)wire + k * sizeof(*index), k * sizeof(*value));
		return ascend(index, k, count_elems);
	}
	if (gf_kernels()->unpack_indices(index, wire, k, f.low_bits, f.upper_bits) != k ||
	    !ascend(index, k, count_elems))
		return false;
	gf_codec_decode(c, value, (const char *)wire + f.bytes, k);
	return true;
}
