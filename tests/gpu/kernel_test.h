/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_KERNEL_TEST_H
#define GF_TESTS_GPU_KERNEL_TEST_H

#include <stdint.h>

#include "../unit/test.h"
#include "base/array.h"
#include "base/heap.h"
#include "base/rng.h"
#include "gf_gpu_kernels.h"
#include "gf_kernels.h"
#include "memory.h"

/* A copy on the device, `offset` bytes after an aligned address. */
static inline void *put(const void *from, size_t size_bytes, size_t offset)
{
	char *p = device_alloc(size_bytes + offset);

	device_write(p + offset, from, size_bytes);
	return p + offset;
}

/* Random numbers, among them now and then what is special. */
static inline float *draw_floats(struct gf_rng *rng, size_t n, int special)
{
	static const float values[] = {NAN,        -NAN,     INFINITY, -INFINITY, 0x1p-149f,
				       -0x1p-140f, -0.0f,    0.0f,     65520.0f,  65519.0f,
				       0x1p-25f,   0x1p-24f, 3.4e38f,  1e-37f};
	float *x = gf_xcalloc(n + 1, sizeof(*x));

	for (size_t i = 0; i < n; i++) {
		x[i] = (float)gf_rng_normal(rng);
		if (special && gf_rng_below(rng, 8) == 0)
			x[i] = values[gf_rng_below(rng, GF_ARRAY_LENGTH(values))];
	}
	return x;
}

/* The first element that differs, n if none does: bits, but one NaN is as good as another. */
static inline size_t differs_f32(const float *want, const float *on_device, size_t n)
{
	float *got = gf_xcalloc(n + 1, sizeof(*got));
	size_t i;

	device_read(got, on_device, n * sizeof(*got));
	for (i = 0; i < n; i++)
		if (memcmp(&got[i], &want[i], sizeof(*got)) != 0 &&
		    !(isnan(got[i]) && isnan(want[i])))
			break;
	free(got);
	return i;
}

static inline size_t differs_bytes(const void *want, const void *on_device, size_t size_bytes)
{
	unsigned char *got = gf_xcalloc(size_bytes + 1, 1);
	size_t i;

	device_read(got, on_device, size_bytes);
	for (i = 0; i < size_bytes; i++)
		if (got[i] != ((const unsigned char *)want)[i])
			break;
	free(got);
	return i;
}

/* Ends a case: nothing was written past an end, everything is freed. */
static inline void done(const char *name, size_t n)
{
	const char *bad = device_check();

	EXPECT(!bad, "%s, n=%zu: %s", name, n, bad);
	device_reset();
}

#endif
