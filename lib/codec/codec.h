/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/codec: forms of gradients on the wire, what they cost in bits and
 * error, and their coding. */
#ifndef GF_CODEC_CODEC_H
#define GF_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "codec/number.h"

/*
 * What travels instead of f32 gradients. This header only describes; planner
 * and simulator need no more. Callers ask what an entry says, never its name.
 */
struct gf_codec {
	const char *name;
	const char *description; /* one line, for --list */
	/* Blocks: the elements in one, and the bytes of its header, which comes
	 * first. The last block may be short. 0: no blocks. */
	size_t block_elems, block_bytes;
	/* On the wire; a block's elements fill whole bytes together. */
	size_t elem_bits;
	/* Gradients travel as they are. */
	bool plain;
	/* Encoded values are numbers of this type, which a library can add. */
	bool adds;
	enum gf_dtype dtype;
	/* Gradients that f32 holds may become infinite, so that training scales
	 * its loss. No codec with a scale per block does this. */
	bool overflows;
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

const struct gf_codec *gf_codec_find(const char *name); /* NULL: none */
bool gf_codec_is_plain(const char *name); /* false of a name that is none */

/* Names for a message, "f32, f16 or q8", each between two `quote`: of all
 * codecs, or of those that add. The caller frees. */
char *gf_codec_names(bool adding, const char *quote);

/* Bytes that count_elems elements take on the wire. */
size_t gf_codec_wire_bytes(const struct gf_codec *c, size_t count_elems);
/* Wire bytes per byte of f32, for long messages. */
double gf_codec_ratio(const struct gf_codec *c);

#endif
