/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "gf_kernels.h"

/*
 * Every kernel of every set, on arrays far larger than the caches, as a share
 * of what a plain copy moves in the same run (bytes read and written). Below
 * it exact top-k against sorting.
 */
#define COUNT   ((size_t)16 << 20)
#define ROUNDS  5
#define BLOCK   1024 /* of q8 */
#define DENSITY 0.001

static float *x, *y, *z;
static uint16_t *half;
static uint8_t *wire;
static uint32_t *index_of, *scratch;
static volatile double sink;

static void copy(const struct gf_kernels *k)
{
	(void)k;
	memcpy(y, x, COUNT * sizeof(*x));
}

static void add(const struct gf_kernels *k)
{
	k->add_f32(y, x, COUNT);
}

static void axpby(const struct gf_kernels *k)
{
	k->axpby_f32(0.5f, x, 0.5f, y, COUNT);
}

static void sgd(const struct gf_kernels *k)
{
	const struct gf_sgd_step o = {0.01f, 0.9f, 1e-4f, 0.5f, 0};

	k->sgd_f32(&o, x, y, z, COUNT);
}

static void sum_abs(const struct gf_kernels *k)
{
	sink = k->sum_abs_f32(x, COUNT);
}

static void sum_squares(const struct gf_kernels *k)
{
	sink = k->sum_squares_f32(x, COUNT);
}

static void add_sum_abs(const struct gf_kernels *k)
{
	sink = k->add_sum_abs_f32(y, x, COUNT);
}

static void f16_encode(const struct gf_kernels *k)
{
	k->f16_encode(half, x, COUNT);
}

static void f16_decode(const struct gf_kernels *k)
{
	k->f16_decode(y, half, COUNT);
}

static void f16_decode_add(const struct gf_kernels *k)
{
	k->f16_decode_add(y, half, COUNT);
}

static void bf16_encode(const struct gf_kernels *k)
{
	k->bf16_encode(half, x, COUNT);
}

static void bf16_decode_add(const struct gf_kernels *k)
{
	k->bf16_decode_add(y, half, COUNT);
}

static void trunc16_encode(const struct gf_kernels *k)
{
	k->trunc16_encode(half, x, COUNT);
}

static void q8_encode(const struct gf_kernels *k)
{
	for (size_t i = 0; i < COUNT / BLOCK; i++)
		k->q8_encode(wire + i * (BLOCK + 4), x + i * BLOCK, BLOCK);
}

static void q8_decode_add(const struct gf_kernels *k)
{
	for (size_t i = 0; i < COUNT / BLOCK; i++)
		k->q8_decode_add(y + i * BLOCK, wire + i * (BLOCK + 4), BLOCK);
}

static void topk(const struct gf_kernels *k)
{
	const struct gf_topk t = {
		x, NULL, COUNT, (size_t)(COUNT * DENSITY), index_of, scratch};

	k->topk_f32(&t);
}

static const struct {
	const char *name;
	void (*run)(const struct gf_kernels *k);
	double bytes; /* per element */
} kernels[] = {
	{"add_f32", add, 12},
	{"axpby_f32", axpby, 12},
	{"sgd_f32", sgd, 20},
	{"sum_abs_f32", sum_abs, 4},
	{"sum_squares_f32", sum_squares, 4},
	{"add_sum_abs_f32", add_sum_abs, 12},
	{"f16_encode", f16_encode, 6},
	{"f16_decode", f16_decode, 6},
	{"f16_decode_add", f16_decode_add, 10},
	{"bf16_encode", bf16_encode, 6},
	{"bf16_decode_add", bf16_decode_add, 10},
	{"trunc16_encode", trunc16_encode, 6},
	{"q8_encode", q8_encode, 5},
	{"q8_decode_add", q8_decode_add, 9},
	{"topk_f32", topk, 4},
};

static double best_time(void (*run)(const struct gf_kernels *k),
			const struct gf_kernels *k)
{
	double best = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double start = gf_clock_s();

		run(k);
		start = gf_clock_s() - start;
		best = start < best ? start : best;
	}
	return best;
}

static int larger_first(const void *a, const void *b)
{
	float p = *(const float *)a, q = *(const float *)b;

	p = p < 0 ? -p : p;
	q = q < 0 ? -q : q;
	return (p < q) - (p > q);
}

static void compare_topk(void)
{
	double select_s = best_time(topk, gf_kernels()), sort_s;

	memcpy(y, x, COUNT * sizeof(*x));
	sort_s = gf_clock_s();
	qsort(y, COUNT, sizeof(*y), larger_first);
	sort_s = gf_clock_s() - sort_s;
	printf("\nthe largest %g of %zu values: %.4f s; qsort takes %.0f times "
	       "as long\n",
	       DENSITY, COUNT, select_s, sort_s / select_s);
}

int main(void)
{
	static const char *const sets[] = {"ref", "avx2", "avx512"};
	struct gf_rng rng;
	double copied;

	x = gf_xmalloc(COUNT * sizeof(*x));
	y = gf_xcalloc(COUNT, sizeof(*y));
	z = gf_xcalloc(COUNT, sizeof(*z));
	half = gf_xcalloc(COUNT, sizeof(*half));
	wire = gf_xcalloc(COUNT / BLOCK, BLOCK + 4);
	index_of = gf_xcalloc(COUNT, sizeof(*index_of));
	scratch = gf_xcalloc(2 * COUNT, sizeof(*scratch));
	gf_rng_init(&rng, 1, 0);
	for (size_t i = 0; i < COUNT; i++)
		x[i] = (float)gf_rng_normal(&rng);

	copied = COUNT * 8 / best_time(copy, NULL);
	printf("copy: %.2f GB/s\n%-16s", copied / 1e9, "share of it");
	for (size_t s = 0; s < GF_ARRAY_LENGTH(sets); s++)
		printf("%10s", sets[s]);
	putchar('\n');
	for (size_t i = 0; i < GF_ARRAY_LENGTH(kernels); i++) {
		printf("%-16s", kernels[i].name);
		for (size_t s = 0; s < GF_ARRAY_LENGTH(sets); s++) {
			const struct gf_kernels *k = gf_kernels_named(sets[s]);

			if (!k)
				printf("%10s", "-");
			else
				printf("%9.0f%%",
				       100 * COUNT * kernels[i].bytes /
					       best_time(kernels[i].run, k) /
					       copied);
		}
		putchar('\n');
	}
	compare_topk();
	free(x);
	free(y);
	free(z);
	free(half);
	free(wire);
	free(index_of);
	free(scratch);
	return 0;
}
