/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <float.h>
#include <stdint.h>

#include "base/array.h"
#include "base/rng.h"
#include "gf_kernels.h"

/*
 * fp8 and fp4 of every set against a model of its own: all codes as their specification's tables
 * have them, and blocks by search for the nearest number, in f64.
 */
#define FP8_BLOCK 128
#define FP4_BLOCK 32
#define MAX_ELEMS 300

static struct gf_rng rng;

/* What the codes without a sign mean, ascending. */
static double e4m3_values[127];
static const double e2m1_values[] = {0, .5, 1, 1.5, 2, 3, 4, 6};

static const struct format {
	const char *name;
	enum gf_codec_number codec;
	size_t bits, block, nvalues;
	const double *values;
	double exponent; /* of the largest */
	double most;     /* a block's largest, over its scale */
} formats[] = {
	{"fp8", GF_CODEC_FP8, 8, FP8_BLOCK, 127, e4m3_values, 8, 464},
	{"fp4", GF_CODEC_FP4, 4, FP4_BLOCK, 8, e2m1_values, 2, 8},
};

static float from_bits(uint32_t b)
{
	float x;

	memcpy(&x, &b, sizeof(x));
	return x;
}

static size_t wire_bytes(const struct format *f, size_t n)
{
	size_t whole = n / f->block, rest = n % f->block;

	return whole * (1 + f->block * f->bits / 8) + (rest ? 1 + (rest * f->bits + 7) / 8 : 0);
}

static void make_values(void)
{
	for (int e = 0; e < 16; e++)
		for (int m = 0; m < 8; m++)
			if (e * 8 + m < 127)
				e4m3_values[e * 8 + m] =
					e ? ldexp(1 + m / 8.0, e - 7) : ldexp(m / 8.0, -6);
}

/* --- the model ------------------------------------------------------------ */

/* The code of the nearest value; of two the even one. */
static unsigned nearest(const struct format *f, double x)
{
	size_t best = 0;

	for (size_t c = 1; c < f->nvalues; c++) {
		double off = fabs(f->values[c] - fabs(x));
		double least = fabs(f->values[best] - fabs(x));

		if (off < least || (off == least && c % 2 == 0))
			best = c;
	}
	return (unsigned)(best | (size_t)signbit(x) << (f->bits - 1));
}

/* The scale byte, or 255. */
static int scale_of(const struct format *f, const float *x, size_t n)
{
	double largest = 0;
	int exponent;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(x[i]))
			return 255;
		largest = fmax(largest, fabs((double)x[i]));
	}
	if (largest == 0)
		return 0;
	exponent = ilogb(largest) - (int)f->exponent;
	if (ldexp(largest, -exponent) > f->most)
		exponent++;
	if (exponent + f->exponent >= 128)
		return 255;
	return exponent < -127 ? 0 : exponent + 127;
}

static void model(const struct format *f, const float *x, size_t n, uint8_t *wire, float *back)
{
	size_t count;

	for (; n; n -= count, x += count, back += count) {
		count = n < f->block ? n : f->block;
		memset(wire, 0, wire_bytes(f, count));
		*wire = (uint8_t)scale_of(f, x, count);
		for (size_t i = 0; i < count; i++) {
			double scaled = ldexp(x[i], 127 - *wire), value;
			unsigned code;

			if (*wire == 255) {
				back[i] = NAN;
				continue;
			}
			code = nearest(f, scaled);
			value = f->values[code & ((1u << (f->bits - 1)) - 1)];
			wire[1 + i * f->bits / 8] |= (uint8_t)(code << i * f->bits % 8);
			back[i] = (float)copysign(ldexp(value, *wire - 127), (double)x[i]);
		}
		wire += wire_bytes(f, count);
	}
}

/* --- sets against it ------------------------------------------------------ */

/* Every code decodes to what it means, under every scale. */
static void test_codes(const struct gf_kernels *k, const struct format *f)
{
	const struct gf_codec_fns *code = &k->codecs[f->codec];
	size_t ncodes = (size_t)1 << f->bits;
	uint8_t wire[1 + 256];
	float back[256], sum[256];

	for (size_t c = 0; c < ncodes; c++)
		if (f->bits == 8)
			wire[1 + c] = (uint8_t)c;
		else if (c % 2 == 0)
			wire[1 + c / 2] = (uint8_t)(c | (c + 1) << 4);
	for (int scale = 0; scale < 256; scale++) {
		wire[0] = (uint8_t)scale;
		code->decode(back, wire, ncodes, ncodes);
		for (size_t c = 0; c < ncodes; c++)
			sum[c] = (float)c;
		code->decode_add(sum, wire, ncodes, ncodes);
		for (size_t c = 0; c < ncodes; c++) {
			size_t a = c % (ncodes / 2);
			double want = a < f->nvalues && scale < 255
					      ? ldexp(f->values[a], scale - 127)
					      : NAN;
			float right = (float)(c < ncodes / 2 ? want : -want);

			EXPECT(isnan(want) ? isnan(back[c]) : !memcmp(&back[c], &right, 4),
			       "%s: %s code %zu scale %d: want %a, got %a", k->name, f->name, c,
			       scale, want, back[c]);
			EXPECT(isnan(want) ? isnan(sum[c]) : sum[c] == (float)c + right,
			       "%s: %s code %zu scale %d added: %a", k->name, f->name, c, scale,
			       sum[c]);
		}
	}
}

static void test_message(const struct gf_kernels *k, const struct format *f, const float *x,
			 size_t n, const char *what)
{
	const struct gf_codec_fns *code = &k->codecs[f->codec];
	uint8_t want[2 * MAX_ELEMS], got[2 * MAX_ELEMS], again[2 * MAX_ELEMS];
	float back[MAX_ELEMS + 1], right[MAX_ELEMS], sum[MAX_ELEMS];
	size_t bytes = wire_bytes(f, n), wrong = 0, off = 0;

	memset(got, 0xa5, sizeof(got));
	memset(again, 0xa5, sizeof(again));
	model(f, x, n, want, right);
	code->encode(got, x, n, f->block);
	EXPECT(!memcmp(want, got, bytes) && got[bytes] == 0xa5, "%s: %s of %s, n=%zu", k->name,
	       f->name, what, n);
	back[n] = 7;
	code->decode(back, got, n, f->block);
	for (size_t i = 0; i < n; i++) {
		wrong += isnan(right[i]) ? !isnan(back[i]) : memcmp(&back[i], &right[i], 4) != 0;
		sum[i] = 0.25f;
	}
	code->decode_add(sum, got, n, f->block);
	for (size_t i = 0; i < n; i++)
		off += isnan(right[i]) ? !isnan(sum[i]) : sum[i] != 0.25f + right[i];
	EXPECT(!wrong && !off && back[n] == 7,
	       "%s: %s of %s, n=%zu: %zu decoded, %zu added otherwise", k->name, f->name, what, n,
	       wrong, off);
	/* what was decoded is encoded to the same bytes */
	code->encode(again, back, n, f->block);
	EXPECT(!memcmp(got, again, bytes + 1), "%s: %s of %s, n=%zu, again", k->name, f->name, what,
	       n);
}

/* The header's example, and the ends of the ranges. */
static void test_known(const struct gf_kernels *k)
{
	static const float x[] = {100, -30, .3f, 0};
	static const struct {
		size_t format;
		uint8_t wire[5];
		float back[4];
	} cases[] = {
		{0, {125, 124, 239, 58, 0}, {96, -30, .3125f, 0}},
		{1, {131, 199, 0}, {96, -32, 0, 0}},
	};
	static const float ends[] = {FLT_MAX,         -FLT_MAX,  0x1.cp127f,   0x1.dp127f,
				     0x1.d00002p127f, 0x1p-126f, FLT_TRUE_MIN, -0x1p-130f,
				     0x1.8p-119f,     448,       464,          0x1.d00002p8f,
				     INFINITY,        -INFINITY, NAN,          -0.0f};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct format *f = &formats[cases[i].format];
		uint8_t wire[5];
		float back[4];

		k->codecs[f->codec].encode(wire, x, 4, f->block);
		k->codecs[f->codec].decode(back, wire, 4, f->block);
		EXPECT(!memcmp(wire, cases[i].wire, wire_bytes(f, 4)) &&
			       !memcmp(back, cases[i].back, sizeof(back)),
		       "%s: %s: %d %d %d %d %d; %g %g %g %g", k->name, f->name, wire[0], wire[1],
		       wire[2], wire[3], wire[4], back[0], back[1], back[2], back[3]);
		for (size_t e = 0; e < GF_ARRAY_LENGTH(ends); e++) {
			float two[] = {ends[e], 1e-3f};

			test_message(k, f, two, 1, "an end");
			test_message(k, f, two, 2, "an end");
		}
	}
}

/* Around every step between two codes: the tie and its two neighbours. */
static void test_ties(const struct gf_kernels *k, const struct format *f)
{
	for (size_t c = 0; c + 1 < f->nvalues; c++) {
		float tie = (float)((f->values[c] + f->values[c + 1]) / 2);
		float x[] = {(float)f->values[f->nvalues - 1],
			     tie,
			     nextafterf(tie, 0),
			     nextafterf(tie, INFINITY),
			     -tie,
			     -nextafterf(tie, 0),
			     -nextafterf(tie, INFINITY),
			     (float)f->values[c],
			     (float)f->values[c + 1]};

		test_message(k, f, x, GF_ARRAY_LENGTH(x), "ties");
		/* as a vector's first lanes, too */
		test_message(k, f, x + 1, 8, "ties");
	}
}

/* Every length around the blocks and vectors, numbers of all sizes. */
static void test_lengths(const struct gf_kernels *k, const struct format *f)
{
	float x[MAX_ELEMS];

	for (size_t n = 0; n <= 2 * f->block + 17 && n < MAX_ELEMS; n++)
		for (int kind = 0; kind < 5; kind++) {
			static const char *const names[] = {"normal", "any bits", "tiny", "steps",
							    "NaN"};

			for (size_t i = 0; i < n; i++) {
				double normal = gf_rng_normal(&rng);

				x[i] = (float)normal;
				if (kind == 1)
					do
						x[i] = from_bits((uint32_t)gf_rng_u64(&rng));
					while (!isfinite(x[i]));
				if (kind == 2)
					x[i] = (float)ldexp(normal,
							    -140 + (int)gf_rng_below(&rng, 30));
				if (kind == 3)
					x[i] = (float)((int)gf_rng_below(&rng, 129) - 64) / 8;
			}
			if (kind == 4 && n)
				x[gf_rng_below(&rng, n)] = n % 2 ? NAN : -INFINITY;
			test_message(k, f, x, n, names[kind]);
		}
}

int main(void)
{
	static const char *const names[] = {"ref", "avx2", "avx512"};

	make_values();
	gf_rng_init(&rng, 3, 0);
	for (size_t s = 0; s < GF_ARRAY_LENGTH(names); s++) {
		const struct gf_kernels *set = gf_kernels_named(names[s]);

		if (!set) {
			printf("this machine has no %s\n", names[s]);
			continue;
		}
		test_known(set);
		for (size_t i = 0; i < GF_ARRAY_LENGTH(formats); i++) {
			test_codes(set, &formats[i]);
			test_ties(set, &formats[i]);
			test_lengths(set, &formats[i]);
		}
	}
	return TEST_END();
}
