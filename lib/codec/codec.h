/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CODEC_CODEC_H
#define GF_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/number.h"

/*
 * What travels instead of f32 gradients. This header only describes; planner
 * and simulator need no more.
 */
struct gf_codec {
	const char *name;
	const char *description; /* one line, for --list */
	/* A block of so many elements takes so many bytes besides the
	 * elements' own; the last block may be short. 0: no blocks. */
	size_t block_elems, block_bytes;
	size_t elem_bytes; /* on the wire */
	/* Encoded values are numbers that a library can add. */
	bool adds;
	/* The most that one encoding changes a value, as a share of it (in the
	 * codec's normal range) or, with blocks, of the block's largest. */
	double error;
};

/* By number; name NULL ends it. */
extern const struct gf_codec gf_codecs[GF_CODECS + 1];

static inline enum gf_codec_number gf_codec_number(const struct gf_codec *c)
{
	return (enum gf_codec_number)(c - gf_codecs);
}

const struct gf_codec *gf_codec_find(const char *name);

/* Bytes that count_elems elements take on the wire. */
size_t gf_codec_wire_bytes(const struct gf_codec *c, size_t count_elems);
/* Wire bytes per byte of f32, for long messages. */
double gf_codec_ratio(const struct gf_codec *c);

#endif
