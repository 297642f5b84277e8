/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/contention.h"

#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "bench/stat.h"

enum { SIZES = 3 };
static const size_t smallest_bytes = (size_t)64 << 10;
/* Where memory for several messages of that size is still a small thing. */
static const size_t largest_bytes = (size_t)64 << 20;

/* n messages on n lanes. */
static int sit(const struct gf_bench_network *c, const char *algorithm,
	       size_t bytes, int n, struct gf_bench_samples *samples,
	       struct gf_error *err)
{
	struct gf_bench_budget budget = gf_bench_round(&c->budget);
	struct gf_bench_exchange_config config = {
		.comm = c->comm,
		.algorithm = algorithm,
		.count_elems = bytes / 4,
		.messages = n,
		.lanes = n,
		.timeout_s = c->timeout_s,
	};

	return gf_bench_exchange_sitting(&config, &budget, samples, err);
}

static int measure_size(const struct gf_bench_network *c,
			const struct gf_allreduce_cost *cost, size_t bytes,
			struct gf_contention_entry *entry, struct gf_error *err)
{
	struct gf_bench_samples *samples =
		gf_xcalloc((size_t)c->lanes, sizeof(*samples));
	double drain = cost->per_byte_s * (double)bytes, alone = 0;
	int round, n, rc = 0;

	for (round = 0; round < GF_BENCH_ROUNDS; round++)
		for (n = 1; n <= c->lanes && rc == 0; n++)
			rc = sit(c, cost->algorithm, bytes, n, &samples[n - 1],
				 err);
	entry->size_bytes = bytes;
	entry->gamma = gf_xcalloc((size_t)c->lanes, sizeof(*entry->gamma));
	entry->ngamma = (size_t)c->lanes;
	entry->gamma[0] = 1;
	for (n = 1; n <= c->lanes; n++) {
		struct gf_bench_samples *s = &samples[n - 1];
		double time = rc == 0 ? gf_stat_median(s->values, s->count) : 0;

		if (n == 1)
			alone = time;
		else /* noise must not make company faster than being alone */
			entry->gamma[n - 1] = fmax(entry->gamma[n - 2],
						   1 + (time - alone) / drain);
		gf_bench_samples_release(s);
	}
	free(samples);
	return rc;
}

/* Up to SIZES of them, a factor of 4 or more apart, largest last. */
static size_t choose_sizes(const struct gf_bench_network *c,
			   const struct gf_allreduce_cost *cost,
			   size_t sizes[SIZES])
{
	double low = fmax((double)smallest_bytes,
			  2 * cost->startup_s / cost->per_byte_s);
	double high = fmin((double)c->max_bytes, (double)largest_bytes);
	size_t count = 0, i;

	if (low > high)
		return 0;
	while (count < SIZES && low * pow(4, (double)count) <= high)
		count++;
	for (i = 0; i < count; i++) {
		double share = count > 1 ? (double)i / (double)(count - 1) : 1;

		sizes[i] = (size_t)(low * pow(high / low, share)) / 4 * 4;
	}
	return count;
}

int gf_bench_contention(const struct gf_bench_network *c,
			struct gf_allreduce_cost *cost, struct gf_error *err)
{
	size_t sizes[SIZES], count, i;
	struct gf_contention *table = &cost->contention;
	int rc = 0;

	if (!(cost->per_byte_s > 0))
		return 0;
	count = choose_sizes(c, cost, sizes);
	if (count == 0)
		return 0;
	table->entries = gf_xcalloc(count, sizeof(*table->entries));
	for (i = 0; i < count && rc == 0; i++) {
		rc = measure_size(c, cost, sizes[i], &table->entries[i], err);
		table->nentries++;
	}
	return rc;
}
