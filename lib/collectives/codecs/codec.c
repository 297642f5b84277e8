/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/codecs/codec.h"

#include <stdint.h>
#include <string.h>

#include "base/registry.h"
#include "base/text.h"

#define F32_BITS  32
#define BYTE_BITS 8

/*
 * To add a codec: its entry below; `encode`, `decode` and `decode_add`
 * in kernels/ref/ with a line in kernels/table.c, which code_half.h or code_blocks.h there make of
 * the code for one value or one block; rows in tests/unit/test_lossy.c and test_codec.c; a
 * text for gf-methods(7). A decoded message must encode to the same values again, or replicas drift
 * apart. Kernels for x86 and for GPUs are optional.
 */
const struct gf_codec gf_codecs[GF_CODECS + 1] = {
	[GF_CODEC_F32] = {.name = "f32",
			  .description = "gradients as they are",
			  .elem_bits = 32,
			  .plain = true,
			  .adds = true,
			  .dtype = GF_F32},
	/* MANUAL
	 * IEEE half precision, to nearest even: 16 bits, error 2^-11 of the value.
	 * Values above 65504 become infinite, so training scales the loss; in the sets of a
	 * selection they go as 65504, and the rest returns to the residual */
	[GF_CODEC_F16] = {.name = "f16",
			  .description = "IEEE half precision",
			  .elem_bits = 16,
			  .adds = true,
			  .dtype = GF_F16,
			  .greatest = 65504,
			  .error = 0x1p-11,
			  .rms = 2.075e-4},
	/* MANUAL
	 * the top 16 bits of an f32, to nearest even: error 2^-8 of the value */
	[GF_CODEC_BF16] = {.name = "bf16",
			   .description = "bfloat16, to nearest even",
			   .elem_bits = 16,
			   .adds = true,
			   .dtype = GF_BF16,
			   .error = 0x1p-8,
			   .rms = 1.66e-3},
	/* MANUAL
	 * the same 16 bits, toward zero, as in Pipe-SGD: error 2^-7 of the value */
	[GF_CODEC_TRUNC16] = {.name = "trunc16",
			      .description = "the top 16 bits of f32, toward zero (Pipe-SGD)",
			      .elem_bits = 16,
			      .error = 0x1p-7,
			      .rms = 1.74e-3,
			      .cut = 2.8e-3},
	/* MANUAL
	 * 8-bit integers and a scale per block of 1024, as in Pipe-SGD: 8.03 bits, error 1/254 of
	 * the block's largest value */
	[GF_CODEC_Q8] = {.name = "q8",
			 .description = "8 bits per element and a scale per block (Pipe-SGD)",
			 .block_elems = 1024,
			 .block_bytes = 4,
			 .elem_bits = 8,
			 .error = 1.0 / 254,
			 .rms = 7.8e-3,
			 .peak = 3.45},
	/* MANUAL
	 * 8-bit floating point (e4m3 of OCP's OFP8: 4 bits of exponent, 3 of fraction, at most
	 * 448) and a scale per block of 128, a power of two: 8.06 bits, error 1/17 of the value,
	 * or 1/1024 of the scale for values below 1/64 of it */
	[GF_CODEC_FP8] = {.name = "fp8",
			  .description = "8-bit floating point (e4m3) and a scale per 128",
			  .block_elems = 128,
			  .block_bytes = 1,
			  .elem_bits = 8,
			  .error = 1.0 / 17,
			  .rms = 2.66e-2},
	/* MANUAL
	 * 4-bit floating point (e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6) and a scale per block of 32, a
	 * power of two: MXFP4 of OCP's Microscaling Formats 1.0.
	 * 4.25 bits, error 1/4 of the block's largest value */
	[GF_CODEC_FP4] = {.name = "fp4",
			  .description =
				  "4-bit floating point (e2m1) and a scale per 32 (OCP MXFP4)",
			  .block_elems = 32,
			  .block_bytes = 1,
			  .elem_bits = 4,
			  .error = 0.25,
			  .rms = 0.115,
			  .cut = 0.019},
};

const struct gf_codec *gf_codec_find(const char *name)
{
	const struct gf_codec *c = gf_named_find(gf_codecs, sizeof(*gf_codecs), name);

	if (!c && strchr(name, ':'))
		(void)gf_codec_describe(name, &c, NULL);
	return c;
}

bool gf_codec_is_plain(const char *name)
{
	const struct gf_codec *c = gf_codec_find(name);

	return c && c->plain;
}

char *gf_codec_names(bool adding, const char *quote)
{
	struct gf_text out = {0};
	size_t i, count = 0, listed = 0;

	for (i = 0; gf_codecs[i].name; i++)
		count += gf_codecs[i].adds || !adding;
	for (i = 0; gf_codecs[i].name; i++) {
		if (adding && !gf_codecs[i].adds)
			continue;
		gf_text_addf(&out, "%s%s%s%s",
			     listed == 0           ? ""
			     : listed + 1 == count ? " or "
						   : ", ",
			     quote, gf_codecs[i].name, quote);
		listed++;
	}
	return gf_text_take(&out);
}

static size_t block_bytes(const struct gf_codec *c, size_t count_elems)
{
	return c->block_bytes + (count_elems * c->elem_bits + BYTE_BITS - 1) / BYTE_BITS;
}

size_t gf_codec_wire_bytes(const struct gf_codec *c, size_t count_elems)
{
	size_t whole, rest;

	if (!c->block_elems)
		return block_bytes(c, count_elems);
	whole = count_elems / c->block_elems;
	rest = count_elems % c->block_elems;
	return whole * block_bytes(c, c->block_elems) + (rest ? block_bytes(c, rest) : 0);
}

double gf_codec_ratio(const struct gf_codec *c)
{
	double bits = (double)c->elem_bits;

	if (c->block_elems)
		bits += BYTE_BITS * (double)c->block_bytes / (double)c->block_elems;
	return bits / F32_BITS;
}

static size_t bytes_of(size_t bits)
{
	return (bits + 7) / 8;
}

/* The shortest: from all bits in the upper part to all in the lower. */
struct gf_index_form gf_index_form(size_t count_elems, size_t k)
{
	struct gf_index_form best = {.bytes = SIZE_MAX}, f;

	for (unsigned low = 0; low <= 32; low++) {
		size_t upper = count_elems ? (count_elems - 1) >> low : 0;

		f.low_bits = low;
		f.upper_bits = upper ? k + upper : 0;
		f.bytes = bytes_of(k * low) + bytes_of(f.upper_bits);
		if (f.bytes < best.bytes)
			best = f;
		if (!upper)
			break;
	}
	return best;
}

size_t gf_codec_set_bytes(const struct gf_codec *c, size_t count_elems, size_t k)
{
	size_t indices = c->plain ? k * sizeof(uint32_t) : gf_index_form(count_elems, k).bytes;

	return indices + gf_codec_wire_bytes(c, k);
}
