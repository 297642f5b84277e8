/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <math.h>

#include "adamw.h"
#include "base/array.h"
#include "base/rng.h"
#include "gf_kernels.h"

/*
 * Every set against ref, bit for bit, over sizes around every vector width and over unaligned
 * pointers; a guard element after each array must not change.
 */
#define MAX   1100
#define GUARD 1234567.0f

static const size_t sizes[] = {0,  1,  2,  3,  7,   8,   9,   15,  16,  17,   23,   31,   32,
			       33, 63, 64, 65, 127, 129, 255, 256, 257, 1000, 1023, 1024, 1025};
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

static void add(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	k->add_f32(a->y + o, a->x + o, n);
}

static void add_itself(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	k->add_f32(a->y + o, a->y + o, n);
}

static void scale(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	k->scale_f32(0.3f, a->x + o, a->y + o, n);
}

static void scale_itself(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	k->scale_f32(-1.7f, a->y + o, a->y + o, n);
}

static void axpby(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	k->axpby_f32(0.3f, a->x + o, -1.7f, a->y + o, n);
}

static void sgd(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	const struct gf_sgd_step step = {0.1f, 0.9f, 5e-4f, 0.25f, 0};

	k->sgd_f32(&step, a->x + o, a->y + o, a->z + o, n);
}

static void nesterov(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	const struct gf_sgd_step step = {0.1f, 0.9f, 5e-4f, 0.25f, 1};

	k->sgd_f32(&step, a->x + o, a->y + o, a->z + o, n);
}

/* The sums of squares must not be negative. */
static void adamw(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n)
{
	static const struct gf_adamw_rule rule = {.01, .9, .999, .1, 1e-8};
	const struct gf_adamw_step step = adamw_step(&rule, .25f, 3);

	for (size_t i = o; i < o + n; i++)
		a->second[i] = fabsf(a->z[i]);
	k->adamw_f32(&step, a->x + o, a->y + o, a->z + o, a->second + o, n);
}

static const struct {
	const char *name;
	void (*run)(const struct gf_kernels *k, struct arrays *a, size_t o, size_t n);
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

static void test_elementwise(const struct gf_kernels *ref, const struct gf_kernels *set, size_t c,
			     size_t n, size_t o)
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
	EXPECT(memcmp(&want, &got, sizeof(want)) == 0, "%s of %s, n=%zu, offset %zu",
	       elementwise[c].name, set->name, n, o);
	EXPECT(got.x[o + n] == GUARD && got.y[o + n] == GUARD && got.z[o + n] == GUARD &&
		       got.second[o + n] == GUARD,
	       "%s of %s wrote past the end, n=%zu", elementwise[c].name, set->name, n);
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

/* --- the LSTM's cell ------------------------------------------------------ */

enum { UNITS = 100, CELLS = 13 * UNITS };

/* gates, before, cell, squashed, out; dout, dnext, dcell, dgates */
static void run_cell(const struct gf_kernels *k, float *a, size_t n)
{
	const struct gf_lstm_cell c = {a, a + 4 * n, a + 5 * n, a + 6 * n, a + 7 * n};
	const struct gf_lstm_gradient d = {a + 8 * n, a + 9 * n, a + 10 * n, a + 11 * n};

	k->lstm_cell_f32(&c, n);
	k->lstm_cell_backward_f32(&c, &d, n);
}

static void test_cell(const struct gf_kernels *ref, const struct gf_kernels *set)
{
	static const size_t widths[] = {1, 7, 8, 15, 16, 17, 33, UNITS};
	static const float odd[] = {INFINITY, -INFINITY, NAN, 200, -200, 0};
	static float want[CELLS + 2 * UNITS], got[CELLS + 2 * UNITS];
	size_t i, w;

	for (w = 0; w < GF_ARRAY_LENGTH(widths); w++) {
		for (i = 0; i < GF_ARRAY_LENGTH(want); i++)
			want[i] = 3 * (float)gf_rng_normal(&rng);
		for (i = 0; w % 2 && i < GF_ARRAY_LENGTH(odd); i++)
			want[i] = odd[i];
		memcpy(got, want, sizeof(got));
		run_cell(ref, want, widths[w]);
		run_cell(set, got, widths[w]);
		for (i = 0; i < GF_ARRAY_LENGTH(want); i++)
			EXPECT((isnan(want[i]) && isnan(got[i])) ||
				       !memcmp(&want[i], &got[i], sizeof(*got)),
			       "cell of %s, %zu units, [%zu]: %a, %a", set->name, widths[w], i,
			       (double)want[i], (double)got[i]);
	}
}

/* Sigmoid and tanh over the line, against f64; a state of 0 before. */
static void test_cell_values(const struct gf_kernels *ref)
{
	const double tolerance = 3e-7;
	float gate[4], before = 0, cell, squashed, out;
	const struct gf_lstm_cell c = {gate, &before, &cell, &squashed, &out};
	double x;

	for (x = -30; x < 30; x += 0.00137) {
		const float f = (float)x;
		double s = 1 / (1 + exp(-(double)f)), t = tanh((double)f);

		gate[0] = gate[1] = gate[2] = gate[3] = f;
		ref->lstm_cell_f32(&c, 1);
		EXPECT(fabs((double)gate[0] - s) <= tolerance * s, "sigmoid(%g) = %.9g, want %.9g",
		       x, (double)gate[0], s);
		EXPECT(fabs((double)gate[2] - t) <= tolerance * fabs(t),
		       "tanh(%g) = %.9g, want %.9g", x, (double)gate[2], t);
	}
}

/* --- softmax -------------------------------------------------------------- */

/* Rows of every length, with numbers that are odd in half of them. */
static void test_softmax(const struct gf_kernels *ref, const struct gf_kernels *set)
{
	static const float odd[] = {INFINITY, -INFINITY, NAN, 200, -200, 0};
	static struct arrays want, got;
	size_t i, n;

	for (n = 0; n < 140; n++) {
		draw(want.x);
		draw(want.y);
		for (i = 0; n % 2 && i < GF_ARRAY_LENGTH(odd); i++)
			want.x[(7 * i) % n] = odd[i];
		guard(&want, n);
		got = want;
		ref->softmax_f32(want.x, .3f, n);
		ref->softmax_backward_f32(want.x, want.y, .3f, n);
		set->softmax_f32(got.x, .3f, n);
		set->softmax_backward_f32(got.x, got.y, .3f, n);
		for (i = 0; i <= n; i++)
			EXPECT(((isnan(want.x[i]) && isnan(got.x[i])) ||
				!memcmp(&want.x[i], &got.x[i], sizeof(*got.x))) &&
				       ((isnan(want.y[i]) && isnan(got.y[i])) ||
					!memcmp(&want.y[i], &got.y[i], sizeof(*got.y))),
			       "softmax of %s, n=%zu, [%zu]: %a, %a", set->name, n, i,
			       (double)want.x[i], (double)got.x[i]);
		EXPECT(got.x[n] == GUARD && got.y[n] == GUARD,
		       "softmax of %s wrote past the end, n=%zu", set->name, n);
	}
}

/* Against f64. Scores as far apart as 60 lose nothing that f32 has. */
static void test_softmax_values(const struct gf_kernels *ref)
{
	const double tolerance = 2e-6;
	static struct arrays a, kept;
	double y[MAX], sum, mean, d;
	size_t n, i;

	for (n = 1; n < MAX; n = n * 3 / 2 + 1) {
		draw(a.x);
		draw(a.y);
		for (i = 0; i < n; i++)
			a.x[i] *= 20;
		kept = a;
		ref->softmax_f32(a.x, .25f, n);
		ref->softmax_backward_f32(a.x, a.y, .25f, n);
		for (i = 0, sum = 0; i < n; i++)
			sum += y[i] = exp(.25 * kept.x[i]);
		for (i = 0, mean = 0; i < n; i++) {
			y[i] /= sum;
			mean += y[i] * kept.y[i];
		}
		for (i = 0; i < n; i++) {
			d = .25 * y[i] * (kept.y[i] - mean);
			EXPECT(fabs(a.x[i] - y[i]) <= tolerance * y[i] + 1e-30,
			       "softmax of %zu, [%zu]: %.9g, want %.9g", n, i, (double)a.x[i],
			       y[i]);
			EXPECT(fabs(a.y[i] - d) <= tolerance * fabs(d) + 1e-6,
			       "its gradient, [%zu]: %.9g, want %.9g", i, (double)a.y[i], d);
		}
	}
}

static void test_no_hole(const struct gf_kernels *k)
{
	const void *entry;

	EXPECT((sizeof(*k) % sizeof(entry)) == 0, "a table of pointers");
	for (size_t i = 0; i < sizeof(*k); i += sizeof(entry)) {
		memcpy(&entry, (const char *)k + i, sizeof(entry));
		EXPECT(entry, "%s: entry %zu is a hole", k->name, i / sizeof(entry));
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
	test_cell_values(ref);
	test_softmax_values(ref);
	EXPECT(!gf_kernels_named("mmx"), "no such set");
	for (size_t s = 0; s < GF_ARRAY_LENGTH(names); s++) {
		const struct gf_kernels *set = gf_kernels_named(names[s]);

		if (!set) {
			printf("this machine has no %s\n", names[s]);
			continue;
		}
		test_no_hole(set);
		test_cell(ref, set);
		test_softmax(ref, set);
		for (size_t c = 0; c < GF_ARRAY_LENGTH(elementwise); c++)
			for (size_t n = 0; n < GF_ARRAY_LENGTH(sizes); n++)
				for (size_t o = 0; o < 4; o++)
					test_elementwise(ref, set, c, sizes[n], offsets[o]);
	}
	return TEST_END();
}
