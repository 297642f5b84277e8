/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <float.h>
#include <stdint.h>

#include "base/array.h"
#include "base/rng.h"
#include "gf_kernels.h"

/*
 * Encoders and decoders: known values, every f16 there is, and each set against ref bit for bit,
 * with all kinds of numbers at all alignments.
 */
#define MAX        1100
#define GUARD      0xa5
#define HALF_GUARD 0x3c   /* no codec's word for four guards */
#define Q8_STEPS   0.5001 /* of max/127: half a step and some rounding */
#define Q8_RUNNING 1e-6

static const size_t sizes[] = {0,  1,  2,  3,  7,   8,   9,   15,   16,   17,
			       31, 32, 33, 63, 127, 129, 255, 1000, 1024, 1025};

static struct gf_rng rng;

static uint32_t bits(float x)
{
	uint32_t b;

	memcpy(&b, &x, sizeof(b));
	return b;
}

static float from_bits(uint32_t b)
{
	float x;

	memcpy(&x, &b, sizeof(x));
	return x;
}

/* --- known values -------------------------------------------------------- */

static const struct {
	float value;
	uint16_t f16, bf16, trunc16;
} known[] = {
	{0.0f, 0x0000, 0x0000, 0x0000},
	{-0.0f, 0x8000, 0x8000, 0x8000},
	{1.0f, 0x3c00, 0x3f80, 0x3f80},
	{-2.0f, 0xc000, 0xc000, 0xc000},
	{3.14159265f, 0x4248, 0x4049, 0x4049},
	{1.0f / 3, 0x3555, 0x3eab, 0x3eaa},
	{65504.0f, 0x7bff, 0x4780, 0x477f},
	{65519.0f, 0x7bff, 0x4780, 0x477f},
	{65520.0f, 0x7c00, 0x4780, 0x477f},
	{-1e9f, 0xfc00, 0xce6e, 0xce6e},
	{0x1p-14f, 0x0400, 0x3880, 0x3880},
	{0x1p-24f, 0x0001, 0x3380, 0x3380},
	{0x1p-25f, 0x0000, 0x3300, 0x3300},        /* half way: even */
	{0x1.000002p-25f, 0x0001, 0x3300, 0x3300}, /* and a little more */
	{0x1.8p-24f, 0x0002, 0x33c0, 0x33c0},      /* half way: even */
	{1.00390625f, 0x3c04, 0x3f80, 0x3f80},     /* bf16 half way: even */
	{1.01171875f, 0x3c0c, 0x3f82, 0x3f81},
	{1.00048828125f, 0x3c00, 0x3f80, 0x3f80}, /* f16 half way: even */
	{FLT_MAX, 0x7c00, 0x7f80, 0x7f7f},
	{-FLT_MAX, 0xfc00, 0xff80, 0xff7f},
	{FLT_TRUE_MIN, 0x0000, 0x0000, 0x0000},
	{INFINITY, 0x7c00, 0x7f80, 0x7f80},
	{-INFINITY, 0xfc00, 0xff80, 0xff80},
};

static void test_known(const struct gf_kernels *k)
{
	for (size_t i = 0; i < GF_ARRAY_LENGTH(known); i++) {
		uint16_t h[3];

		k->codecs[GF_CODEC_F16].encode(&h[0], &known[i].value, 1, 0);
		k->codecs[GF_CODEC_BF16].encode(&h[1], &known[i].value, 1, 0);
		k->codecs[GF_CODEC_TRUNC16].encode(&h[2], &known[i].value, 1, 0);
		EXPECT(h[0] == known[i].f16, "%s: f16 of %a: %04x", k->name, known[i].value, h[0]);
		EXPECT(h[1] == known[i].bf16, "%s: bf16 of %a: %04x", k->name, known[i].value,
		       h[1]);
		EXPECT(h[2] == known[i].trunc16, "%s: trunc16 of %a: %04x", k->name, known[i].value,
		       h[2]);
	}
}

/* Pipe-SGD's examples (tests/data/vectors.md). */
static void test_pipe_sgd(const struct gf_kernels *k)
{
	static const float sums[] = {1.1f, 2.2f, 3.3f, 4.4f};
	static const float truncated[] = {1.09375f, 2.1875f, 3.296875f, 4.375f};
	static const float quantised[] = {1.1086614f, 2.2f, 3.2913387f, 4.4f};
	static const float block[] = {1, -.5f, .25f, 0};
	uint8_t wire[8];
	uint16_t half[4];
	float back[4], max;

	k->codecs[GF_CODEC_TRUNC16].encode(half, sums, 4, 0);
	k->codecs[GF_CODEC_BF16].decode(back, half, 4, 0);
	EXPECT(memcmp(back, truncated, sizeof(back)) == 0, "%s: trunc16", k->name);
	/* a ring of two halves the message: two blocks */
	for (size_t i = 0; i < 4; i += 2) {
		k->codecs[GF_CODEC_Q8].encode(wire, sums + i, 2, 2);
		k->codecs[GF_CODEC_Q8].decode(back + i, wire, 2, 2);
	}
	for (size_t i = 0; i < 4; i++)
		EXPECT_NEAR(back[i], quantised[i], Q8_RUNNING, "%s: q8[%zu]", k->name, i);
	k->codecs[GF_CODEC_Q8].encode(wire, block, 4, 4);
	memcpy(&max, wire, sizeof(max));
	EXPECT(max == 1 && (int8_t)wire[4] == 127 && (int8_t)wire[5] == -64 &&
		       (int8_t)wire[6] == 32 && wire[7] == 0,
	       "%s: %g, %d %d %d %d", k->name, max, (int8_t)wire[4], (int8_t)wire[5],
	       (int8_t)wire[6], wire[7]);
}

/* --- properties ---------------------------------------------------------- */

/* Every f16 decodes to the number it means and encodes to itself; NaN becomes quiet. */
static void test_all_f16(const struct gf_kernels *k)
{
	static uint16_t all[65536], again[65536];
	static float wide[65536];

	for (size_t h = 0; h < 65536; h++)
		all[h] = (uint16_t)h;
	k->codecs[GF_CODEC_F16].decode(wide, all, 65536, 0);
	k->codecs[GF_CODEC_F16].encode(again, wide, 65536, 0);
	for (size_t h = 0; h < 65536; h++) {
		int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 1023);
		double want = exponent == 31 ? (fraction ? NAN : INFINITY)
			      : exponent     ? ldexp(1024 + fraction, exponent - 25)
					     : ldexp(fraction, -24);
		uint16_t same = (uint16_t)(isnan(want) ? h | 0x200 : h);

		if (isnan(want))
			EXPECT(isnan(wide[h]), "%s: f16 %04zx", k->name, h);
		else
			EXPECT(fabs(wide[h]) == want && !signbit(wide[h]) == (h < 0x8000),
			       "%s: f16 %04zx: %g", k->name, h, wide[h]);
		EXPECT(again[h] == same, "%s: f16 %04zx came back as %04x", k->name, h, again[h]);
	}
}

/* The nearest f16 is no farther away than its neighbours. */
static void test_nearest(const struct gf_kernels *k)
{
	for (size_t i = 0; i < 20000; i++) {
		float x = (float)(gf_rng_normal(&rng) * exp2(-20 + 34 * gf_rng_uniform(&rng)));
		uint16_t h[3];
		float back[3];

		k->codecs[GF_CODEC_F16].encode(&h[0], &x, 1, 0);
		h[1] = (uint16_t)(h[0] + 1);
		h[2] = (uint16_t)(h[0] & 0x7fff ? h[0] - 1 : h[0]);
		k->codecs[GF_CODEC_F16].decode(back, h, 3, 0);
		EXPECT(fabs((double)back[0] - x) <= fabs((double)back[1] - x) &&
			       fabs((double)back[0] - x) <= fabs((double)back[2] - x),
		       "%s: f16 of %a is %a", k->name, x, back[0]);
	}
}

static void test_nan(const struct gf_kernels *k)
{
	static const uint32_t nans[] = {0x7fc00000, 0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(nans); i++) {
		float x = from_bits(nans[i]), back[3];
		uint16_t h;

		k->codecs[GF_CODEC_F16].encode(&h, &x, 1, 0);
		k->codecs[GF_CODEC_F16].decode(&back[0], &h, 1, 0);
		k->codecs[GF_CODEC_BF16].encode(&h, &x, 1, 0);
		k->codecs[GF_CODEC_BF16].decode(&back[1], &h, 1, 0);
		k->codecs[GF_CODEC_TRUNC16].encode(&h, &x, 1, 0);
		k->codecs[GF_CODEC_BF16].decode(&back[2], &h, 1, 0);
		for (size_t c = 0; c < 3; c++)
			EXPECT(isnan(back[c]), "%s: NaN %08x, codec %zu", k->name, nans[i], c);
	}
}

static void test_q8(const struct gf_kernels *k)
{
	float x[33], back[33], max = 0;
	uint8_t wire[4 + 33];

	for (size_t i = 0; i < 33; i++) {
		x[i] = (float)gf_rng_normal(&rng);
		max = fmaxf(max, fabsf(x[i]));
	}
	k->codecs[GF_CODEC_Q8].encode(wire, x, 33, 33);
	k->codecs[GF_CODEC_Q8].decode(back, wire, 33, 33);
	for (size_t i = 0; i < 33; i++)
		EXPECT(fabsf(back[i] - x[i]) <= Q8_STEPS * max / 127, "%s: q8 of %g is %g", k->name,
		       x[i], back[i]);
	/* zero, and too small to divide by */
	memset(x, 0, sizeof(x));
	x[7] = -FLT_TRUE_MIN;
	k->codecs[GF_CODEC_Q8].encode(wire, x, 33, 33);
	k->codecs[GF_CODEC_Q8].decode(back, wire, 33, 33);
	for (size_t i = 0; i < 33; i++)
		EXPECT(back[i] == 0, "%s: q8 of a zero block: %g", k->name, back[i]);
	x[30] = NAN;
	k->codecs[GF_CODEC_Q8].encode(wire, x, 33, 33);
	k->codecs[GF_CODEC_Q8].decode(back, wire, 33, 33);
	EXPECT(isnan(back[0]) && isnan(back[30]), "%s: q8 of NaN", k->name);
	x[30] = -INFINITY;
	k->codecs[GF_CODEC_Q8].encode(wire, x, 33, 33);
	k->codecs[GF_CODEC_Q8].decode(back, wire, 33, 33);
	EXPECT(!isfinite(back[0]) && !isfinite(back[30]), "%s: q8 of infinity", k->name);
}

/* --- each set against ref ------------------------------------------------ */

/* All kinds: moderate, tiny, huge, special, any bits at all. */
static float draw(void)
{
	static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY,
					NAN,  0.5f,  -63.5f,   65520.0f};

	switch (gf_rng_below(&rng, 8)) {
	case 0:
		return special[gf_rng_below(&rng, GF_ARRAY_LENGTH(special))];
	case 1:
		return from_bits((uint32_t)gf_rng_u64(&rng));
	case 2:
		return (float)(gf_rng_normal(&rng) * 0x1p-20);
	default:
		return (float)gf_rng_normal(&rng);
	}
}

struct arrays {
	float x[MAX], y[MAX];
	uint16_t half[MAX];
	uint8_t wire[16 + MAX];
};

static void f16(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	k->codecs[GF_CODEC_F16].encode(a->half + o, a->x + o, n, 0);
	k->codecs[GF_CODEC_F16].decode(a->x + o, a->half + o, n, 0);
	k->codecs[GF_CODEC_F16].decode_add(a->y + o, a->half + o, n, 0);
}

static void bf16(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	k->codecs[GF_CODEC_BF16].encode(a->half + o, a->x + o, n, 0);
	k->codecs[GF_CODEC_BF16].decode(a->x + o, a->half + o, n, 0);
	k->codecs[GF_CODEC_BF16].decode_add(a->y + o, a->half + o, n, 0);
}

static void trunc16(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	k->codecs[GF_CODEC_TRUNC16].encode(a->half + o, a->x + o, n, 0);
}

static void decode_any(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	memcpy(a->half + o, a->x + o, n * sizeof(*a->half));
	k->codecs[GF_CODEC_F16].decode(a->x + o, a->half + o, n, 0);
	k->codecs[GF_CODEC_BF16].decode_add(a->y + o, a->half + o, n, 0);
}

static void q8(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	k->codecs[GF_CODEC_Q8].encode(a->wire + o, a->x + o, n, n);
	k->codecs[GF_CODEC_Q8].decode(a->x + o, a->wire + o, n, n);
	k->codecs[GF_CODEC_Q8].decode_add(a->y + o, a->wire + o, n, n);
}

static void minifloat(const struct gf_codec_fns *code, struct arrays *a, size_t o, size_t n,
		      size_t block)
{
	code->encode(a->wire + o, a->x + o, n, block);
	code->decode(a->x + o, a->wire + o, n, block);
	code->decode_add(a->y + o, a->wire + o, n, block);
}

static void fp8(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	minifloat(&k->codecs[GF_CODEC_FP8], a, o, n, 128);
}

/* A block of any length will do: an odd one leaves half a byte. */
static void fp4(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	minifloat(&k->codecs[GF_CODEC_FP4], a, o, n, n % 2 ? 32 : 35);
}

static const struct {
	const char *name;
	void (*run)(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n);
	int finite;     /* q8: one NaN would hide all else */
	size_t headers; /* bytes at most */
} codecs[] = {
	{"f16", f16, 0, 4},           {"bf16", bf16, 0, 4}, {"trunc16", trunc16, 0, 4},
	{"decode", decode_any, 0, 4}, {"q8", q8, 1, 4},     {"q8 of anything", q8, 0, 4},
	{"fp8", fp8, 1, 9},           {"fp4", fp4, 1, 4},
};

static void test_against_ref(const struct gf_kernels *ref, const struct gf_kernels *set, size_t c,
			     size_t n, size_t o)
{
	static struct arrays want, got;

	memset(&want, GUARD, sizeof(want));
	memset(want.half, HALF_GUARD, sizeof(want.half));
	for (size_t i = 0; i < n; i++) {
		do
			want.x[o + i] = draw();
		while (codecs[c].finite && !isfinite(want.x[o + i]));
		want.y[o + i] = (float)gf_rng_normal(&rng);
	}
	got = want;
	codecs[c].run(ref, &want, o, n);
	codecs[c].run(set, &got, o, n);
	EXPECT(memcmp(&want, &got, sizeof(want)) == 0, "%s of %s, n=%zu, offset %zu",
	       codecs[c].name, set->name, n, o);
	EXPECT(bits(got.x[o + n]) == 0xa5a5a5a5 && got.half[o + n] == 0x3c3c &&
		       got.wire[codecs[c].headers + o + n] == GUARD,
	       "%s of %s wrote past the end, n=%zu", codecs[c].name, set->name, n);
}

int main(void)
{
	static const char *const names[] = {"ref", "avx2", "avx512"};
	const struct gf_kernels *ref = gf_kernels_named("ref");

	gf_rng_init(&rng, 2, 0);
	for (size_t s = 0; s < GF_ARRAY_LENGTH(names); s++) {
		const struct gf_kernels *set = gf_kernels_named(names[s]);

		if (!set) {
			printf("this machine has no %s\n", names[s]);
			continue;
		}
		test_known(set);
		test_pipe_sgd(set);
		test_all_f16(set);
		test_nearest(set);
		test_nan(set);
		test_q8(set);
		for (size_t c = 0; c < GF_ARRAY_LENGTH(codecs); c++)
			for (size_t i = 0; i < GF_ARRAY_LENGTH(sizes); i++)
				for (size_t o = 0; o < 4; o++)
					test_against_ref(ref, set, c, sizes[i], o);
	}
	return TEST_END();
}
