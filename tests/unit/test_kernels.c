/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <math.h>
#include <stdint.h>

#include "adamw.h"
#include "base/array.h"
#include "base/rng.h"
#include "gf_kernels.h"

/*
 * Every set against ref, bit for bit, over sizes around every vector width and
 * over unaligned pointers; a guard element after each array must not change.
 */
#define MAX   1100
#define GUARD 1234567.0f

static const size_t sizes[] = {0,   1,   2,   3,   7,    8,    9,    15,  16,
			       17,  23,  31,  32,  33,   63,   64,   65,  127,
			       129, 255, 256, 257, 1000, 1023, 1024, 1025};
static const size_t offsets[] = {0, 1, 3, 7};

struct arrays {
	float x[MAX], y[MAX], z[MAX], second[MAX];
};

static struct gf_rng rng;

static void draw(float *a)
{
	for (size_t i = 0; i < MAX; i++)
		a[i] = (float)gf_rng_normal(&rng);
}

static void guard(struct arrays *a, size_t end)
{
	a->x[end] = a->y[end] = a->z[end] = a->second[end] = GUARD;
}

static void add(const struct gf_kernels *k, struct arrays *a, size_t o,
		size_t n)
{
	k->add_f32(a->y + o, a->x + o, n);
}

static void add_itself(const struct gf_kernels *k, struct arrays *a, size_t o,
		       size_t n)
{
	k->add_f32(a->y + o, a->y + o, n);
}

static void scale(const struct gf_kernels *k, struct arrays *a, size_t o,
		  size_t n)
{
	k->scale_f32(0.3f, a->x + o, a->y + o, n);
}

static void scale_itself(const struct gf_kernels *k, struct arrays *a, size_t o,
			 size_t n)
{
	k->scale_f32(-1.7f, a->y + o, a->y + o, n);
}

static void axpby(const struct gf_kernels *k, struct arrays *a, size_t o,
		  size_t n)
{
	k->axpby_f32(0.3f, a->x + o, -1.7f, a->y + o, n);
}

static void sgd(const struct gf_kernels *k, struct arrays *a, size_t o,
		size_t n)
{
	const struct gf_sgd_step step = {0.1f, 0.9f, 5e-4f, 0.25f, 0};

	k->sgd_f32(&step, a->x + o, a->y + o, a->z + o, n);
}

static void nesterov(const struct gf_kernels *k, struct arrays *a, size_t o,
		     size_t n)
{
	const struct gf_sgd_step step = {0.1f, 0.9f, 5e-4f, 0.25f, 1};

	k->sgd_f32(&step, a->x + o, a->y + o, a->z + o, n);
}

/* The sums of squares must not be negative. */
static void adamw(const struct gf_kernels *k, struct arrays *a, size_t o,
		  size_t n)
{
	static const struct gf_adamw_rule rule = {.01, .9, .999, .1, 1e-8};
	const struct gf_adamw_step step = adamw_step(&rule, .25f, 3);

	for (size_t i = o; i < o + n; i++)
		a->second[i] = fabsf(a->z[i]);
	k->adamw_f32(&step, a->x + o, a->y + o, a->z + o, a->second + o, n);
}

static const struct {
	const char *name;
	void (*run)(const struct gf_kernels *k, struct arrays *a, size_t o,
		    size_t n);
} elementwise[] = {
	{"add_f32", add},
	{"add_f32 in place", add_itself},
	{"scale_f32", scale},
	{"scale_f32 in place", scale_itself},
	{"axpby_f32", axpby},
	{"sgd_f32", sgd},
	{"sgd_f32 nesterov", nesterov},
	{"adamw_f32", adamw},
};

static void test_elementwise(const struct gf_kernels *ref,
			     const struct gf_kernels *set, size_t c, size_t n,
			     size_t o)
{
	static struct arrays start, want, got;

	draw(start.x);
	draw(start.y);
	draw(start.z);
	draw(start.second);
	guard(&start, o + n);
	want = got = start;
	elementwise[c].run(ref, &want, o, n);
	elementwise[c].run(set, &got, o, n);
	EXPECT(memcmp(&want, &got, sizeof(want)) == 0,
	       "%s of %s, n=%zu, offset %zu", elementwise[c].name, set->name, n,
	       o);
	EXPECT(got.x[o + n] == GUARD && got.y[o + n] == GUARD &&
		       got.z[o + n] == GUARD && got.second[o + n] == GUARD,
	       "%s of %s wrote past the end, n=%zu", elementwise[c].name,
	       set->name, n);
}

/* ref itself against figures worked out by hand. */
static void test_spec(const struct gf_kernels *ref)
{
	struct gf_sgd_step step = {0.5f, 0.5f, 0.25f, 2.0f, 0};
	float y[2] = {1, 2}, x[2] = {3, -4}, w[1] = {4}, u[1] = {2};

	ref->add_f32(y, x, 2);
	EXPECT(y[0] == 4 && y[1] == -2, "add_f32");
	ref->scale_f32(-3, x, w, 1);
	EXPECT(w[0] == -9, "scale_f32");
	w[0] = 4;
	ref->axpby_f32(2, x, -1, y, 2);
	EXPECT(y[0] == 2 && y[1] == -6, "axpby_f32");

	/* g = 2*3 + 4/4 = 7; u = 2/2 + 7 = 8; w = 4 - 8/2 = 0 */
	ref->sgd_f32(&step, x, w, u, 1);
	EXPECT(u[0] == 8 && w[0] == 0, "sgd_f32: u %g w %g", u[0], w[0]);
	/* g = 6; u = 4 + 6 = 10; w = 0 - (6 + 5)/2 */
	step.nesterov = 1;
	ref->sgd_f32(&step, x, w, u, 1);
	EXPECT(u[0] == 10 && w[0] == -5.5f, "nesterov: u %g w %g", u[0], w[0]);
}

static void test_no_hole(const struct gf_kernels *k)
{
	const void *entry;

	EXPECT((sizeof(*k) % sizeof(entry)) == 0, "a table of pointers");
	for (size_t i = 0; i < sizeof(*k); i += sizeof(entry)) {
		memcpy(&entry, (const char *)k + i, sizeof(entry));
		EXPECT(entry, "%s: entry %zu is a hole", k->name,
		       i / sizeof(entry));
	}
}

int main(void)
{
	static const char *const names[] = {"avx2", "avx512"};
	const struct gf_kernels *ref = gf_kernels_named("ref");

	gf_rng_init(&rng, 1, 0);
	EXPECT(ref, "ref runs everywhere");
	test_no_hole(ref);
	test_no_hole(gf_kernels());
	test_spec(ref);
	EXPECT(!gf_kernels_named("mmx"), "no such set");
	for (size_t s = 0; s < GF_ARRAY_LENGTH(names); s++) {
		const struct gf_kernels *set = gf_kernels_named(names[s]);

		if (!set) {
			printf("this machine has no %s\n", names[s]);
			continue;
		}
		test_no_hole(set);
		for (size_t c = 0; c < GF_ARRAY_LENGTH(elementwise); c++)
			for (size_t n = 0; n < GF_ARRAY_LENGTH(sizes); n++)
				for (size_t o = 0; o < 4; o++)
					test_elementwise(ref, set, c, sizes[n],
							 offsets[o]);
	}
	return TEST_END();
}
