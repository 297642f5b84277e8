/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/heap.h"
#include "choice.h"
#include "gf_kernels.h"

/*
 * Sums, top-k and what goes with sparse gradients: ref against plain definitions, each set against
 * ref.
 */
#define TOLERANCE_SUM 1e-5

/* --- sums ---------------------------------------------------------------- */

static const size_t sum_sizes[] = {0,  1,  7,    8,    15,   16,   17,   31,   32,   33,
				   63, 64, 1000, 4095, 4096, 4097, 4128, 8192, 20001};

/* As gf_kernels.h has it: per 4096 elements 32 lanes in f32, then f64. */
static double by_lanes(const float *x, size_t n, bool squares)
{
	double total = 0;

	for (size_t at = 0; at < n; at += 4096) {
		float lanes[32] = {0};

		for (size_t i = at; i < n && i < at + 4096; i++)
			lanes[i % 32] += squares ? x[i] * x[i] : fabsf(x[i]);
		for (size_t k = 0; k < 32; k++)
			total += lanes[k];
	}
	return total;
}

static void test_sums(const struct gf_kernels *ref, const struct gf_kernels *set, size_t n,
		      size_t o)
{
	static float x[20100], y[20100], z[20100];
	double absolute = 0, squares = 0, added = 0, want, got;

	for (size_t i = 0; i < n; i++) {
		x[o + i] = (float)gf_rng_normal(&rng);
		y[o + i] = z[o + i] = (float)gf_rng_normal(&rng);
		absolute += fabs(x[o + i]);
		squares += (double)x[o + i] * x[o + i];
		added += fabs((double)x[o + i] + y[o + i]);
	}
	y[o + n] = z[o + n] = 77;
	EXPECT_NEAR(set->sum_abs_f32(x + o, n), absolute, TOLERANCE_SUM, "%s: sum_abs, n=%zu",
		    set->name, n);
	EXPECT_NEAR(set->sum_squares_f32(x + o, n), squares, TOLERANCE_SUM,
		    "%s: sum_squares, n=%zu", set->name, n);
	EXPECT(set->sum_abs_f32(x + o, n) == by_lanes(x + o, n, false),
	       "%s: sum_abs, n=%zu: other bits", set->name, n);
	EXPECT(set->sum_squares_f32(x + o, n) == by_lanes(x + o, n, true),
	       "%s: sum_squares, n=%zu: other bits", set->name, n);
	want = ref->add_sum_abs_f32(y + o, x + o, n);
	got = set->add_sum_abs_f32(z + o, x + o, n);
	EXPECT(want == got && memcmp(y, z, sizeof(y)) == 0 && z[o + n] == 77,
	       "%s: add_sum_abs, n=%zu: other bits", set->name, n);
	EXPECT(got == by_lanes(y + o, n, false), "%s: add_sum_abs, n=%zu: other bits", set->name,
	       n);
	EXPECT_NEAR(got, added, TOLERANCE_SUM, "%s: add_sum_abs, n=%zu", set->name, n);
}

/* --- top-k --------------------------------------------------------------- */

static const struct {
	size_t count, k;
} amounts[] = {
	{1, 1},     {2, 1},       {5, 2},         {16, 16},       {33, 7},
	{1000, 1},  {1000, 999},  {8191, 100},    {8192, 8},      {8193, 8193},
	{30011, 1}, {30011, 100}, {30011, 20000}, {30011, 30010},
};

static const float *sort_by;

static int larger_first(const void *a, const void *b)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	float x = fabsf(sort_by[i]), y = fabsf(sort_by[j]);

	if (isnan(x) || isnan(y)) {
		/* among NaN, the larger payload; all here are one NaN */
		if (isnan(x) != isnan(y))
			return isnan(x) ? -1 : 1;
	} else if (x != y) {
		return x > y ? -1 : 1;
	}
	return (i > j) - (i < j);
}

static int ascending(const void *a, const void *b)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	return (i > j) - (i < j);
}

static void test_topk(const struct gf_kernels *set, size_t shape, size_t amount, int add)
{
	const size_t n = amounts[amount].count, k = amounts[amount].k;
	float *values = gf_xcalloc(n, sizeof(*values));
	float *more = gf_xcalloc(n, sizeof(*more));
	float *sums = gf_xcalloc(n, sizeof(*sums));
	uint32_t *sorted = gf_xcalloc(n, sizeof(*sorted));
	uint32_t *index = gf_xcalloc(k + 1, sizeof(*index));
	struct gf_topk t = {
		.values = values,
		.add = add ? more : NULL,
		.count = n,
		.k = k,
		.index = index,
		.scratch = gf_xcalloc(2 * n, sizeof(*t.scratch)),
	};

	for (size_t i = 0; i < n; i++) {
		values[i] = shapes[shape].value(i);
		more[i] = (float)gf_rng_normal(&rng);
		sums[i] = add ? values[i] + more[i] : values[i];
		sorted[i] = (uint32_t)i;
	}
	index[k] = 4711;
	sort_by = sums;
	qsort(sorted, n, sizeof(*sorted), larger_first);
	qsort(sorted, k, sizeof(*sorted), ascending);
	set->topk_f32(&t);
	EXPECT(memcmp(values, sums, n * sizeof(*sums)) == 0, "%s: %s: values + add", set->name,
	       shapes[shape].name);
	EXPECT(memcmp(index, sorted, k * sizeof(*index)) == 0 && index[k] == 4711,
	       "%s: %s, %zu of %zu%s", set->name, shapes[shape].name, k, n,
	       add ? " after adding" : "");
	free(values);
	free(more);
	free(sums);
	free(sorted);
	free(index);
	free(t.scratch);
}

/* Ties go to the lower index (tests/data/vectors.md). */
static void test_topk_example(const struct gf_kernels *set)
{
	float values[] = {1, -3, 3, 2, -2};
	uint32_t index[2], scratch[10];
	struct gf_topk t = {values, NULL, 5, 2, index, scratch};

	set->topk_f32(&t);
	EXPECT(index[0] == 1 && index[1] == 2, "%s: %u %u", set->name, index[0], index[1]);
}

/* --- sparse -------------------------------------------------------------- */

#define DENSE 64

static struct gf_sparse draw_sparse(double density)
{
	struct gf_sparse s = {
		.index = gf_xcalloc(DENSE, sizeof(*s.index)),
		.value = gf_xcalloc(DENSE, sizeof(*s.value)),
	};

	for (uint32_t i = 0; i < DENSE; i++)
		if (gf_rng_uniform(&rng) < density) {
			s.index[s.count] = i;
			s.value[s.count++] = (float)gf_rng_below(&rng, 100) - 50;
		}
	return s;
}

static void free_sparse(struct gf_sparse *s)
{
	free(s->index);
	free(s->value);
}

/* The largest of a sum move; what is left and what is common to two lists. */
static void test_move(const struct gf_kernels *set, double p, double q)
{
	struct gf_sparse a = draw_sparse(p), b = draw_sparse(q);
	struct gf_sparse out = {gf_xcalloc(DENSE + 1, 4), gf_xcalloc(DENSE + 1, 4), 0};
	uint32_t *at = gf_xcalloc(DENSE + 1, 4);
	uint32_t *was = gf_xmemdup(a.index, DENSE * 4);
	size_t k = 0, n = 0;

	for (size_t i = 0; i < a.count; i++) {
		a.value[i] = i % 5 == 1 ? -0.0f : a.value[i];
		if (i % 3 == 0)
			at[k++] = (uint32_t)i;
	}
	set->move_f32(&a, at, k, &out);
	EXPECT(out.count == k, "%s: %zu of %zu", set->name, out.count, k);
	for (size_t i = 0; i < a.count; i++) {
		bool moves = i % 3 == 0, zero = a.value[i] == 0;

		if (moves)
			EXPECT(out.index[n] == was[i] && memcmp(&out.value[n], &a.value[i], 4) == 0,
			       "%s: entry %zu moved", set->name, i);
		n += moves;
		EXPECT(a.index[i] == (moves || zero ? GF_NO_INDEX : was[i]), "%s: entry %zu stays",
		       set->name, i);
	}
	memcpy(a.index, was, a.count * 4);
	set->leave_out(&a, &b);
	for (size_t i = 0; i < a.count; i++) {
		bool both = false;

		for (size_t j = 0; j < b.count; j++)
			both |= b.index[j] == was[i];
		EXPECT(a.index[i] == (both ? GF_NO_INDEX : was[i]), "%s: entry %zu is left out",
		       set->name, i);
	}
	free_sparse(&a);
	free_sparse(&b);
	free_sparse(&out);
	free(at);
	free(was);
}

static void test_merge(const struct gf_kernels *set, double p, double q)
{
	struct gf_sparse a = draw_sparse(p), b = draw_sparse(q);
	struct gf_sparse out = {gf_xcalloc(2 * DENSE, 4), gf_xcalloc(2 * DENSE, 4), 0};
	float want[DENSE] = {0}, got[DENSE] = {0};
	size_t entries = 0;
	char seen[DENSE] = {0};

	set->scatter_add_f32(want, a.value, a.index, a.count);
	set->scatter_add_f32(want, b.value, b.index, b.count);
	for (size_t i = 0; i < a.count; i++)
		seen[a.index[i]] = 1;
	for (size_t i = 0; i < b.count; i++)
		seen[b.index[i]] = 1;
	for (size_t i = 0; i < DENSE; i++)
		entries += seen[i];
	set->merge_f32(&a, &b, &out);
	EXPECT(out.count == entries, "%s: %zu and %zu make %zu, got %zu", set->name, a.count,
	       b.count, entries, out.count);
	for (size_t i = 0; i < out.count; i++) {
		EXPECT(i == 0 || out.index[i - 1] < out.index[i], "%s: ascending", set->name);
		got[out.index[i]] = out.value[i];
	}
	EXPECT(memcmp(want, got, sizeof(want)) == 0, "%s: sums", set->name);

	set->take_f32(out.value, want, out.index, out.count);
	for (size_t i = 0; i < out.count; i++)
		EXPECT(out.value[i] == got[out.index[i]], "%s: taken", set->name);
	for (size_t i = 0; i < DENSE; i++)
		EXPECT(want[i] == 0, "%s: nothing is left", set->name);
	free_sparse(&a);
	free_sparse(&b);
	free_sparse(&out);
}

static void test_set(const struct gf_kernels *ref, const struct gf_kernels *set)
{
	static const double densities[] = {0, 0.05, 0.5, 1};

	for (size_t i = 0; i < GF_ARRAY_LENGTH(sum_sizes); i++)
		for (size_t o = 0; o < 4; o++)
			test_sums(ref, set, sum_sizes[i], o);
	test_topk_example(set);
	for (size_t s = 0; s < GF_ARRAY_LENGTH(shapes); s++)
		for (size_t a = 0; a < GF_ARRAY_LENGTH(amounts); a++)
			for (int add = 0; add < 2; add++)
				test_topk(set, s, a, add);
	for (size_t i = 0; i < GF_ARRAY_LENGTH(densities); i++)
		for (size_t j = 0; j < GF_ARRAY_LENGTH(densities); j++) {
			test_merge(set, densities[i], densities[j]);
			test_move(set, densities[i], densities[j]);
		}
}

int main(void)
{
	static const char *const names[] = {"ref", "avx2", "avx512"};

	gf_rng_init(&rng, 3, 0);
	for (size_t s = 0; s < GF_ARRAY_LENGTH(names); s++) {
		const struct gf_kernels *set = gf_kernels_named(names[s]);

		if (set)
			test_set(gf_kernels_named("ref"), set);
		else
			printf("this machine has no %s\n", names[s]);
	}
	return TEST_END();
}
