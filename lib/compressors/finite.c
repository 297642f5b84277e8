/* SPDX-License-Identifier: BSD-3-Clause */
#include "compressors/select_parts.h"

#include <math.h>

#include "gf_kernels.h"

/* A block that is summed once more, element by element, is still in cache. */
#define BLOCK ((size_t)8192)

size_t gf_finite_prefix(const float *values, size_t count)
{
	size_t first, n, i;

	for (first = 0; first < count; first += n) {
		n = count - first < BLOCK ? count - first : BLOCK;
		if (isfinite(gf_kernels()->sum_abs_f32(values + first, n)))
			continue;
		/* Large finite numbers may have an infinite sum. */
		for (i = first; i < first + n; i++)
			if (!isfinite(values[i]))
				return i;
	}
	return count;
}
