/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "gf_kernels.h"

/*
 * kernels [NTH_ELEMENT]: every kernel of every set, on arrays far larger than the caches, as a
 * share of what a plain copy moves in the same run (STREAM's way to count: bytes read and written,
 * without what a write first reads). Copies are taken between all others, so that a machine that is
 * slow for a while is slow for both; of each the best of its rounds counts.
 *
 * Below that exact top-k against qsort and, if the path of a library with nth_element.cc is given,
 * against C++'s nth_element.
 */
#define COUNT     ((size_t)25 << 20)
#define ROUNDS    5
#define BLOCK     1024 /* of q8 */
#define FP8_BLOCK 128
#define FP4_BLOCK 32
#define CHUNK     32000 /* of CSC: every second one is gathered */
#define DENSITY   0.001

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

static void scale(const struct gf_kernels *k)
{
	k->scale_f32(0.5f, x, y, COUNT);
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
	k->codecs[GF_CODEC_F16].encode(half, x, COUNT, 0);
}

static void f16_decode(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_F16].decode(y, half, COUNT, 0);
}

static void f16_decode_add(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_F16].decode_add(y, half, COUNT, 0);
}

static void bf16_encode(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_BF16].encode(half, x, COUNT, 0);
}

static void bf16_decode_add(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_BF16].decode_add(y, half, COUNT, 0);
}

static void trunc16_encode(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_TRUNC16].encode(half, x, COUNT, 0);
}

static void q8_encode(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_Q8].encode(wire, x, COUNT, BLOCK);
}

static void q8_decode_add(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_Q8].decode_add(y, wire, COUNT, BLOCK);
}

static void lars(const struct gf_kernels *k)
{
	sink = k->sum_squares_f32(y, COUNT);
	sink = k->sum_squares_f32(x, COUNT);
	sgd(k);
}

static void gather(const struct gf_kernels *k)
{
	(void)k;
	for (size_t at = 0; at + 2 * CHUNK <= COUNT; at += 2 * CHUNK)
		memcpy(y + at / 2, x + at, CHUNK * sizeof(*x));
}

static void scatter(const struct gf_kernels *k)
{
	(void)k;
	for (size_t at = 0; at + 2 * CHUNK <= COUNT; at += 2 * CHUNK)
		memcpy(y + at, x + at / 2, CHUNK * sizeof(*x));
}

static void bf16_decode(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_BF16].decode(y, half, COUNT, 0);
}

static void q8_decode(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_Q8].decode(y, wire, COUNT, BLOCK);
}

/* The residual taken up by the same pass that selects. */
static void topk_add(const struct gf_kernels *k)
{
	const struct gf_topk t = {y, x, COUNT, (size_t)(COUNT * DENSITY), index_of, scratch};

	k->topk_f32(&t);
}

static void take(const struct gf_kernels *k)
{
	k->take_f32(z, y, index_of, (size_t)(COUNT * DENSITY));
}

static void scatter_add(const struct gf_kernels *k)
{
	k->scatter_add_f32(y, z, index_of, (size_t)(COUNT * DENSITY));
}

static void topk(const struct gf_kernels *k)
{
	const struct gf_topk t = {x, NULL, COUNT, (size_t)(COUNT * DENSITY), index_of, scratch};

	k->topk_f32(&t);
}

static void fp8_encode(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_FP8].encode(wire, x, COUNT, FP8_BLOCK);
}

static void fp8_decode_add(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_FP8].decode_add(y, wire, COUNT, FP8_BLOCK);
}

static void fp4_encode(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_FP4].encode(wire, x, COUNT, FP4_BLOCK);
}

static void fp4_decode_add(const struct gf_kernels *k)
{
	k->codecs[GF_CODEC_FP4].decode_add(y, wire, COUNT, FP4_BLOCK);
}

enum kind { STREAMS, WAITS };

/* Kernels that wait for single words and not for streams are reported as times.
 */
static const struct {
	const char *name;
	void (*run)(const struct gf_kernels *k);
	double bytes; /* per element */
	enum kind kind;
} kernels[] = {
	{"add_f32", add, 12},
	{"scale_f32", scale, 8},
	{"axpby_f32", axpby, 12},
	{"sgd_f32", sgd, 20},
	{"lars (3 calls)", lars, 28},
	{"sum_abs_f32", sum_abs, 4},
	{"sum_squares_f32", sum_squares, 4},
	{"add_sum_abs_f32", add_sum_abs, 12},
	{"f16_encode", f16_encode, 6},
	{"f16_decode", f16_decode, 6},
	{"f16_decode_add", f16_decode_add, 10},
	{"bf16_encode", bf16_encode, 6},
	{"bf16_decode", bf16_decode, 6},
	{"bf16_decode_add", bf16_decode_add, 10},
	{"trunc16_encode", trunc16_encode, 6},
	{"q8_encode", q8_encode, 5},
	{"q8_decode", q8_decode, 5},
	{"q8_decode_add", q8_decode_add, 9},
	{"fp8_encode", fp8_encode, 5},
	{"fp8_decode_add", fp8_decode_add, 9},
	{"fp4_encode", fp4_encode, 4.5},
	{"fp4_decode_add", fp4_decode_add, 8.5},
	{"chunks gathered", gather, 4},
	{"chunks scattered", scatter, 4},
	{"topk_f32", topk, 4},
	{"topk_f32 + add", topk_add, 12},
	{"take_f32", take, 0, WAITS},
	{"scatter_add_f32", scatter_add, 0, WAITS},
};

#define NKERNELS GF_ARRAY_LENGTH(kernels)

static const char *const sets[] = {"ref", "avx2", "avx512"};
#define NSETS GF_ARRAY_LENGTH(sets)

static double copy_s = 1e9, kernel_s[NKERNELS][NSETS];

static double seconds(void (*run)(const struct gf_kernels *k), const struct gf_kernels *k)
{
	double start = gf_clock_s();

	run(k);
	return gf_clock_s() - start;
}

static void keep_best(double *best, double s)
{
	*best = s < *best ? s : *best;
}

static void measure_kernel(size_t i, size_t set, const struct gf_kernels *k)
{
	kernel_s[i][set] = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		keep_best(&copy_s, seconds(copy, k));
		keep_best(&kernel_s[i][set], seconds(kernels[i].run, k));
	}
}

static void print_kernels(void)
{
	double copied = COUNT * 8 / copy_s;

	printf("copy: %.2f GB/s, %zu values; shares of it\n%-18s", copied / 1e9, COUNT, "");
	for (size_t s = 0; s < NSETS; s++)
		printf("%10s", sets[s]);
	putchar('\n');
	for (size_t i = 0; i < NKERNELS; i++) {
		printf("%-18s", kernels[i].name);
		for (size_t s = 0; s < NSETS; s++) {
			double took = kernel_s[i][s];

			if (took == 0)
				printf("%10s", "-");
			else if (kernels[i].kind == WAITS)
				printf("%7.2f ms", 1e3 * took);
			else
				printf("%9.0f%%", 100 * COUNT * kernels[i].bytes / took / copied);
		}
		putchar('\n');
	}
}

static int larger_first(const void *a, const void *b)
{
	float p = *(const float *)a, q = *(const float *)b;

	p = p < 0 ? -p : p;
	q = q < 0 ? -q : q;
	return (p < q) - (p > q);
}

typedef void nth_element_fn(uint32_t *index, const float *values, size_t n, size_t k);

static nth_element_fn *load_nth_element(const char *path)
{
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	nth_element_fn *found = NULL;

	if (library)
		*(void **)&found = dlsym(library, "gf_bench_nth_element");
	return found;
}

/* In turns; sorting once is enough to see ten times. */
static void compare_topk(nth_element_fn *nth_element)
{
	double topk_s = 1e9, nth_s = 1e9, sort_s;

	for (int round = 0; round < ROUNDS; round++) {
		double start;

		keep_best(&topk_s, seconds(topk, gf_kernels()));
		start = gf_clock_s();
		if (nth_element)
			nth_element(scratch, x, COUNT, (size_t)(COUNT * DENSITY));
		keep_best(&nth_s, gf_clock_s() - start);
	}
	memcpy(y, x, COUNT * sizeof(*x));
	sort_s = gf_clock_s();
	qsort(y, COUNT, sizeof(*y), larger_first);
	sort_s = gf_clock_s() - sort_s;
	printf("\nthe largest %g of %zu values: %.4f s; qsort takes %.0f times as long, ", DENSITY,
	       COUNT, topk_s, sort_s / topk_s);
	if (nth_element)
		printf("nth_element %.1f times\n", nth_s / topk_s);
	else
		printf("nth_element: skipped, no C++ library\n");
}

static void fill_arrays(void)
{
	struct gf_rng rng;

	x = gf_xmalloc(COUNT * sizeof(*x));
	y = gf_xcalloc(COUNT, sizeof(*y));
	z = gf_xcalloc(COUNT, sizeof(*z));
	half = gf_xcalloc(COUNT, sizeof(*half));
	wire = gf_xcalloc(COUNT / FP8_BLOCK, FP8_BLOCK + 1);
	index_of = gf_xcalloc(COUNT, sizeof(*index_of));
	scratch = gf_xcalloc(2 * COUNT, sizeof(*scratch));
	gf_rng_init(&rng, 1, 0);
	for (size_t i = 0; i < COUNT; i++)
		x[i] = (float)gf_rng_normal(&rng);
}

int main(int argc, char **argv)
{
	fill_arrays();
	for (size_t i = 0; i < NKERNELS; i++)
		for (size_t s = 0; s < NSETS; s++) {
			const struct gf_kernels *k = gf_kernels_named(sets[s]);

			if (k)
				measure_kernel(i, s, k);
		}
	print_kernels();
	compare_topk(load_nth_element(argc > 1 ? argv[1] : NULL));
	free(x);
	free(y);
	free(z);
	free(half);
	free(wire);
	free(index_of);
	free(scratch);
	return 0;
}
