/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/collectives/codecs: forms of gradients on the wire, what they cost in bits and error, and
 * their coding. */
#ifndef GF_CODECS_CODEC_H
#define GF_CODECS_CODEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/error.h"
#include "lists/gf_codec_number.h"

/*
 * What travels instead of f32 gradients. This header only describes; planner and simulator need no
 * more. Callers ask what an entry says, never its name.
 */
struct gf_codec {
	const char *name;
	const char *description; /* one line, for --list */
	/* Blocks: the elements in one, and the bytes of its header, which comes first. The last
	 * block may be short. 0: no blocks. */
	size_t block_elems, block_bytes;
	/* On the wire; a block's elements fill whole bytes together. */
	size_t elem_bits;
	/* Gradients travel as they are. */
	bool plain;
	/* Encoded values are numbers of this type, which a library can add. */
	bool adds;
	enum gf_dtype dtype;
	/* Larger values become infinite, so that training scales its loss; 0: none that f32 holds
	 * does, as with a scale per block. */
	double greatest;
	/* The most that one encoding changes a value, as a share of it (in the codec's normal
	 * range) or, with blocks, of the block's largest. */
	double error;
	/* What one encoding does to normal values: the rms error, as a share of theirs, beside the
	 * share by which it makes all of them smaller (toward zero). 0: nothing, or not known. */
	double rms, cut;
	/* The largest of a block's normal values, by their rms, where the rms error is as many times
	 * larger as that is, since steps are even; else 0. */
	double peak;
	/* Of a described codec alone, per byte of f32; 0: not known. */
	double encode_s_per_byte, decode_s_per_byte;
};

/* By number; name NULL ends it. */
extern const struct gf_codec gf_codecs[GF_CODECS + 1];

static inline enum gf_codec_number gf_codec_number(const struct gf_codec *c)
{
	return (enum gf_codec_number)(c - gf_codecs);
}

/*
 * Someone's own codec is described by its name, which travels in documents as any other does:
 * "mine:bits=1.5,encode=3GB/s,decode=6GB/s". bits is what an element takes on the wire, above 0 and
 * below 32; encode and decode are rates of f32 gradients, and may be left out. It has no number and
 * no kernels: it is priced, and nothing executes it.
 */
#define GF_CODECS_DESCRIBED 16 /* the most that one process may know */
#define GF_CODECS_MOST      (GF_CODECS + GF_CODECS_DESCRIBED)

static inline bool gf_codec_is_described(const struct gf_codec *c)
{
	return c < gf_codecs || c >= gf_codecs + GF_CODECS;
}
/* -EINVAL: it is no such description, or one too many. */
int gf_codec_describe(const char *name, const struct gf_codec **codec, struct gf_error *err);
/* The i-th that was described; NULL: none. */
const struct gf_codec *gf_codec_described(size_t i);
/* What tables call a codec: its name up to the description. "%.*s" */
int gf_codec_title_length(const char *name);

/* A built-in or described codec; NULL: none. */
const struct gf_codec *gf_codec_find(const char *name);
bool gf_codec_is_plain(const char *name); /* false of a name that is none */

/* Names for a message, "f32, f16 or q8", each between two `quote`: of all codecs, or of those that
 * add. The caller frees. */
char *gf_codec_names(bool adding, const char *quote);

/* Bytes that count_elems elements take on the wire. */
size_t gf_codec_wire_bytes(const struct gf_codec *c, size_t count_elems);
/* Wire bytes per byte of f32, for long messages. */
double gf_codec_ratio(const struct gf_codec *c);

/*
 * A sparse set: k values at ascending indices below count_elems. A plain codec leaves both as they
 * are, k indices of 32 bits and then k floats. Under any other codec the indices come in Elias's
 * form (kernels/ref/indices.c), about log2(count_elems/k) + 2 bits each and never more than 32, and
 * then the values, as collectives/codecs/encode.h has them. The size follows from k and count_elems
 * alone, so that it is known before the set is.
 *
 * Bits per index of 10^6 elements: 11.95 at density .001, 8.56 at .01, 6.25 at .05; the entropy of
 * such a set is 11.41, 8.08 and 5.73.
 */
struct gf_index_form {
	unsigned low_bits;
	size_t upper_bits, bytes; /* of both parts, each in whole bytes */
};

struct gf_index_form gf_index_form(size_t count_elems, size_t k);
size_t gf_codec_set_bytes(const struct gf_codec *c, size_t count_elems, size_t k);

#endif
