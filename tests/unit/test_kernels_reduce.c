/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <stdint.h>

#include "base/array.h"
#include "base/rng.h"
#include "gf_kernels.h"

/*
 * Reductions of every type and operation: known values, that they commute to the last bit (partners
 * that exchange must agree), and each set against ref bit for bit.
 */
#define MAX   3000
#define GUARD 0xa5

static const size_t sizes[] = {0,  1,  2,  3,   7,   8,    15,   16,   17,
			       31, 33, 63, 129, 255, 1023, 1024, 1025, 2999};

static struct gf_rng rng;

static void set(enum gf_dtype dtype, void *at, double value)
{
	float f32 = (float)value;
	int32_t i32 = (int32_t)value;

	switch (dtype) {
	case GF_F32:
		memcpy(at, &f32, sizeof(f32));
		break;
	case GF_F64:
		memcpy(at, &value, sizeof(value));
		break;
	case GF_F16:
		gf_kernels()->codecs[GF_CODEC_F16].encode(at, &f32, 1, 0);
		break;
	case GF_BF16:
		gf_kernels()->codecs[GF_CODEC_BF16].encode(at, &f32, 1, 0);
		break;
	case GF_I32:
		memcpy(at, &i32, sizeof(i32));
		break;
	}
}

/* --- known values -------------------------------------------------------- */

static const struct {
	enum gf_op op;
	double a, b, want;
	int floats; /* not of integers */
} known[] = {
	{GF_OP_SUM, 3, -5, -2, 0},
	{GF_OP_AVG, 3, -5, -2, 0},
	{GF_OP_PROD, 3, -5, -15, 0},
	{GF_OP_MAX, 3, -5, 3, 0},
	{GF_OP_MAX, -5, 3, 3, 0},
	{GF_OP_MIN, 3, -5, -5, 0},
	{GF_OP_MIN, -5, 3, -5, 0},
	{GF_OP_SUM, 0.5, 0.25, 0.75, 1},
	{GF_OP_PROD, 0.5, 0.25, 0.125, 1},
	{GF_OP_MAX, INFINITY, 1, INFINITY, 1},
	{GF_OP_MIN, -INFINITY, 1, -INFINITY, 1},
	{GF_OP_MAX, -0.0, 0.0, 0.0, 1},
	{GF_OP_MAX, 0.0, -0.0, 0.0, 1},
	{GF_OP_MIN, -0.0, 0.0, -0.0, 1},
	{GF_OP_MIN, 0.0, -0.0, -0.0, 1},
	{GF_OP_MAX, -0.0, -0.0, -0.0, 1},
	{GF_OP_MAX, -2, -2, -2, 1},
	{GF_OP_MAX, NAN, 1, NAN, 1},
	{GF_OP_MAX, 1, NAN, NAN, 1},
	{GF_OP_MIN, NAN, 1, NAN, 1},
	{GF_OP_MIN, 1, NAN, NAN, 1},
};

static void test_known(const struct gf_kernels *k)
{
	size_t i;
	int dtype;

	for (i = 0; i < GF_ARRAY_LENGTH(known); i++)
		for (dtype = 0; dtype < GF_DTYPES; dtype++) {
			unsigned char a[8], b[8], want[8];

			if (known[i].floats && dtype == GF_I32)
				continue;
			set(dtype, a, known[i].a);
			set(dtype, b, known[i].b);
			set(dtype, want, known[i].want);
			k->reduce[dtype][known[i].op](a, b, 1);
			EXPECT(!memcmp(a, want, gf_dtype_bytes(dtype)), "%s: %s of %g and %g in %s",
			       k->name, gf_op_names[known[i].op], known[i].a, known[i].b,
			       gf_dtype_names[dtype]);
		}
}

static void test_divide(const struct gf_kernels *k)
{
	static const struct {
		double value, want, whole;
	} cases[] = {{6, 2, 2}, {-6, -2, -2}, {1.5, 0.5, 0}, {-7.5, -2.5, -2}};
	size_t i;
	int dtype;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		for (dtype = 0; dtype < GF_DTYPES; dtype++) {
			unsigned char a[8], want[8];

			set(dtype, a, cases[i].value);
			set(dtype, want, dtype == GF_I32 ? cases[i].whole : cases[i].want);
			k->divide[dtype](a, 1, 3);
			EXPECT(!memcmp(a, want, gf_dtype_bytes(dtype)), "%s: %g / 3 in %s", k->name,
			       cases[i].value, gf_dtype_names[dtype]);
		}
}

/* i32 wraps round; f16 overflows to infinity, and is rounded once. */
static void test_edges(const struct gf_kernels *k)
{
	int32_t a = INT32_MAX, b = 1;
	uint16_t h[2] = {0x7bff, 0x6800}, one[2] = {0x7bff, 0x3c00};

	k->reduce[GF_I32][GF_OP_SUM](&a, &b, 1);
	EXPECT(a == INT32_MIN, "%d", a);
	/* 65504 + 65504; 2048 + 1 is half way to 2050: even */
	k->reduce[GF_F16][GF_OP_SUM](h, one, 2);
	EXPECT(h[0] == 0x7c00 && h[1] == 0x6800, "%x %x", h[0], h[1]);
}

/* --- sets ---------------------------------------------------------------- */

/* Ordinary numbers, with zeros of both signs and infinities between; one NaN at most meets a
 * number. */
static void draw(enum gf_dtype dtype, unsigned char *at, int nans)
{
	static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY};
	size_t i;

	for (i = 0; i < MAX; i++) {
		double x = gf_rng_normal(&rng) * 100;
		uint64_t dice = gf_rng_below(&rng, 16);

		if (dtype != GF_I32 && dice < 4)
			x = odd[dice];
		if (dtype != GF_I32 && dice == 5 && nans)
			x = NAN;
		set(dtype, at + i * gf_dtype_bytes(dtype), x);
	}
}

static void test_set(const struct gf_kernels *ref, const struct gf_kernels *k, enum gf_dtype dtype,
		     enum gf_op op)
{
	static unsigned char y[MAX * 8 + 1], x[MAX * 8 + 1], want[MAX * 8 + 1], other[MAX * 8 + 1];
	size_t i, bytes;

	for (i = 0; i < GF_ARRAY_LENGTH(sizes); i++) {
		bytes = sizes[i] * gf_dtype_bytes(dtype);
		draw(dtype, y, 0);
		draw(dtype, x, op == GF_OP_MAX || op == GF_OP_MIN);
		y[bytes] = x[bytes] = GUARD;
		memcpy(want, y, sizeof(y));
		memcpy(other, x, sizeof(x));
		ref->reduce[dtype][op](want, x, sizes[i]);
		k->reduce[dtype][op](other, y, sizes[i]);
		EXPECT(!memcmp(other, want, bytes), "%s: %s of %s does not commute, n = %zu",
		       k->name, gf_op_names[op], gf_dtype_names[dtype], sizes[i]);
		k->reduce[dtype][op](y, x, sizes[i]);
		EXPECT(!memcmp(y, want, bytes) && y[bytes] == GUARD, "%s: %s of %s, n = %zu",
		       k->name, gf_op_names[op], gf_dtype_names[dtype], sizes[i]);
		ref->divide[dtype](want, sizes[i], 7);
		k->divide[dtype](y, sizes[i], 7);
		EXPECT(!memcmp(y, want, bytes) && y[bytes] == GUARD, "%s: division of %s, n = %zu",
		       k->name, gf_dtype_names[dtype], sizes[i]);
	}
}

int main(void)
{
	static const char *const names[] = {"ref", "avx2", "avx512"};
	const struct gf_kernels *ref = gf_kernels_named("ref"), *k;
	size_t s;
	int dtype, op;

	gf_rng_init(&rng, 1, 0);
	for (s = 0; s < GF_ARRAY_LENGTH(names); s++) {
		k = gf_kernels_named(names[s]);
		if (!k) {
			printf("this machine has no %s\n", names[s]);
			continue;
		}
		test_known(k);
		test_divide(k);
		test_edges(k);
		for (dtype = 0; dtype < GF_DTYPES; dtype++)
			for (op = 0; op < GF_OPS; op++)
				test_set(ref, k, (enum gf_dtype)dtype, (enum gf_op)op);
	}
	return TEST_END();
}
