/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "collectives/codecs/codec.h"
#include "test.h"

int main(void)
{
	static const struct {
		const char *codec;
		size_t elems, want_bytes;
	} cases[] = {
		{"f32", 0, 0},      {"f32", 3, 12}, {"f16", 3, 6},     {"bf16", 3, 6},
		{"trunc16", 5, 10}, {"q8", 0, 0},   {"q8", 1, 5},      {"q8", 1024, 1028},
		{"q8", 1025, 1033}, {"fp8", 0, 0},  {"fp8", 128, 129}, {"fp8", 129, 131},
		{"fp4", 0, 0},      {"fp4", 1, 2},  {"fp4", 31, 17},   {"fp4", 32, 17},
		{"fp4", 33, 19},
	};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_codec *c = gf_codec_find(cases[i].codec);
		size_t got = gf_codec_wire_bytes(c, cases[i].elems);

		EXPECT(got == cases[i].want_bytes, "%s, %zu: want %zu, got %zu", cases[i].codec,
		       cases[i].elems, cases[i].want_bytes, got);
	}
	for (i = 0; gf_codecs[i].name; i++)
		EXPECT_NEAR(gf_codec_ratio(&gf_codecs[i]) * 4 * 1048576.0,
			    (double)gf_codec_wire_bytes(&gf_codecs[i], 1048576), 1e-12, "%s",
			    gf_codecs[i].name);
	EXPECT(!gf_codec_find("f31"), "no such codec");
	return TEST_END();
}
