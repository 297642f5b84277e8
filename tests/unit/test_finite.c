/* SPDX-License-Identifier: BSD-3-Clause */
/* The first value that is not finite, within and between the blocks in which they are summed. */
#include <float.h>

#include "base/array.h"
#include "base/heap.h"
#include "compressors/select_parts.h"
#include "test.h"

int main(void)
{
	static const size_t counts[] = {0, 1, 7, 8191, 8192, 8193, 9000, 16384, 20001};
	static const float bad[] = {NAN, INFINITY, -INFINITY};
	size_t c, b, at, found;

	for (c = 0; c < GF_ARRAY_LENGTH(counts); c++) {
		const size_t n = counts[c];
		const size_t places[] = {0, n / 2, n > 8192 ? 8192 : 0, n - 1};
		/* the values after it belong to no case, and are seen if they are read */
		float *x = gf_xcalloc(n + 2, sizeof(*x));

		x[n + 1] = NAN;
		EXPECT(gf_finite_prefix(x, n) == n, "%zu zeros", n);
		/* finite, and their sum is not */
		for (at = 0; at < n; at++)
			x[at] = FLT_MAX;
		EXPECT(gf_finite_prefix(x, n) == n, "%zu large ones", n);
		for (at = 0; at < GF_ARRAY_LENGTH(places) && n; at++)
			for (b = 0; b < GF_ARRAY_LENGTH(bad); b++) {
				x[places[at]] = bad[b];
				found = gf_finite_prefix(x, n);
				EXPECT(found == places[at], "%g at %zu of %zu: found at %zu",
				       (double)bad[b], places[at], n, found);
				x[places[at]] = 1;
			}
		free(x);
	}
	return TEST_END();
}
