/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"
#include "base/rng.h"
#include "collectives/schedule.h"
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
	return isnan(value) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
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

	for (size_t i = 0; i < count; i++)
		gf_exact_store(x->dtype, data, i, input(&r, rank, i));
}

/* --- results --------------------------------------------------------------
 */

static double product(int ranks, struct hash h)
{
	double total = 1;

	for (int k = 0; k < ranks; k++)
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

/* Elements in a block, which has a stream of random numbers of its own on each rank: a rank looks
 * at every ranks-th block. */
enum { BLOCK = 1024 };

int gf_sum_error_check(enum gf_dtype dtype, enum gf_op op, struct gf_error *err)
{
	if (dtype != GF_I32 && (op == GF_OP_SUM || op == GF_OP_AVG))
		return 0;
	return gf_error_set(err, -EINVAL, "want sum or avg of f32, f64, f16 or bf16, got %s of %s",
			    gf_op_names[op], gf_dtype_names[dtype]);
}

static size_t block_end(size_t first, size_t count)
{
	return count - first < BLOCK ? count : first + BLOCK;
}

/* Elements first to end of a rank's contribution, at data. */
static void fill_block(enum gf_dtype dtype, int rank, void *data, size_t first, size_t end)
{
	struct gf_rng rng;

	gf_rng_init(&rng, first, (uint64_t)rank);
	for (size_t i = 0; i < end - first; i++)
		gf_exact_store(dtype, data, i, gf_rng_normal(&rng));
}

void gf_sum_error_fill(enum gf_dtype dtype, int rank, void *data, size_t count)
{
	size_t first, end;

	for (first = 0; first < count; first = end) {
		end = block_end(first, count);
		fill_block(dtype, rank, (char *)data + first * gf_dtype_bytes(dtype), first, end);
	}
}

/* What a rank has seen: sums of squares, and the largest magnitude. */
struct seen {
	double errors, sums, most;
};

/* What an element is looked at with. */
struct looking {
	const struct gf_comm *comm;
	enum gf_dtype dtype;
	enum gf_op op;
	const void *data;
	struct seen *seen;
};

/* At elements first to end, in the block that begins at `begin`. */
static void look_at(const struct looking *l, size_t begin, size_t first, size_t end)
{
	long double sums[BLOCK] = {0};
	double own[BLOCK]; /* as wide as any type */

	for (int r = 0; r < l->comm->ranks; r++) {
		fill_block(l->dtype, r, own, begin, end);
		for (size_t i = first; i < end; i++)
			sums[i - begin] += gf_exact_load(l->dtype, own, i - begin);
	}
	for (size_t i = first; i < end; i++) {
		long double sum = sums[i - begin];
		long double want = l->op == GF_OP_AVG ? sum / l->comm->ranks : sum;
		double off = (double)(gf_exact_load(l->dtype, l->data, i) - want);

		off = isfinite(off) ? fabs(off) : INFINITY;
		l->seen->errors += off * off;
		l->seen->sums += (double)(want * want);
		l->seen->most = fmax(l->seen->most, off);
	}
}

/* At every step-th block of a range, and of the first and the last what is in it. */
static void look_through(const struct looking *l, struct gf_range range, size_t step)
{
	const size_t end = range.first + range.count;
	size_t begin = range.first - range.first % BLOCK;

	for (; begin < end; begin += step * BLOCK)
		look_at(l, begin, begin > range.first ? begin : range.first, block_end(begin, end));
}

int gf_sum_error_measure(struct gf_comm *c, enum gf_dtype dtype, enum gf_op op, const void *data,
			 size_t count, size_t message, struct gf_sum_error *error,
			 struct gf_error *err)
{
	struct seen own = {0}, total = {0};
	GF_FREED struct seen *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	const struct looking l = {c, dtype, op, data, &own};
	size_t at = (size_t)c->rank * BLOCK;
	int r, rc;

	if (!message && at < count)
		look_through(&l, gf_data(at, count - at), (size_t)c->ranks);
	for (at = 0; message && at < count; at += message)
		look_through(&l, gf_range_part(gf_data(at, message), c->ranks, c->rank), 1);
	rc = gf_comm_allgather(c, &own, sizeof(own), all, err);
	for (r = 0; r < c->ranks && rc == 0; r++) {
		total.errors += all[r].errors;
		total.sums += all[r].sums;
		total.most = fmax(total.most, all[r].most);
	}
	if (rc)
		return rc;
	error->rms = sqrt(total.errors / total.sums);
	error->max = total.most / sqrt(total.sums / (double)count);
	return 0;
}
