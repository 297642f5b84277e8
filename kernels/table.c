/* SPDX-License-Identifier: BSD-3-Clause */
#include "gf_kernels.h"

#include <pthread.h>
#include <string.h>

#include "sets.h"

/*
 * To add a kernel: plain C in ref/, a pointer in gf_kernels.h, a line below; where vectors pay,
 * x86/NAME_avx2.c or _avx512.c (the ending chooses the compiler's flags) and its line. A loop of
 * which the compiler makes vectors is written once, in a header that all sets include
 * (vectorise.h, once.h). Tests compare every set with ref. For GPUs: a pointer in gf_gpu_kernels.h,
 * cuda/NAME.cu, its name in cuda/sets.h, a case in tests/gpu, which make check runs
 * on an emulated GPU (tests/gpu/emulate.h).
 *
 * Sets from the plainest to the best. Each is the one before it with some entries replaced, so none
 * has a hole.
 */
struct set {
	const char *name;
	int (*runs_here)(void);
	void (*const *fill)(struct gf_kernels *k); /* NULL-terminated */
};

static int always(void)
{
	return 1;
}

static void (*const ref[])(struct gf_kernels *k) = {
	gf_kernels_fill_once_ref,    gf_kernels_fill_reduce_ref,
	gf_kernels_fill_half_ref,    gf_kernels_fill_minifloat_ref,
	gf_kernels_fill_topk_ref,    gf_kernels_fill_sparse_ref,
	gf_kernels_fill_indices_ref, NULL,
};

#if defined(__x86_64__)
static int has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	       __builtin_cpu_supports("f16c");
}

static int has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512dq");
}

static void (*const avx2[])(struct gf_kernels *k) = {
	gf_kernels_fill_once_avx2,
	gf_kernels_fill_half_avx2,
	gf_kernels_fill_minifloat_avx2,
	gf_kernels_fill_topk_avx2,
	NULL,
};

static void (*const avx512[])(struct gf_kernels *k) = {
	gf_kernels_fill_once_avx512,
	gf_kernels_fill_minifloat_avx512,
	gf_kernels_fill_topk_avx512,
	NULL,
};
#endif

static const struct set sets[] = {
	{"ref", always, ref},
#if defined(__x86_64__)
	{"avx2", has_avx2, avx2},
	{"avx512", has_avx512, avx512},
#endif
};
#define NSETS (sizeof(sets) / sizeof(sets[0]))

/* Written once, under pthread_once, and constant from then on. */
static struct gf_kernels tables[NSETS];
static size_t ntables;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
	for (size_t i = 0; i < NSETS && sets[i].runs_here(); i++) {
		if (i > 0)
			tables[i] = tables[i - 1];
		tables[i].name = sets[i].name;
		for (size_t f = 0; sets[i].fill[f]; f++)
			sets[i].fill[f](&tables[i]);
		ntables = i + 1;
	}
}

const struct gf_kernels *gf_kernels(void)
{
	pthread_once(&once, fill);
	return &tables[ntables - 1];
}

const struct gf_kernels *gf_kernels_named(const char *name)
{
	pthread_once(&once, fill);
	for (size_t i = 0; i < ntables; i++)
		if (strcmp(tables[i].name, name) == 0)
			return &tables[i];
	return NULL;
}
