/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/contest/sum_error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/heap.h"
#include "base/rng.h"
#include "collectives/schedule.h"
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

/* What an element is looked at with. */
struct looking {
	const struct gf_comm *comm;
	enum gf_dtype dtype;
	enum gf_op op;
	const void *data;
	struct seen *seen;
};

/* At elements first to end, in the block that begins at `begin`. */
static void look_at(const struct looking *l, size_t begin, size_t first, size_t end)
{
	long double sums[BLOCK] = {0};
	double own[BLOCK]; /* as wide as any type */
	size_t i;
	int r;

	for (r = 0; r < l->comm->ranks; r++) {
		fill_block(l->dtype, r, own, begin, end);
		for (i = first; i < end; i++)
			sums[i - begin] += gf_exact_load(l->dtype, own, i - begin);
	}
	for (i = first; i < end; i++) {
		long double sum = sums[i - begin];
		long double want = l->op == GF_OP_AVG ? sum / l->comm->ranks : sum;
		double off = (double)(gf_exact_load(l->dtype, l->data, i) - want);

		off = isfinite(off) ? fabs(off) : INFINITY;
		l->seen->errors += off * off;
		l->seen->sums += (double)(want * want);
		l->seen->most = fmax(l->seen->most, off);
	}
}

/* At every step-th block of a range, and of the first and the last what is in it. */
static void look_through(const struct looking *l, struct gf_range range, size_t step)
{
	const size_t end = range.first + range.count;
	size_t begin = range.first - range.first % BLOCK;

	for (; begin < end; begin += step * BLOCK)
		look_at(l, begin, begin > range.first ? begin : range.first, block_end(begin, end));
}

int gf_sum_error_measure(struct gf_comm *c, enum gf_dtype dtype, enum gf_op op, const void *data,
			 size_t count, size_t message, struct gf_sum_error *error,
			 struct gf_error *err)
{
	struct seen own = {0}, total = {0};
	struct seen *all = gf_xcalloc((size_t)c->ranks, sizeof(*all));
	const struct looking l = {c, dtype, op, data, &own};
	size_t at = (size_t)c->rank * BLOCK;
	int r, rc;

	if (!message && at < count)
		look_through(&l, gf_data(at, count - at), (size_t)c->ranks);
	for (at = 0; message && at < count; at += message)
		look_through(&l, gf_range_part(gf_data(at, message), c->ranks, c->rank), 1);
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
