/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/sum_error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/rng.h"
#include "profiler/contest/exact.h"

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
	size_t i;

	gf_rng_init(&rng, first, (uint64_t)rank);
	for (i = 0; i < end - first; i++)
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

static void look_at(const struct gf_comm *c, enum gf_dtype dtype, enum gf_op op, const void *data,
		    size_t first, size_t end, struct seen *seen)
{
	long double sums[BLOCK] = {0};
	double own[BLOCK]; /* as wide as any type */
	size_t i;
	int r;

	for (r = 0; r < c->ranks; r++) {
		fill_block(dtype, r, own, first, end);
		for (i = 0; i < end - first; i++)
			sums[i] += gf_exact_load(dtype, own, i);
	}
	for (i = 0; i < end - first; i++) {
		long double want = op == GF_OP_AVG ? sums[i] / c->ranks : sums[i];
		double off = (double)(gf_exact_load(dtype, data, first + i) - want);

		off = isfinite(off) ? fabs(off) : INFINITY;
		seen->errors += off * off;
		seen->sums += (double)(want * want);
		seen->most = fmax(seen->most, off);
	}
}

int gf_sum_error_measure(struct gf_comm *c, enum gf_dtype dtype, enum gf_op op, const void *data,
			 size_t count, struct gf_sum_error *error, struct gf_error *err)
{
	struct seen own = {0}, total = {0};
	struct seen *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	const size_t stride = (size_t)c->ranks * BLOCK;
	size_t first;
	int r, rc;

	for (first = (size_t)c->rank * BLOCK; first < count; first += stride)
		look_at(c, dtype, op, data, first, block_end(first, count), &own);
	rc = gf_comm_allgather(c, &own, sizeof(own), all, err);
	for (r = 0; r < c->ranks && rc == 0; r++) {
		total.errors += all[r].errors;
		total.sums += all[r].sums;
		total.most = fmax(total.most, all[r].most);
	}
	free(all);
	if (rc)
		return rc;
	error->rms = sqrt(total.errors / total.sums);
	error->max = total.most / sqrt(total.sums / (double)count);
	return 0;
}
