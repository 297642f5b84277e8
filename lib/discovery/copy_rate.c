/* SPDX-License-Identifier: BSD-3-Clause */
#include "discovery/discovery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Beyond the last-level cache of a core's share, yet quick to copy. */
static const size_t buffer_bytes = (size_t)64 << 20;
enum { ROUNDS = 5 };

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int gf_discover_copy_rate(double *bytes_per_s, struct gf_error *err)
{
	/* A copy that the compiler could see to be unused would vanish. */
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;
	double elapsed[ROUNDS];
	char *from = malloc(buffer_bytes), *to = malloc(buffer_bytes);
	int i, rc = 0;

	if (!from || !to) {
		rc = gf_error_set(err, -ENOMEM, "no memory for two buffers of %zu bytes",
				  buffer_bytes);
		goto out;
	}
	memset(from, 1, buffer_bytes);
	copy(to, from, buffer_bytes); /* touches every page of both */
	for (i = 0; i < ROUNDS; i++) {
		double start = gf_clock_s();

		copy(to, from, buffer_bytes);
		elapsed[i] = gf_clock_s() - start;
	}
	qsort(elapsed, ROUNDS, sizeof(*elapsed), ascending);
	*bytes_per_s = (double)buffer_bytes / elapsed[ROUNDS / 2];
out:
	free(from);
	free(to);
	return rc;
}
