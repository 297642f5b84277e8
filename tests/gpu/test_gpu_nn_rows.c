/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn_device.h"

#include "../unit/test.h"
#include "base/array.h"
#include "base/rng.h"
#include "gf_gpu_nn_kernels.h"
#include "half.h"

/*
 * Kernels that look at rows as a whole, of every length that they treat in its own way, beside sums
 * in f64; embeddings of tables with few and many rows.
 */
static const struct gf_gpu_nn_kernels *const k = &gf_gpu_nn_kernels_cuda;
static struct gf_gpu *gpu;
static struct gf_gpu_stream *stream;
static struct gf_rng rng;

static const struct {
	enum gf_dtype dtype;
	double tolerance;
} types[] = {{GF_F32, 2e-5}, {GF_F16, 2e-3}, {GF_BF16, 2e-2}};

static const size_t widths[] = {1,   3,    8,    13,   33,   64,   65,   100,  128,  255,  256, 257,
				768, 1000, 1023, 1024, 1025, 1030, 2056, 4095, 4096, 4104, 5001};

/* --- values of a type, on the host as f32 -----------------------------------
 */

static float rounded(enum gf_dtype t, float x)
{
	return t == GF_F16 ? f16_to(f16_of(x)) : t == GF_BF16 ? bf16_to(bf16_of(x)) : x;
}

static float *draw(enum gf_dtype t, size_t n, double most)
{
	float *x = gf_xcalloc(n + 1, sizeof(*x));

	for (size_t i = 0; i < n; i++)
		x[i] = rounded(t, (float)((2 * gf_rng_uniform(&rng) - 1) * most));
	return x;
}

/* Each third row has values of -inf after its first one. */
static float *masked(float *x, size_t n, size_t width)
{
	for (size_t i = 0; i < n; i++)
		if (i / width % 3 == 1 && i % width % 5 > 1)
			x[i] = -INFINITY;
	return x;
}

/* On the device, aligned to 16 bytes. */
#define AHEAD 3

static void *put(enum gf_dtype t, const float *x, size_t n)
{
	float *words = gf_xcalloc(n + AHEAD + 1, sizeof(*words)), *there;
	uint16_t *halves = (uint16_t *)(void *)(words + AHEAD);

	for (size_t i = 0; i < n; i++)
		if (t == GF_F32)
			words[AHEAD + i] = x[i];
		else
			halves[i] = t == GF_F16 ? f16_of(x[i]) : bf16_of(x[i]);
	there = nn_device_put(words, n + AHEAD);
	free(words);
	return there + AHEAD;
}

static float *take(enum gf_dtype t, void *there, size_t n)
{
	float *words = gf_xcalloc(n + 1, sizeof(*words));
	float *x = gf_xcalloc(n + 1, sizeof(*x));
	const uint16_t *halves = (const uint16_t *)(const void *)words;

	nn_device_get(words, there, t == GF_F32 ? n : (n + 1) / 2);
	for (size_t i = 0; i < n; i++)
		x[i] = t == GF_F32   ? words[i]
		       : t == GF_F16 ? f16_to(halves[i])
				     : bf16_to(halves[i]);
	free(words);
	nn_device_drop((float *)there - AHEAD);
	return x;
}

static void drop(void *there)
{
	nn_device_drop((float *)there - AHEAD);
}

/* The first of n values that is not what it should be. */
static void compare(const char *what, size_t type, size_t width, const float *got,
		    const double *want, size_t n)
{
	const double tolerance = types[type].tolerance;

	for (size_t i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= tolerance * fmax(1, fabs(want[i])))) {
			EXPECT(0, "%s, %s, width %zu, value %zu: want %g, got %g", what,
			       gf_dtype_names[types[type].dtype], width, i, want[i], got[i]);
			return;
		}
}

/* --- softmax ----------------------------------------------------------------
 */

static void test_softmax(size_t type, size_t width, bool causal)
{
	enum { ROWS = 11 };
	const enum gf_dtype t = types[type].dtype;
	const size_t n = ROWS * width;
	float *x = masked(draw(t, n, 4), n, width), *d = draw(t, n, 1);
	float *p, *dp;
	double *want = gf_xcalloc(n, sizeof(*want));
	double *slope = gf_xcalloc(n, sizeof(*slope));
	const struct gf_gpu_scores o = {
		.dtype = t,
		.p = put(t, x, n),
		.dp = put(t, d, n),
		.scale = 0.25f,
		.rows = ROWS,
		.width = width,
		.causal = causal,
	};

	k->softmax(stream, &o);
	k->softmax_backward(stream, &o);
	p = take(t, o.p, n);
	dp = take(t, o.dp, n);
	for (size_t r = 0; r < ROWS; r++) {
		const size_t end = causal ? r % width + 1 : width;
		double sum = 0, dot = 0;

		for (size_t i = r * width; i < r * width + end; i++)
			sum += exp(x[i]);
		for (size_t i = r * width; i < r * width + end; i++) {
			want[i] = exp(x[i]) / sum;
			dot += p[i] * d[i];
		}
		for (size_t i = r * width; i < r * width + end; i++)
			slope[i] = 0.25 * p[i] * (d[i] - dot);
	}
	compare(causal ? "causal softmax" : "softmax", type, width, p, want, n);
	compare(causal ? "slope of causal softmax" : "slope of softmax", type, width, dp, slope, n);
	free(x);
	free(d);
	free(p);
	free(dp);
	free(want);
	free(slope);
}

/* --- the loss ---------------------------------------------------------------
 */

/* `bad`: the first row without a good label; the last row has none, either */
static const struct {
	size_t rows, bad;
} losses[] = {{1, 0},       {2048, 2047}, {2049, 2049}, {2049, 2048},
	      {5001, 3000}, {5001, 5001}, {5001, 5002}};

#define NO_LABEL (-100)

/* Of logits and labels on the host. */
static struct gf_gpu_outcome run_loss(struct gf_gpu_loss o, const float *logits,
				      const int32_t *labels)
{
	struct gf_gpu_outcome outcome = {0};
	float *named = nn_device_put(labels, o.rows);
	float *work = nn_device_put(NULL, 3 * o.rows + 1);
	float *end = nn_device_put(&outcome, sizeof(outcome) / 4 + 1);
	void *in = put(o.dtype, logits, o.rows * o.classes);

	o.logits = in;
	o.labels = (const int32_t *)(void *)named;
	o.work = work + 1; /* aligned to 8 bytes */
	o.outcome = (struct gf_gpu_outcome *)(void *)(end + 1);
	k->softmax_loss(stream, &o);
	nn_device_get(&outcome, end + 1, sizeof(outcome) / 4);
	drop(in);
	nn_device_drop(named);
	nn_device_drop(work);
	nn_device_drop(end);
	return outcome;
}

static void test_loss(size_t type, size_t classes, size_t rows, size_t bad)
{
	const enum gf_dtype t = types[type].dtype;
	const size_t n = rows * classes;
	const size_t unlabelled = (rows + 1) / 4 - (bad < rows && bad % 4 == 2);
	const size_t counted = rows - unlabelled;
	float *x = draw(t, n, 3), *got;
	double *want = gf_xcalloc(n, sizeof(*want)), loss = 0;
	int32_t *labels = gf_xcalloc(rows, sizeof(*labels));
	struct gf_gpu_outcome outcome;
	size_t correct = 0;
	void *dlogits = put(t, x, n);

	for (size_t r = 0; r < rows; r++) {
		float *row = x + r * classes;
		double sum = 0;
		size_t best = 0;

		labels[r] = (int32_t)gf_rng_below(&rng, (uint32_t)classes);
		if (r % 4 == 2 && r != bad) {
			labels[r] = NO_LABEL;
			continue;
		}
		for (size_t i = 0; i < classes && r % 5 == 3; i++)
			if ((int32_t)i != labels[r] && i % 3)
				row[i] = -INFINITY;
		/* two are the largest: the first of them counts */
		row[gf_rng_below(&rng, (uint32_t)classes)] = 5;
		row[gf_rng_below(&rng, (uint32_t)classes)] = 5;
		for (size_t i = 0; i < classes; i++) {
			sum += exp(row[i]);
			best = row[i] > row[best] ? i : best;
		}
		if (r % 2)
			labels[r] = (int32_t)best;
		if (r == bad || (bad < r && r == rows - 1))
			labels[r] = r % 2 ? -7 : (int32_t)classes;
		else
			loss += (log(sum) - row[labels[r]]) / (double)counted;
		for (size_t i = 0; i < classes; i++)
			want[r * classes + i] = 100 *
						(exp(row[i]) / sum - ((int32_t)i == labels[r])) /
						(double)counted;
		correct += (int32_t)best == labels[r];
	}
	outcome = run_loss(
		(struct gf_gpu_loss){
			.dtype = t,
			.dlogits = dlogits,
			.rows = rows,
			.counted = counted,
			.no_label = NO_LABEL,
			.classes = classes,
			.scale = 100,
		},
		x, labels);
	got = take(t, dlogits, n);
	EXPECT_NEAR(outcome.loss, loss, 1e-5, "loss of %zu classes", classes);
	EXPECT(bad < rows || outcome.correct == correct, "%zu classes: want %zu correct, got %zu",
	       classes, correct, (size_t)outcome.correct);
	EXPECT(outcome.bad_label == (bad < rows ? bad + 1 : 0) &&
		       outcome.label == (bad < rows ? labels[bad] : 0),
	       "%zu rows: want bad label %zu, got %zu", rows, bad + 1, (size_t)outcome.bad_label);
	compare("gradient of the loss", type, classes, got, want, n);
	free(x);
	free(got);
	free(want);
	free(labels);
}

/* Logits that are no numbers: of the label, and of a class after it. */
static const struct {
	float own, other, loss;
} wild[] = {
	{-INFINITY, 1, INFINITY},
	{NAN, 1, NAN},
	{1, NAN, NAN},
	{1, INFINITY, NAN},
};

static void test_wild(size_t type, size_t classes, size_t c)
{
	const enum gf_dtype t = types[type].dtype;
	const int32_t label = 1;
	float *x = draw(t, classes, 0);
	void *dlogits = put(t, x, classes);
	struct gf_gpu_outcome outcome;

	x[1] = wild[c].own;
	x[classes - 1] = wild[c].other;
	outcome = run_loss((struct gf_gpu_loss){.dtype = t,
						.dlogits = dlogits,
						.rows = 1,
						.counted = 1,
						.no_label = NO_LABEL,
						.classes = classes,
						.scale = 1},
			   x, &label);
	EXPECT(isnan(wild[c].loss) ? isnan(outcome.loss) : outcome.loss == wild[c].loss,
	       "%s, %zu classes, logits %g and %g: want loss %g, got %g", gf_dtype_names[t],
	       classes, wild[c].own, wild[c].other, wild[c].loss, outcome.loss);
	EXPECT(outcome.correct == 0,
	       "%s, %zu classes, logits %g and %g: want none correct, got %zu", gf_dtype_names[t],
	       classes, wild[c].own, wild[c].other, (size_t)outcome.correct);
	drop(dlogits);
	free(x);
}

/* --- layer norm -------------------------------------------------------------
 */

struct norm {
	size_t rows, width;
	float *x, *dout, *din, *weight, *bias;
	double *y, *dx, *dweight, *dbias;
};

static void norm_by_hand(const struct norm *o, double epsilon, bool add)
{
	const size_t w = o->width;

	for (size_t r = 0; r < o->rows; r++) {
		const float *x = o->x + r * w, *d = o->dout + r * w;
		double mean = 0, variance = 0, sum = 0, dot = 0, inverse;

		for (size_t i = 0; i < w; i++)
			mean += x[i] / (double)w;
		for (size_t i = 0; i < w; i++)
			variance += (x[i] - mean) * (x[i] - mean) / (double)w;
		inverse = 1 / sqrt(variance + epsilon);
		for (size_t i = 0; i < w; i++) {
			const double hat = (x[i] - mean) * inverse;

			o->y[r * w + i] = o->weight[i] * hat + o->bias[i];
			sum += d[i] * o->weight[i] / (double)w;
			dot += d[i] * o->weight[i] * hat / (double)w;
			o->dweight[i] += 0.5 * d[i] * hat;
			o->dbias[i] += 0.5 * d[i];
		}
		for (size_t i = 0; i < w; i++)
			o->dx[r * w + i] = (add ? o->din[r * w + i] : 0) +
					   inverse * (d[i] * o->weight[i] - sum -
						      dot * (x[i] - mean) * inverse);
	}
}

static void test_norm(size_t type, size_t width, size_t rows, bool add)
{
	const enum gf_dtype t = types[type].dtype;
	const size_t n = rows * width;
	const struct norm o = {rows,
			       width,
			       draw(t, n, 2),
			       draw(t, n, 1),
			       draw(t, n, 1),
			       draw(GF_F32, width, 1),
			       draw(GF_F32, width, 1),
			       gf_xcalloc(n, sizeof(double)),
			       gf_xcalloc(n, sizeof(double)),
			       gf_xcalloc(width, sizeof(double)),
			       gf_xcalloc(width, sizeof(double))};
	struct gf_gpu_norm g = {
		.view = {t, rows, width, 1},
		.epsilon = 1e-3,
		.weight = nn_device_put(o.weight, width),
		.bias = put(GF_F32, o.bias, width),
		.in = put(t, o.x, n),
		.out = put(t, o.x, n),
		.saved = nn_device_put(NULL, 2 * rows),
		.dout = put(t, o.dout, n),
		.din = put(t, o.din, n),
		.add = add,
		.dweight = nn_device_put(NULL, width),
		.dbias = nn_device_put(NULL, width),
		.scale = 0.5f,
	};
	float *out, *din, *sums = gf_xcalloc(width, sizeof(*sums));
	const size_t work = gf_gpu_sums_work_bytes(&g.view) / 4 + AHEAD;

	g.work = nn_device_put(NULL, work) + AHEAD;
	norm_by_hand(&o, g.epsilon, add);
	k->layernorm(stream, &g);
	k->layernorm_backward(stream, &g);
	out = take(t, g.out, n);
	din = take(t, g.din, n);
	compare("layer norm", type, width, out, o.y, n);
	/* a deviation that is hardly more than epsilon makes large values */
	compare("gradient of layer norm", type, width, din, o.dx, n);
	nn_device_get(sums, g.dweight, width);
	compare("gradient of the weights", 0, width, sums, o.dweight, width);
	nn_device_get(sums, g.dbias, width);
	compare("gradient of the biases", 0, width, sums, o.dbias, width);
	nn_device_drop((float *)(uintptr_t)g.weight);
	drop((void *)(uintptr_t)g.bias);
	drop((void *)(uintptr_t)g.in);
	nn_device_drop(g.saved);
	drop((void *)(uintptr_t)g.dout);
	drop(g.work);
	nn_device_drop(g.dweight);
	nn_device_drop(g.dbias);
	free(o.x);
	free(o.dout);
	free(o.din);
	free(o.weight);
	free(o.bias);
	free(o.y);
	free(o.dx);
	free(o.dweight);
	free(o.dbias);
	free(out);
	free(din);
	free(sums);
}

/* --- embeddings -------------------------------------------------------------
 */

static const struct {
	size_t count, steps, width, entries;
	bool positional, aligned; /* the table */
} tables[] = {
	{1, 1, 1, 1, false, false},         {5, 5, 8, 7, false, true},
	{3001, 30, 16, 5, false, false},    {2500, 50, 13, 3, false, true},
	{1025, 25, 128, 1, false, true},    {40, 8, 1023, 9, false, true}, /* an odd width */
	{40, 8, 1500, 9, false, false},     {40, 8, 2056, 9, false, true},
	{30, 6, 2100, 4, false, true},      {60, 20, 24, 25, true, true},
	{2200, 11, 6, 11, true, false},     {3001, 30, 8, 600, false, true},
	{2500, 50, 13, 1000, false, false}, {40, 8, 2056, 300, false, true},
	{1300, 650, 8, 650, true, true},    {140000, 70, 1, 600, false, true},
	{50, 10, 8, 66000, false, true}, /* many blocks: once */
};

#define THREE_DIGITS (GF_ARRAY_LENGTH(tables) - 1) /* of its rows */

static size_t name_of(size_t c, const float *numbers, size_t i)
{
	return tables[c].positional ? i % tables[c].steps : (size_t)numbers[i];
}

static void test_embedding(size_t type, size_t c)
{
	const enum gf_dtype t = types[type].dtype;
	const size_t count = tables[c].count, width = tables[c].width;
	const size_t n = count * width, size = tables[c].entries * width;
	float *numbers = gf_xcalloc(count, sizeof(*numbers));
	float *table = draw(GF_F32, size, 1), *dout = draw(t, n, 1), *got;
	float *twice;
	double *want = gf_xcalloc(n, sizeof(*want));
	double *sums = gf_xcalloc(size, sizeof(*sums));
	struct gf_gpu_embedding e = {t, NULL, count, tables[c].steps, width, tables[c].entries, 1};
	void *out = put(t, dout, n), *there = put(t, dout, n);
	void *at = put(GF_F32, table, size), *dtable = put(GF_F32, table, size);
	void *again = put(GF_F32, table, size);
	float *outcome = nn_device_put(NULL, 16), *named, *off, *work;

	for (size_t i = 0; i < count; i++) {
		numbers[i] = (float)gf_rng_below(&rng, (uint32_t)tables[c].entries);
		for (size_t w = 0; w < width; w++) {
			const size_t row = name_of(c, numbers, i) * width;

			want[i * width + w] = rounded(t, table[row + w]);
			sums[row + w] += 2 * dout[i * width + w];
		}
	}
	named = nn_device_put(numbers, count);
	off = nn_device_put(table, size);
	work = nn_device_put(NULL, gf_gpu_embed_work_bytes(&e) / 4);
	e.numbers = tables[c].positional ? NULL : named;
	k->embed(stream, &e, tables[c].aligned ? at : off, out,
		 (struct gf_gpu_outcome *)(void *)(outcome + 1));
	k->embed_backward(stream, &e, there, 2, dtable, work);
	got = take(t, out, n);
	compare("embedding", type, width, got, want, n);
	free(got);
	k->embed_backward(stream, &e, there, 2, again, work);
	got = take(GF_F32, dtable, size);
	compare("gradient of the table", 0, width, got, sums, size);
	twice = take(GF_F32, again, size);
	EXPECT(memcmp(got, twice, size * sizeof(*got)) == 0,
	       "gradient of the table %zu: other bits the second time", c);
	free(got);
	e.add = true;
	dtable = put(GF_F32, twice, size);
	k->embed_backward(stream, &e, there, 2, dtable, work);
	got = take(GF_F32, dtable, size);
	for (size_t i = 0; i < size; i++)
		EXPECT(got[i] == 2 * twice[i], "table %zu, value %zu, added: want %g, got %g", c, i,
		       2 * twice[i], got[i]);
	drop(there);
	drop(at);
	nn_device_drop(named);
	nn_device_drop(off);
	nn_device_drop(work);
	nn_device_drop(outcome);
	free(numbers);
	free(table);
	free(dout);
	free(want);
	free(sums);
	free(got);
	free(twice);
}

/* A smaller batch uses the memory of the largest one. */
static void test_work(void)
{
	for (size_t channels = 8; channels < 3000; channels *= 3) {
		size_t before = 0;

		for (size_t rows = 1; rows < 20000; rows++) {
			const struct gf_gpu_view v = {GF_F16, rows, channels, 1};
			const size_t bytes = gf_gpu_sums_work_bytes(&v);

			EXPECT(bytes >= before, "%zu rows of %zu: %zu bytes", rows, channels,
			       bytes);
			before = bytes;
		}
	}
}

int main(void)
{
	const char *why = nn_device_open(&gpu, &stream);

	if (why) {
		printf("%s\n", why);
		return 77;
	}
	gf_rng_init(&rng, 7, 11);
	for (size_t t = 0; t < GF_ARRAY_LENGTH(types); t++) {
		for (size_t w = 0; w < GF_ARRAY_LENGTH(widths); w++) {
			if (!test_tries(w + t, 3))
				continue;
			test_softmax(t, widths[w], false);
			test_softmax(t, widths[w], true);
			test_loss(t, widths[w], 10, 10);
			test_loss(t, widths[w], 11, 11);
			for (size_t c = 0; widths[w] > 2 && c < GF_ARRAY_LENGTH(wild); c++)
				test_wild(t, widths[w], c);
			test_norm(t, widths[w], 3 + 7 * (w % 3), w % 2);
			test_norm(t, widths[w], 2, !(w % 2));
		}
		for (size_t c = 0; c < GF_ARRAY_LENGTH(losses); c++)
			test_loss(t, 5, losses[c].rows, losses[c].bad);
		for (size_t c = 0; c < THREE_DIGITS; c++)
			if (test_tries(c + t, 3))
				test_embedding(t, c);
	}
	if (test_tries(1, 1))
		test_embedding(0, THREE_DIGITS);
	test_work();
	return TEST_END();
}
