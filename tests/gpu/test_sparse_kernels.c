/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_test.h"
#include "../unit/choice.h"

/*
 * The GPU's top-k and sparse sums against ref: the same indices, the same bits, ties to the lower
 * index, NaN above everything.
 */
static const struct gf_kernels *ref;
static const struct gf_gpu_kernels *gpu = &gf_gpu_kernels_cuda;
static struct gf_gpu_stream *stream;

static const struct {
	size_t count, k;
} amounts[] = {
	{1, 1},
	{2, 1},
	{5, 2},
	{33, 7},
	{1000, 1},
	{1000, 999},
	{4096, 4096},
	{4097, 5},
	{8191, 100},
	{8192, 8},
	{8193, 8193},
	{30011, 1},
	{30011, 30},
	{30011, 100},
	{30011, 20000},
	{30011, 30010},
	{70001, 70},
	{70001, 6000},
	/* segments enough for several warps to add them up */
	{1500001, 900},
};
#define LARGE (GF_ARRAY_LENGTH(amounts) - 1)

static void test_topk(size_t shape, size_t amount, size_t offset, int add)
{
	const size_t n = amounts[amount].count, k = amounts[amount].k;
	float *values = gf_xcalloc(n, sizeof(*values));
	float *more = draw_floats(&rng, n, 0);
	uint32_t *index = gf_xcalloc(k, sizeof(*index));
	uint32_t *scratch = gf_xcalloc(2 * n, sizeof(*scratch));
	struct gf_topk want = {values, add ? more : NULL, n, k, index, scratch};
	struct gf_gpu_topk got = {.count = n, .k = k};

	for (size_t i = 0; i < n; i++)
		values[i] = shapes[shape].value(i);
	got.values = put(values, n * 4, 4 * offset);
	got.add = add ? put(more, n * 4, 0) : NULL;
	got.index = device_alloc(k * 4);
	got.work = device_alloc(gf_gpu_topk_work_bytes(n));
	ref->topk_f32(&want);
	gpu->topk_f32(stream, &got);
	EXPECT(differs_bytes(index, got.index, k * 4) == k * 4,
	       "%s, %zu of %zu%s, offset %zu: place %zu", shapes[shape].name, k, n,
	       add ? " after adding" : "", offset, differs_bytes(index, got.index, k * 4) / 4);
	EXPECT(differs_f32(values, got.values, n) == n, "%s, %zu of %zu: values",
	       shapes[shape].name, k, n);
	done("topk", n);
	free(values);
	free(more);
	free(index);
	free(scratch);
}

/* --- sparse sums ---------------------------------------------------------- */

/* Ascending indices in lists of some room, the rest of it empty. */
static struct gf_gpu_sparse draw_list(size_t dense, size_t room, double density)
{
	struct gf_gpu_sparse l = {gf_xcalloc(room + 1, 4), draw_floats(&rng, room, 0), room};
	size_t n = 0, i;

	for (i = 0; i < dense && n < room; i++)
		if (gf_rng_uniform(&rng) < density) {
			l.value[n] = n % 7 ? l.value[n] : -0.0f;
			l.index[n++] = (uint32_t)i;
		}
	for (; n < room; n++) {
		l.index[n] = GF_GPU_NO_INDEX;
		l.value[n] = 0;
	}
	return l;
}

static struct gf_gpu_sparse put_list(const struct gf_gpu_sparse *l)
{
	return (struct gf_gpu_sparse){put(l->index, l->room * 4, 0), put(l->value, l->room * 4, 0),
				      l->room};
}

static struct gf_sparse used_of(const struct gf_gpu_sparse *l)
{
	struct gf_sparse s = {l->index, l->value, 0};

	while (s.count < l->room && s.index[s.count] != GF_GPU_NO_INDEX)
		s.count++;
	return s;
}

static void free_list(struct gf_gpu_sparse *l)
{
	free(l->index);
	free(l->value);
}

static void test_merge(size_t dense, size_t a_room, size_t b_room, double p, double q)
{
	struct gf_gpu_sparse a = draw_list(dense, a_room, p);
	struct gf_gpu_sparse b = draw_list(dense, b_room, q);
	struct gf_gpu_sparse want = draw_list(0, a_room + b_room, 0);
	struct gf_gpu_sparse da = put_list(&a), db = put_list(&b);
	struct gf_gpu_sparse got = {device_alloc(want.room * 4), device_alloc(want.room * 4),
				    want.room};
	struct gf_sparse ua = used_of(&a), ub = used_of(&b);
	struct gf_sparse sum = {want.index, want.value, 0};

	ref->merge_f32(&ua, &ub, &sum);
	gpu->merge_f32(stream, &da, &db, &got, device_alloc(gf_gpu_merge_work_bytes(a_room)));
	EXPECT(differs_bytes(want.index, got.index, want.room * 4) == want.room * 4 &&
		       differs_bytes(want.value, got.value, want.room * 4) == want.room * 4,
	       "merge of %zu and %zu, %zu in all: index at %zu, value at %zu", ua.count, ub.count,
	       sum.count, differs_bytes(want.index, got.index, want.room * 4) / 4,
	       differs_bytes(want.value, got.value, want.room * 4) / 4);
	done("merge", want.room);
	free_list(&a);
	free_list(&b);
	free_list(&want);
}

static void test_take(size_t dense, size_t room, double density)
{
	struct gf_gpu_sparse l = draw_list(dense, room, density);
	struct gf_sparse used = used_of(&l);
	float *from = draw_floats(&rng, dense, 0);
	float *to = draw_floats(&rng, dense, 0);
	struct gf_gpu_sparse dl = put_list(&l);
	float *dfrom = put(from, dense * 4, 4), *dto = put(to, dense * 4, 0);

	ref->take_f32(l.value, from, used.index, used.count);
	ref->scatter_add_f32(to, l.value, used.index, used.count);
	gpu->take_f32(stream, dl.value, dfrom, dl.index, room);
	gpu->scatter_add_f32(stream, dto, dl.value, dl.index, room);
	EXPECT(differs_f32(l.value, dl.value, room) == room, "taken, %zu", room);
	EXPECT(differs_f32(from, dfrom, dense) == dense, "left, %zu", room);
	EXPECT(differs_f32(to, dto, dense) == dense, "scattered, %zu", room);
	done("take", room);
	free_list(&l);
	free(from);
	free(to);
}

/* Which elements of a sum are among its largest, and which elements of a list are in another. */
static void test_move(size_t dense, size_t room, double p, double q)
{
	struct gf_gpu_sparse a = draw_list(dense, room, p);
	struct gf_gpu_sparse b = draw_list(dense, room, q);
	struct gf_sparse ua = used_of(&a), ub = used_of(&b), to = {0};
	struct gf_gpu_sparse da = put_list(&a), db = put_list(&b), dto;
	uint32_t *at = gf_xcalloc(room + 1, 4), *dat;
	size_t k = 0, i;

	for (i = 0; i < ua.count; i++)
		if (gf_rng_below(&rng, 2))
			at[k++] = (uint32_t)i;
	dat = put(at, k * 4, 0);
	to.index = gf_xcalloc(k + 1, 4);
	to.value = gf_xcalloc(k + 1, 4);
	dto = (struct gf_gpu_sparse){device_alloc(k * 4), device_alloc(k * 4), k};
	gpu->move_f32(stream, &da, dat, k, &dto);
	ref->move_f32(&ua, at, k, &to);
	EXPECT(differs_bytes(to.index, dto.index, k * 4) == k * 4 &&
		       differs_bytes(to.value, dto.value, k * 4) == k * 4 &&
		       differs_bytes(a.index, da.index, room * 4) == room * 4,
	       "%zu of %zu moved", k, ua.count);
	gpu->leave_out(stream, &db, &dto);
	ref->leave_out(&ub, &to);
	EXPECT(differs_bytes(b.index, db.index, room * 4) == room * 4, "%zu left out of %zu", k,
	       ub.count);
	done("move", room);
	free_list(&a);
	free_list(&b);
	free(to.index);
	free(to.value);
	free(at);
}

static void test_copy(size_t n, size_t offset, uint32_t skip)
{
	float *from = draw_floats(&rng, n, 0), *to = draw_floats(&rng, n, 0);
	float *dfrom = put(from, n * 4, offset * 4), *dto = put(to, n * 4, 4);
	uint32_t *dskip = put(&skip, sizeof(skip), 0);

	gpu->copy_f32(stream, dskip, dto, dfrom, n);
	EXPECT(differs_bytes(skip ? to : from, dto, n * 4) == n * 4, "%zu copied, skip %u", n,
	       skip);
	/* an element beside stays as it is */
	gpu->spoil_f32(stream, dskip, dto, n - (n > 0));
	for (size_t i = 0; i < n; i++)
		to[i] = !skip ? from[i] : i + 1 < n ? NAN : to[i];
	EXPECT(differs_f32(to, dto, n) == n, "%zu spoilt, flag %u", n, skip);
	done("copy", n);
	free(from);
	free(to);
}

int main(void)
{
	static const double densities[] = {0, 0.01, 0.5, 1};
	static const size_t rooms[] = {0, 1, 31, 256, 257, 1500};
	const char *why = device_open();

	if (why) {
		printf("%s\n", why);
		return 77;
	}
	stream = device_stream();
	ref = gf_kernels_named("ref");
	gf_rng_init(&rng, 1, 0);
	for (size_t s = 0; s < GF_ARRAY_LENGTH(shapes); s++)
		for (size_t a = 0; a < LARGE; a++)
			for (int add = 0; add < 2; add++)
				test_topk(s, a, (s + a) % 2, add);
	test_topk(0, LARGE, 0, 0);
	test_topk(1, LARGE, 1, 1);
	for (size_t a = 0; a < GF_ARRAY_LENGTH(rooms); a++)
		for (size_t b = 0; b < GF_ARRAY_LENGTH(rooms); b++)
			for (size_t p = 0; p < 4; p++)
				for (size_t q = 0; q < 4; q++)
					test_merge(1200, rooms[a], rooms[b], densities[p],
						   densities[q]);
	for (size_t r = 0; r < GF_ARRAY_LENGTH(rooms); r++)
		test_take(5000, rooms[r], densities[2]);
	for (size_t r = 0; r < GF_ARRAY_LENGTH(rooms); r++)
		for (size_t p = 0; p < 4; p++)
			for (size_t q = 0; q < 4; q++)
				test_move(1200, rooms[r], densities[p], densities[q]);
	for (size_t r = 0; r < GF_ARRAY_LENGTH(rooms); r++)
		for (uint32_t skip = 0; skip < 2; skip++) {
			test_copy(rooms[r], 1, skip);
			test_copy(rooms[r], 2, skip);
		}
	return TEST_END();
}
