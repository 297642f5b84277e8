/* SPDX-License-Identifier: BSD-3-Clause */
#include "codec/codec.h"

#include <string.h>

#define F32_BYTES 4

const struct gf_codec gf_codecs[GF_CODECS + 1] = {
	[GF_CODEC_F32] = {"f32", "gradients as they are", 0, 0, 4, true, 0},
	[GF_CODEC_F16] = {"f16", "IEEE half precision", 0, 0, 2, true, 0x1p-11},
	[GF_CODEC_BF16] = {"bf16", "bfloat16, to nearest even", 0, 0, 2, true,
			   0x1p-8},
	[GF_CODEC_TRUNC16] = {"trunc16",
			      "the top 16 bits of f32, toward zero (Pipe-SGD)",
			      0, 0, 2, false, 0x1p-7},
	[GF_CODEC_Q8] = {"q8",
			 "8 bits per element and a scale per block (Pipe-SGD)",
			 1024, 4, 1, false, 1.0 / 254},
};

const struct gf_codec *gf_codec_find(const char *name)
{
	size_t i;

	for (i = 0; gf_codecs[i].name; i++)
		if (strcmp(gf_codecs[i].name, name) == 0)
			return &gf_codecs[i];
	return NULL;
}

size_t gf_codec_wire_bytes(const struct gf_codec *c, size_t count_elems)
{
	size_t blocks = c->block_elems ? (count_elems + c->block_elems - 1) /
						 c->block_elems
				       : 0;

	return count_elems * c->elem_bytes + blocks * c->block_bytes;
}

double gf_codec_ratio(const struct gf_codec *c)
{
	double bytes = (double)c->elem_bytes;

	if (c->block_elems)
		bytes += (double)c->block_bytes / (double)c->block_elems;
	return bytes / F32_BYTES;
}
