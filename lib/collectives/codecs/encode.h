/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CODECS_ENCODE_H
#define GF_CODECS_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/codecs/codec.h"

/*
 * Executes codecs through the kernels. `wire` holds gf_codec_wire_bytes(c, n) bytes: of a codec
 * with blocks, block after block, each with its header; the first begins at the first element.
 * Pointers need no alignment on the wire side.
 */
void gf_codec_encode(const struct gf_codec *c, void *wire, const float *from, size_t n);
void gf_codec_decode(const struct gf_codec *c, float *to, const void *wire, size_t n);
/* to += what wire holds */
void gf_codec_decode_add(const struct gf_codec *c, float *to, const void *wire, size_t n);
/* Encodes, and leaves in data what the receiver decodes. */
void gf_codec_send(const struct gf_codec *c, void *wire, float *data, size_t n);
/* data becomes what it would decode to. */
void gf_codec_round(const struct gf_codec *c, float *data, size_t n);

/* A set in gf_codec_set_bytes at `wire`; leaves in `value` what the receiver decodes. */
void gf_codec_write_set(const struct gf_codec *c, size_t count_elems, void *wire,
			const uint32_t *index, float *value, size_t k);
/* false: these are no k ascending indices below count_elems. */
bool gf_codec_read_set(const struct gf_codec *c, size_t count_elems, const void *wire,
		       uint32_t *index, float *value, size_t k);

#endif
