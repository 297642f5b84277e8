/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CODECS_NUMBER_H
#define GF_CODECS_NUMBER_H

/* Codecs by number: their places in gf_codecs (collectives/codecs/codec.h) and in the tables of the
 * kernels. */
enum gf_codec_number {
	GF_CODEC_F32,
	GF_CODEC_F16,
	GF_CODEC_BF16,
	GF_CODEC_TRUNC16,
	GF_CODEC_Q8,
	GF_CODEC_FP8,
	GF_CODEC_FP4,
	GF_CODECS
};

#endif
