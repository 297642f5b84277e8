/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/exact.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Beyond these nothing is gained. */
enum { MOST_BASE = 1000, MOST_OFFSET = 1000, FACTORS_OF_TWO = 4 };
/* Under a codec: a value with more digits than any codec keeps. */
static const double ragged = 0.731058578630005;

/* --- elements -------------------------------------------------------------
 */

/* Both formats are the top of a wider one: f16 by its own exponent width. The kernels have
 * conversions, too; what checks them does without. */
static double from_half(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double magnitude = exponent == 31 ? fraction ? NAN : INFINITY
			   : exponent     ? ldexp(1024 + fraction, exponent - 25)
					  : ldexp(fraction, -24);

	return bits & 0x8000 ? -magnitude : magnitude;
}

static uint16_t to_half(double value)
{
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	double magnitude = fabs(value), scaled;
	int exponent;

	if (!(magnitude < 65520))
		return (uint16_t)(sign | (isnan(value) ? 0x7e00 : 0x7c00));
	frexp(magnitude, &exponent);
	exponent = exponent < -13 ? -13 : exponent;
	/* in units of the last place; 2048 carries into the exponent */
	scaled = nearbyint(ldexp(magnitude, 11 - exponent));
	if (scaled < 1024)
		return (uint16_t)(sign | (unsigned)scaled);
	return (uint16_t)(sign | (((unsigned)(exponent + 13) << 10) + (unsigned)scaled));
}

static double from_bfloat(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;

	memcpy(&value, &wide, sizeof(value));
	return value;
}

static uint16_t to_bfloat(double value)
{
	float narrow = (float)value;
	uint32_t bits;

	memcpy(&bits, &narrow, sizeof(bits));
	if (isnan(value))
		return 0x7fc0;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double gf_exact_load(enum gf_dtype dtype, const void *data, size_t index)
{
	switch (dtype) {
	case GF_F32:
		return ((const float *)data)[index];
	case GF_F64:
		return ((const double *)data)[index];
	case GF_F16:
		return from_half(((const uint16_t *)data)[index]);
	case GF_BF16:
		return from_bfloat(((const uint16_t *)data)[index]);
	case GF_I32:
		return ((const int32_t *)data)[index];
	}
	return NAN;
}

void gf_exact_store(enum gf_dtype dtype, void *data, size_t index, double value)
{
	switch (dtype) {
	case GF_F32:
		((float *)data)[index] = (float)value;
		break;
	case GF_F64:
		((double *)data)[index] = value;
		break;
	case GF_F16:
		((uint16_t *)data)[index] = to_half(value);
		break;
	case GF_BF16:
		((uint16_t *)data)[index] = to_bfloat(value);
		break;
	case GF_I32:
		((int32_t *)data)[index] = (int32_t)value;
		break;
	}
}

/* --- inputs ---------------------------------------------------------------
 */

/* Integers up to this one are exact. */
static const double limits[GF_DTYPES] = {0x1p24, 0x1p53, 0x1p11, 0x1p8, 0x1p30};
/* In the last place of 1. */
static const double units[GF_DTYPES] = {0x1p-23, 0x1p-52, 0x1p-10, 0x1p-7, 0};

/* The data that a fill or a check works with. */
struct rule {
	const struct gf_exact *x;
	int givers; /* the others contribute 0 */
	int base;   /* |w| <= base */
	int offset; /* |e| <= offset */
	bool lossy;
};

static struct rule rule_of(const struct gf_exact *x)
{
	double limit = limits[x->dtype], each;
	struct rule r = {.x = x, .givers = x->ranks};

	r.lossy = x->codec && x->codec->error > 0;
	if (r.givers > limit / 4)
		r.givers = (int)(limit / 4);
	each = floor(limit / r.givers);
	r.offset = x->ranks == 1 ? 0 : (int)fmin(MOST_OFFSET, each / 2);
	r.base = (int)fmin(MOST_BASE, each - r.offset);
	return r;
}

struct hash {
	uint32_t base, turn;
};

/* Fibonacci hashing, mixed once. */
static struct hash hash_of(uint64_t seed, size_t index)
{
	uint64_t h = ((uint64_t)index + (seed << 40) + seed) * 0x9e3779b97f4a7c15u;

	h ^= h >> 32;
	h *= 0xd6e8feb86659fd93u;
	return (struct hash){(uint32_t)(h >> 32), (uint32_t)h};
}

static int below(uint32_t h, int bound)
{
	return (int)((uint64_t)h * (uint64_t)bound >> 32);
}

static double base_of(const struct rule *r, struct hash h)
{
	return below(h.base, 2 * r->base + 1) - r->base;
}

/* e: 1, -1, 2, -2, ... within the offset, round and round; pairs, so they add up to 0, with a 0 at
 * the end of an odd number of them. */
static double offset_of(const struct rule *r, int k)
{
	int pairs = r->givers / 2, size;

	if (r->offset == 0 || k >= 2 * pairs)
		return 0;
	size = k / 2 % r->offset + 1;
	return k % 2 ? -size : size;
}

static int largest_offset(const struct rule *r)
{
	int pairs = r->givers / 2;

	return pairs < r->offset ? pairs : r->offset;
}

/* The first place has a base that is not 0, the next are 2, the others 1 and -1 by turns. */
static double factor_of(struct hash h, int k)
{
	int base;

	if (k > FACTORS_OF_TWO)
		return k % 2 ? 1 : -1;
	if (k > 0)
		return 2;
	base = below(h.base, 6) - 3;
	return base >= 0 ? base + 1 : base;
}

static double input(const struct rule *r, int rank, size_t index)
{
	struct hash h = hash_of(r->x->seed, index);
	int k = rank + below(h.turn, r->x->ranks);
	double value;

	if (k >= r->x->ranks)
		k -= r->x->ranks;
	if (r->x->op == GF_OP_PROD)
		return factor_of(h, k);
	value = k < r->givers ? base_of(r, h) + offset_of(r, k) : 0;
	return r->lossy ? value * ragged : value;
}

void gf_exact_fill(const struct gf_exact *x, int rank, void *data, size_t count)
{
	struct rule r = rule_of(x);
	size_t i;

	for (i = 0; i < count; i++)
		gf_exact_store(x->dtype, data, i, input(&r, rank, i));
}

/* --- results --------------------------------------------------------------
 */

static double product(int ranks, struct hash h)
{
	double total = 1;
	int k;

	for (k = 0; k < ranks; k++)
		total *= factor_of(h, k);
	return total;
}

static double expected(const struct rule *r, size_t index)
{
	struct hash h = hash_of(r->x->seed, index);
	double base = base_of(r, h), extreme = largest_offset(r);
	bool all = r->givers == r->x->ranks;
	double scale = r->lossy ? ragged : 1;

	switch (r->x->op) {
	case GF_OP_SUM:
		return scale * r->givers * base;
	case GF_OP_AVG:
		return scale * r->givers * base / r->x->ranks;
	case GF_OP_MAX:
		base += extreme;
		return scale * (all ? base : fmax(base, 0));
	case GF_OP_MIN:
		base -= extreme;
		return scale * (all ? base : fmin(base, 0));
	case GF_OP_PROD:
		return product(r->x->ranks, h);
	}
	return NAN;
}

/* How far off a result may be, or that rank's contribution. */
static double allowance(const struct rule *r, int rank, size_t index, double want)
{
	const struct gf_exact *x = r->x;
	const int givers = rank < 0 ? r->givers : 1;
	const int encodings = rank < 0 ? 2 * x->ranks : 1;
	bool even = (x->ranks & (x->ranks - 1)) == 0;
	double magnitudes;

	if (r->lossy) {
		double base =
			x->codec->block_elems ? r->base : fabs(base_of(r, hash_of(x->seed, index)));

		/* f32 itself rounds such inputs, once more at each sum */
		magnitudes = ragged * givers * (base + largest_offset(r));
		if (x->op == GF_OP_AVG)
			magnitudes /= x->ranks;
		return encodings * (x->codec->error + 0x1p-23) * magnitudes;
	}
	if (x->op != GF_OP_AVG || (even && r->givers == x->ranks))
		return 0;
	return x->dtype == GF_I32 ? 1 : fabs(want) * units[x->dtype];
}

size_t gf_exact_wrong(const struct gf_exact *x, int rank, const void *data, size_t first,
		      size_t count)
{
	struct rule r = rule_of(x);
	size_t i, wrong = 0;

	for (i = first; i < first + count; i++) {
		double want = rank < 0 ? expected(&r, i) : input(&r, rank, i);
		double off = fabs(gf_exact_load(x->dtype, data, i) - want);

		/* NaN is wrong, too */
		wrong += !(off == 0 || off <= allowance(&r, rank, i, want));
	}
	return wrong;
}
