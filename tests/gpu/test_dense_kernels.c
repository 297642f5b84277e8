/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_test.h"

#include "adamw.h"

/*
 * The GPU's elementwise kernels and sums against ref, bit for bit: sizes around every width,
 * addresses that are aligned to an element only (alike and unlike), special values.
 */
#define TOLERANCE_LARS 1e-6
#define TOLERANCE_CLIP 1e-7

static const size_t sizes[] = {0,   1,    2,    3,    4,    5,    7,    31,   32,   33,
			       127, 1023, 1024, 1025, 2047, 2049, 4095, 4097, 9000, 33001};
/* In elements, of the first array and of the others. */
static const size_t offsets[][2] = {{0, 0}, {1, 1}, {3, 3}, {0, 1}, {2, 3}};

static struct gf_rng rng;
static const struct gf_kernels *ref;
static const struct gf_gpu_kernels *gpu = &gf_gpu_kernels_cuda;
static struct gf_gpu_stream *stream;

/* Three arrays on the host, and the same on the device. */
struct arrays {
	size_t n;
	float *x, *y, *z;
	float *dx, *dy, *dz;
};

static void add(struct arrays *a)
{
	ref->add_f32(a->y, a->x, a->n);
	gpu->add_f32(stream, a->dy, a->dx, a->n);
}

static void add_itself(struct arrays *a)
{
	ref->add_f32(a->y, a->y, a->n);
	gpu->add_f32(stream, a->dy, a->dy, a->n);
}

static void scale(struct arrays *a)
{
	ref->scale_f32(-1.7f, a->x, a->y, a->n);
	gpu->scale_f32(stream, -1.7f, a->dx, a->dy, a->n);
}

/* Infinity stays infinity. */
static void scale_itself(struct arrays *a)
{
	if (a->n)
		a->y[0] = INFINITY;
	device_write(a->dy, a->y, a->n * 4);
	ref->scale_f32(0.25f, a->y, a->y, a->n);
	gpu->scale_f32(stream, 0.25f, a->dy, a->dy, a->n);
	EXPECT(!a->n || a->y[0] == INFINITY, "scale itself: %g", (double)a->y[0]);
}

static void step(struct arrays *a, int nesterov)
{
	const struct gf_sgd_step o = {0.1f, 0.9f, 5e-4f, 0.25f, nesterov};

	ref->sgd_f32(&o, a->x, a->y, a->z, a->n);
	gpu->sgd_f32(stream, &o, NULL, a->dx, a->dy, a->dz, a->n);
}

static void sgd(struct arrays *a)
{
	step(a, 0);
}

static void nesterov(struct arrays *a)
{
	step(a, 1);
}

static void skipped(struct arrays *a)
{
	const struct gf_sgd_step o = {0.1f, 0.9f, 5e-4f, 0.25f, 0};
	const uint32_t flag = 1;
	const struct gf_gpu_gate gate = {put(&flag, sizeof(flag), 0), NULL};

	gpu->sgd_f32(stream, &o, &gate, a->dx, a->dy, a->dz, a->n);
}

/* By a scale that is the device's. */
static void rescaled(struct arrays *a)
{
	struct gf_sgd_step o = {0.1f, 0.9f, 5e-4f, -0.75f, 1};
	const uint32_t flag = 0;
	const struct gf_gpu_gate gate = {put(&flag, sizeof(flag), 0),
					 put(&o.scale, sizeof(o.scale), 0)};

	ref->sgd_f32(&o, a->x, a->y, a->z, a->n);
	o.scale = 3;
	gpu->sgd_f32(stream, &o, &gate, a->dx, a->dy, a->dz, a->n);
}

static const struct {
	const char *name;
	void (*run)(struct arrays *a);
} elementwise[] = {
	{"add", add},         {"add itself", add_itself},
	{"scale", scale},     {"scale itself", scale_itself},
	{"sgd", sgd},         {"nesterov", nesterov},
	{"skipped", skipped}, {"rescaled", rescaled},
};

static void test_elementwise(size_t c, size_t n, const size_t *offset)
{
	struct arrays a = {.n = n};

	a.x = draw_floats(&rng, n, 1);
	a.y = draw_floats(&rng, n, 1);
	a.z = draw_floats(&rng, n, 0);
	a.dx = put(a.x, n * 4, offset[0] * 4);
	a.dy = put(a.y, n * 4, offset[1] * 4);
	a.dz = put(a.z, n * 4, offset[1] * 4);
	elementwise[c].run(&a);
	EXPECT(differs_f32(a.x, a.dx, n) == n && differs_f32(a.y, a.dy, n) == n &&
		       differs_f32(a.z, a.dz, n) == n,
	       "%s, n=%zu, offsets %zu %zu, element %zu", elementwise[c].name, n, offset[0],
	       offset[1], differs_f32(a.y, a.dy, n));
	done(elementwise[c].name, n);
	free(a.x);
	free(a.y);
	free(a.z);
}

/* --- codecs of 16 bits ---------------------------------------------------- */

static void test_half(const char *name, enum gf_codec_number codec, size_t n, const size_t *offset)
{
	const struct gf_codec_fns *want = &ref->codecs[codec];
	const struct gf_gpu_codec *on_gpu = &gpu->codecs[codec];
	float *x = draw_floats(&rng, n, 1), *y = draw_floats(&rng, n, 1);
	uint16_t *h = gf_xcalloc(n + 1, sizeof(*h));
	float *dx, *dy;
	uint16_t *dh;

	/* Every pattern of bits is met sooner or later. */
	for (size_t i = 0; i < n; i += 3) {
		uint32_t bits = (uint32_t)gf_rng_u64(&rng);

		memcpy(&x[i], &bits, sizeof(bits));
	}
	dx = put(x, n * 4, offset[0] * 4);
	dy = put(y, n * 4, offset[0] * 4);
	dh = put(h, n * 2, offset[1] * 2);
	want->encode(h, x, n, 0);
	on_gpu->encode(stream, dh, dx, n, 0);
	EXPECT(differs_bytes(h, dh, n * 2) == n * 2, "%s, n=%zu: encoded, byte %zu", name, n,
	       differs_bytes(h, dh, n * 2));
	for (size_t i = 0; i < n; i++)
		h[i] = (uint16_t)gf_rng_u64(&rng);
	device_write(dh, h, n * 2);
	want->decode(x, h, n, 0);
	on_gpu->decode(stream, dx, dh, n, 0);
	EXPECT(differs_bytes(x, dx, n * 4) == n * 4, "%s, n=%zu: decoded, byte %zu", name, n,
	       differs_bytes(x, dx, n * 4));
	want->decode_add(y, h, n, 0);
	on_gpu->decode_add(stream, dy, dh, n, 0);
	EXPECT(differs_f32(y, dy, n) == n, "%s, n=%zu: added, element %zu", name, n,
	       differs_f32(y, dy, n));
	done(name, n);
	free(x);
	free(y);
	free(h);
}

static void test_halves(size_t n, const size_t *offset)
{
	test_half("f16", GF_CODEC_F16, n, offset);
	test_half("bf16", GF_CODEC_BF16, n, offset);
	test_half("trunc16", GF_CODEC_TRUNC16, n, offset);
}

/* --- q8 ------------------------------------------------------------------- */

static const struct {
	const char *name;
	float scale;
	int special;
} q8_shapes[] = {
	{"normal", 1, 0},   {"special", 1, 1}, {"tiny", 1e-37f, 0},
	{"huge", 1e37f, 0}, {"zero", 0, 0},
};

static void test_q8(size_t shape, size_t n, size_t block)
{
	const struct gf_codec_fns *want = &ref->codecs[GF_CODEC_Q8];
	const struct gf_gpu_codec *on_gpu = &gpu->codecs[GF_CODEC_Q8];
	float *x = draw_floats(&rng, n, q8_shapes[shape].special);
	float *y = draw_floats(&rng, n, 0);
	size_t nblocks = (n + block - 1) / block, bytes = n + 4 * nblocks;
	uint8_t *q = gf_xcalloc(bytes + 1, 1), *dq;
	float *dx, *dy;

	/* Halves are where rounding shows. */
	for (size_t i = 0; i < n; i++)
		x[i] = i % 5 == 1 ? 127 : i % 5 == 2 ? (float)i + 0.5f : x[i];
	for (size_t i = 0; i < n; i++)
		x[i] *= q8_shapes[shape].scale;
	dx = put(x, n * 4, 4);
	dy = put(y, n * 4, 8);
	dq = put(q, bytes, 4);
	for (size_t b = 0; b < nblocks; b++) {
		size_t at = b * block, count = n - at < block ? n - at : block;
		uint8_t *to = q + b * (block + 4);

		want->encode(to, x + at, count, block);
		want->decode(x + at, to, count, block);
		want->decode_add(y + at, to, count, block);
	}
	on_gpu->encode(stream, dq, dx, n, block);
	/* the header of a block with NaN is some NaN */
	for (size_t b = 0; b < nblocks; b++) {
		size_t at = b * (block + 4);
		size_t count = n - b * block < block ? n - b * block : block;

		EXPECT(differs_f32((float *)(void *)(q + at), (float *)(void *)(dq + at), 1) == 1 &&
			       differs_bytes(q + at + 4, dq + at + 4, count) == count,
		       "q8 %s, n=%zu, block %zu", q8_shapes[shape].name, n, b);
	}
	on_gpu->decode(stream, dx, dq, n, block);
	on_gpu->decode_add(stream, dy, dq, n, block);
	EXPECT(differs_f32(x, dx, n) == n, "q8 %s, n=%zu: decoded", q8_shapes[shape].name, n);
	EXPECT(differs_f32(y, dy, n) == n, "q8 %s, n=%zu: added", q8_shapes[shape].name, n);
	done("q8", n);
	free(x);
	free(y);
	free(q);
}

/* --- fp8 and fp4 ---------------------------------------------------------- */

static const struct {
	const char *name;
	enum gf_codec_number codec;
	size_t blocks[3];
} minifloats[] = {
	{"fp8", GF_CODEC_FP8, {128, 4, 300}},
	{"fp4", GF_CODEC_FP4, {32, 7, 300}},
};

/* Values and codes begin so many elements and bytes after an aligned address.
 */
static void test_minifloat(size_t c, size_t shape, size_t n, size_t block, size_t values_at,
			   size_t codes_at)
{
	const struct gf_codec_fns *want = &ref->codecs[minifloats[c].codec];
	const struct gf_gpu_codec *on_gpu = &gpu->codecs[minifloats[c].codec];
	size_t nblocks = (n + block - 1) / block, bytes = n * 2 + nblocks;
	float *x = draw_floats(&rng, n, q8_shapes[shape].special);
	float *y = draw_floats(&rng, n, 0);
	uint8_t *wire = gf_xcalloc(bytes + 1, 1), *dwire;
	float *dx, *dy;

	for (size_t i = 0; i < n; i++)
		x[i] *= q8_shapes[shape].scale;
	/* ties, and numbers of one block that are unlike */
	for (size_t i = 0; i < n; i++)
		x[i] = i % 5 == 1   ? x[i] * 0x1p-9f
		       : i % 7 == 2 ? (float)(i % 129) / 16 * q8_shapes[shape].scale
				    : x[i];
	dx = put(x, n * 4, 4 * values_at);
	dy = put(y, n * 4, 8 * values_at);
	dwire = put(wire, bytes, codes_at);
	want->encode(wire, x, n, block);
	on_gpu->encode(stream, dwire, dx, n, block);
	EXPECT(differs_bytes(wire, dwire, bytes) == bytes,
	       "%s %s, n=%zu of %zu, at %zu and %zu: encoded, byte %zu", minifloats[c].name,
	       q8_shapes[shape].name, n, block, values_at, codes_at,
	       differs_bytes(wire, dwire, bytes));
	if (shape == 0 && codes_at == 0) { /* every code, and NaN's scale */
		for (size_t i = 0; i < bytes; i++)
			wire[i] = (uint8_t)gf_rng_below(&rng, 256);
		device_write(dwire, wire, bytes);
	}
	want->decode(x, wire, n, block);
	want->decode_add(y, wire, n, block);
	on_gpu->decode(stream, dx, dwire, n, block);
	on_gpu->decode_add(stream, dy, dwire, n, block);
	EXPECT(differs_f32(x, dx, n) == n, "%s %s, n=%zu of %zu: decoded", minifloats[c].name,
	       q8_shapes[shape].name, n, block);
	EXPECT(differs_f32(y, dy, n) == n, "%s %s, n=%zu of %zu: added", minifloats[c].name,
	       q8_shapes[shape].name, n, block);
	done(minifloats[c].name, n);
	free(x);
	free(y);
	free(wire);
}

/* --- sums ----------------------------------------------------------------- */

static void test_norms(size_t n, size_t chunk, size_t offset, int special)
{
	size_t nchunks = (n + chunk - 1) / chunk, differ = 0;
	float *x = draw_floats(&rng, n, special);
	float *y = draw_floats(&rng, n, special);
	double *want = gf_xcalloc(nchunks + 1, sizeof(*want));
	double *got = gf_xcalloc(nchunks + 1, sizeof(*got)), *dgot;
	float *dx = put(x, n * 4, offset * 4), *dy = put(y, n * 4, 0);

	dgot = put(got, nchunks * 8, 0);
	for (int with_add = 0; with_add < 2; with_add++) {
		for (size_t c = 0; c < nchunks; c++) {
			size_t at = c * chunk;
			size_t count = n - at < chunk ? n - at : chunk;

			want[c] = with_add ? ref->add_sum_abs_f32(y + at, x + at, count)
					   : ref->sum_abs_f32(y + at, count);
		}
		gpu->chunk_norms_f32(stream, dy, with_add ? dx : NULL, n, chunk, dgot);
		device_read(got, dgot, nchunks * 8);
		for (size_t c = 0; c < nchunks; c++)
			differ += !(got[c] == want[c] || (isnan(got[c]) && isnan(want[c])));
		EXPECT(differ == 0, "norms, n=%zu of %zu: %zu differ", n, chunk, differ);
		EXPECT(differs_f32(y, dy, n) == n, "norms, n=%zu: added", n);
	}
	done("norms", n);
	free(x);
	free(y);
	free(want);
	free(got);
}

static void test_nonfinite(size_t n)
{
	static const float bad[] = {NAN, -INFINITY, INFINITY, -NAN};
	float *x = gf_xcalloc(n + 1, sizeof(*x));
	uint32_t flag = 2, got;

	for (size_t i = 0; i < n; i++)
		x[i] = i % 2 ? 3.4e38f : -0.0f;
	for (size_t c = 0; n > 0 && c < 5; c++) {
		size_t at = gf_rng_below(&rng, n);
		uint32_t *dflag = put(&flag, sizeof(flag), 0);

		if (c < 4)
			x[at] = bad[c];
		gpu->nonfinite_f32(stream, put(x, n * 4, 4 * (c % 4)), dflag, n);
		device_read(&got, dflag, sizeof(got));
		EXPECT(got == (c < 4 ? 3 : 2), "nonfinite: %u of %zu, case %zu", got, n, c);
		x[at] = 1;
		done("nonfinite", n);
	}
	free(x);
}

/* --- chunks --------------------------------------------------------------- */

static void test_chunks(size_t n, size_t chunk, size_t offset)
{
	size_t nchunks = (n + chunk - 1) / chunk, some = 0, packed = 0;
	float *pool = draw_floats(&rng, n, 0), *history = draw_floats(&rng, n, 0);
	float *want = gf_xcalloc(n + chunk, sizeof(*want));
	float *zero = gf_xcalloc(n + chunk, sizeof(*zero));
	uint32_t *list = gf_xcalloc(nchunks + 1, sizeof(*list));
	uint8_t *sent = gf_xcalloc(nchunks + 1, 1);
	float *dpool, *dpacked, *dhistory;
	uint32_t *dlist;

	for (size_t c = 0; c < nchunks; c++) {
		size_t at = c * chunk, count = n - at < chunk ? n - at : chunk;

		sent[c] = gf_rng_below(&rng, 2) || c + 1 == nchunks;
		for (size_t i = 0; i < count; i++)
			history[at + i] = sent[c] ? 0 : 0.9f * pool[at + i];
		if (!sent[c])
			continue;
		list[some++] = (uint32_t)c;
		memcpy(want + packed, pool + at, count * 4);
		packed += count;
	}
	dpool = put(pool, n * 4, offset * 4);
	dpacked = put(zero, packed * 4, 0);
	dhistory = put(zero, n * 4, offset * 4);
	dlist = put(list, some * 4, 0);
	gpu->gather_chunks_f32(stream, dpacked, dpool, n, chunk, dlist, some);
	EXPECT(differs_f32(want, dpacked, packed) == packed, "gather, n=%zu of %zu", n, chunk);
	gpu->keep_chunks_f32(stream, put(&(uint32_t){1}, 4, 0), dhistory, dpool, n, chunk,
			     put(sent, nchunks, 0), 0.9f);
	EXPECT(differs_f32(zero, dhistory, n) == n, "skipped, n=%zu of %zu", n, chunk);
	gpu->keep_chunks_f32(stream, n % 2 ? put(&(uint32_t){0}, 4, 0) : NULL, dhistory, dpool, n,
			     chunk, put(sent, nchunks, 0), 0.9f);
	EXPECT(differs_f32(history, dhistory, n) == n, "keep, n=%zu of %zu", n, chunk);
	done("chunks", n);
	free(pool);
	free(history);
	free(want);
	free(zero);
	free(list);
	free(sent);
}

/* Chunks that wait are measured as they are, the others by their sums. */
static void test_share(size_t n, int bad)
{
	double *left = gf_xcalloc(n, sizeof(*left));
	double *sums = gf_xcalloc(n, sizeof(*sums));
	float *want = gf_xcalloc(n + 1, sizeof(*want)), *got;
	float *zero = gf_xcalloc(n + 1, sizeof(*zero));
	uint32_t *chosen = gf_xcalloc(n, sizeof(*chosen));
	uint8_t *sent = gf_xcalloc(n, 1);
	struct gf_gpu_norms o = {.count = n, .part = 1.0 / 3};

	for (size_t i = 0; i < n; i++) {
		left[i] = gf_rng_uniform(&rng) * 1e5;
		sent[i] = gf_rng_below(&rng, 2) == 1;
		if (sent[i])
			left[i] = NAN; /* of an older step, whatever it is */
		want[i] = (float)left[i];
		if (!sent[i])
			continue;
		chosen[o.nchosen] = (uint32_t)i;
		sums[o.nchosen] = gf_rng_uniform(&rng) * 1e5;
		want[i] = (float)(sums[o.nchosen++] * o.part);
	}
	if (bad == 1 && o.nchosen) {
		sums[o.nchosen / 2] = NAN;
		want[chosen[o.nchosen / 2]] = NAN;
		want[n] = INFINITY;
	}
	if (bad == 2 && !sent[n - 1]) {
		left[n - 1] = INFINITY;
		want[n - 1] = want[n] = INFINITY;
	}
	got = put(zero, (n + 1) * sizeof(*zero), 0);
	o.shared = got;
	o.bad = got + n;
	o.left = put(left, n * sizeof(*left), 0);
	o.sent = put(sent, n, 0);
	o.sums = put(sums, n * sizeof(*sums), 0);
	o.chosen = put(chosen, n * sizeof(*chosen), 0);
	gpu->share_norms(stream, &o);
	EXPECT(differs_f32(want, got, n + 1) == n + 1, "norms, n=%zu, bad %d", n, bad);
	done("share", n);
	free(left);
	free(sums);
	free(want);
	free(zero);
	free(chosen);
	free(sent);
}

/* --- LARS ----------------------------------------------------------------- */

/* gf_lars_update, with ref's sums. */
static void lars_ref(const struct gf_gpu_lars *o, int plain, const float *grad, float *weight,
		     float *velocity, size_t n)
{
	double w = sqrt(ref->sum_squares_f32(weight, n)), trust = 1;
	double g = fabs((double)o->step.scale) * sqrt(ref->sum_squares_f32(grad, n));
	struct gf_sgd_step s = o->step;

	if (!plain && w != 0 && g != 0)
		trust = o->eta * w / (g + o->weight_decay * w + o->epsilon);
	trust *= o->rate;
	s.scale = (float)(trust * (double)o->step.scale);
	s.weight_decay = plain ? 0 : (float)(o->weight_decay * trust);
	ref->sgd_f32(&s, grad, weight, velocity, n);
}

/* rescaled: the step's scale is the device's. */
static void test_lars(int nesterov, uint32_t skip, int rescaled, double rate)
{
	static const size_t counts[] = {1, 4096, 5, 0, 4097, 12290, 33, 8192};
	enum { N = GF_ARRAY_LENGTH(counts) };
	static const uint8_t plain[N] = {0, 0, 1, 0, 0, 0, 0, 1};
	size_t at[N + 1] = {0}, pieces[N + 1] = {0};
	struct gf_gpu_lars o = {{0.1f, 0.9f, 0, 0.5f, nesterov}, rate, 0.01, 1e-9, 5e-4, NULL};
	struct gf_gpu_tensors t = {N, NULL, NULL, 0, NULL};
	struct gf_gpu_gate gate = {put(&skip, sizeof(skip), 0), NULL};
	float *g, *w, *u, *dg, *dw, *du;

	for (size_t i = 0; i < N; i++) {
		at[i + 1] = at[i] + counts[i];
		pieces[i + 1] = pieces[i] + (counts[i] + GF_GPU_PIECE - 1) / GF_GPU_PIECE;
	}
	t.npieces = pieces[N];
	t.offsets = put(at, sizeof(at), 0);
	t.pieces = put(pieces, sizeof(pieces), 0);
	t.plain = put(plain, sizeof(plain), 0);
	o.work = device_alloc(gf_gpu_lars_work_bytes(&t));
	g = draw_floats(&rng, at[N], 0);
	w = draw_floats(&rng, at[N], 0);
	u = draw_floats(&rng, at[N], 0);
	for (size_t i = at[6]; i < at[7]; i++)
		w[i] = 0; /* trust 1 */
	dg = put(g, at[N] * 4, 4);
	dw = put(w, at[N] * 4, 4);
	du = put(u, at[N] * 4, 4);
	for (size_t i = 0; i < N && !skip; i++)
		lars_ref(&o, plain[i], g + at[i], w + at[i], u + at[i], counts[i]);
	if (rescaled) {
		gate.scale = put(&o.step.scale, sizeof(o.step.scale), 0);
		o.step.scale = 7;
	}
	gpu->lars_f32(stream, &o, &t, &gate, dg, dw, du);
	device_read(g, dw, at[N] * 4);
	for (size_t i = 0; i < at[N]; i++)
		EXPECT_NEAR(g[i], w[i], TOLERANCE_LARS, "lars, weight %zu", i);
	device_read(g, du, at[N] * 4);
	for (size_t i = 0; i < at[N]; i++)
		EXPECT_NEAR(g[i], u[i], TOLERANCE_LARS, "lars, velocity %zu", i);
	done("lars", at[N]);
	free(g);
	free(w);
	free(u);
}

/* --- AdamW -----------------------------------------------------------------
 */

/* Steps of which the second is skipped, so that the third counts as the second; the last one's
 * scale is the device's. */
static void test_adamw(size_t n, const size_t *offset, bool plain)
{
	const struct gf_adamw_rule rule = {.01, .9, .99, .1, 1e-8};
	static const uint32_t skips[] = {0, 1, 0, 0};
	float *grad = draw_floats(&rng, n, 1), *w = draw_floats(&rng, n, 1);
	float *m = draw_floats(&rng, n, 0), *v = gf_xcalloc(n + 1, sizeof(*v));
	float *dg = put(grad, n * 4, offset[0] * 4);
	float *dw = put(w, n * 4, offset[1] * 4);
	float *dm = put(m, n * 4, offset[1] * 4);
	float *dv = put(v, n * 4, offset[1] * 4), rescaled = -2;
	uint64_t zero = 0, steps = 0, *there = put(&zero, sizeof(zero), 0);
	struct gf_adamw_step *now = device_alloc(sizeof(*now));

	for (size_t i = 0; i < GF_ARRAY_LENGTH(skips); i++) {
		const bool last = i + 1 == GF_ARRAY_LENGTH(skips);
		const struct gf_gpu_gate gate = {put(&skips[i], sizeof(skips[i]), 0),
						 last ? put(&rescaled, sizeof(rescaled), 0) : NULL};
		struct gf_adamw_step want;

		gpu->adamw_begin(stream, &rule, .5f, &gate, there, now);
		gpu->adamw_f32(stream, now, plain, gate.skip, dg, dw, dm, dv, n);
		if (skips[i])
			continue;
		want = adamw_step(&rule, last ? rescaled : .5f, ++steps);
		if (plain)
			want.keep = 1;
		ref->adamw_f32(&want, grad, w, m, v, n);
	}
	device_read(&zero, there, sizeof(zero));
	EXPECT(zero == steps, "adamw: %zu steps", (size_t)zero);
	EXPECT(differs_f32(w, dw, n) == n && differs_f32(m, dm, n) == n &&
		       differs_f32(v, dv, n) == n,
	       "adamw, n=%zu, offsets %zu %zu, element %zu", n, offset[0], offset[1],
	       differs_f32(w, dw, n));
	done("adamw", n);
	free(grad);
	free(w);
	free(m);
	free(v);
}

/* --- clipping ------------------------------------------------------------- */

static void test_clip(size_t n, size_t offset)
{
	/* of the gradient's norm: clipped, at the limit, not clipped */
	static const double limits[] = {1e-3, .5, 1.001, 40};
	static const float scales[] = {1, 0.25f, -3};
	float *x = draw_floats(&rng, n, 0), *dx = put(x, n * 4, offset * 4);
	const double full = sqrt(ref->sum_squares_f32(x, n));

	for (size_t c = 0; c < 12; c++) {
		struct gf_gpu_clip o = {.scale = scales[c / 4]};
		const double norm = fabs((double)o.scale) * full;
		float got = NAN, want = o.scale, *factor = put(&got, 4, 0);

		o.norm = norm * limits[c % 4];
		o.work = device_alloc(gf_gpu_clip_work_bytes(n));
		if (norm > o.norm)
			want = (float)((double)o.scale * (o.norm / norm));
		gpu->clip_f32(stream, &o, dx, n, factor);
		device_read(&got, factor, sizeof(got));
		EXPECT_NEAR((double)got / (double)o.scale, (double)want / (double)o.scale,
			    TOLERANCE_CLIP, "clip, n=%zu, case %zu", n, c);
	}
	done("clip", n);
	free(x);
}

/* Whether such a step is skipped is the flag's business (nonfinite_f32). */
static void test_clip_bad(float bad, float want)
{
	float x[3] = {1, bad, 2}, got = 5, *factor = put(&got, 4, 0);
	const struct gf_gpu_clip o = {
		.scale = .5, .norm = 1, .work = device_alloc(gf_gpu_clip_work_bytes(3))};

	gpu->clip_f32(stream, &o, put(x, sizeof(x), 0), 3, factor);
	device_read(&got, factor, sizeof(got));
	EXPECT(got == want, "clip: want %g, got %g", want, got);
	done("clip", 3);
}

int main(void)
{
	static const size_t chunks[] = {1, 2, 4, 1000, 4096, 32000, 70000};
	const char *why = device_open();

	if (why) {
		printf("%s\n", why);
		return 77;
	}
	stream = device_stream();
	ref = gf_kernels_named("ref");
	gf_rng_init(&rng, 1, 0);
	for (size_t n = 0; n < GF_ARRAY_LENGTH(sizes); n++) {
		for (size_t o = 0; o < GF_ARRAY_LENGTH(offsets); o++) {
			for (size_t c = 0; c < GF_ARRAY_LENGTH(elementwise); c++)
				test_elementwise(c, sizes[n], offsets[o]);
			test_halves(sizes[n], offsets[o]);
			test_adamw(sizes[n], offsets[o], o % 2);
		}
		for (size_t s = 0; s < GF_ARRAY_LENGTH(q8_shapes); s++) {
			test_q8(s, sizes[n], 1024);
			test_q8(s, sizes[n], 4);
			test_q8(s, sizes[n], 2500);
			for (size_t i = 0; i < 6; i++)
				test_minifloat(i % 2, s, sizes[n], minifloats[i % 2].blocks[i / 2],
					       1, 4);
			for (size_t i = 0; i < 4; i++)
				test_minifloat(i % 2, s, sizes[n], minifloats[i % 2].blocks[0],
					       i / 2, 0);
		}
		test_nonfinite(sizes[n]);
		test_clip(sizes[n], n % 4);
	}
	for (size_t c = 0; c < GF_ARRAY_LENGTH(chunks); c++)
		for (size_t i = 0; i < 3; i++) {
			size_t n = (const size_t[]){20001, 64000, 1}[i];

			if (n / chunks[c] > 2000)
				n = chunks[c] * 777;
			test_norms(n, chunks[c], i, 0);
			test_norms(n, chunks[c], 0, 1);
			test_chunks(n, chunks[c], i);
		}
	for (int bad = 0; bad < 3; bad++)
		for (size_t n = 1; n < 3000; n = n * 3 + 1)
			test_share(n, bad);
	for (int nest = 0; nest < 2; nest++)
		for (uint32_t skip = 0; skip < 2; skip++)
			test_lars(nest, skip, nest != (int)skip, nest ? 0.3 : 1);
	test_clip_bad(INFINITY, 0);
	test_clip_bad(NAN, .5);
	return TEST_END();
}
