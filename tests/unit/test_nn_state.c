/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>

#include "base/array.h"
#include "nn_run.h"

/*
 * Everything but the layers' arithmetic: how parameters start, running statistics, what dropout
 * drops, numbers that an embedding looks up.
 */
#define TOLERANCE_SPREAD 0.1 /* variance of 10^3 and more draws */

/* --- the start ----------------------------------------------------------- */

/* Variance times the number of inputs: 2 where a ReLU comes before the next weights. */
static const struct {
	struct spec spec;
	double gain;
} starts[] = {
	{{CONV, .filters = 32, .kernel = 3, .pad = 1}, 2},
	{{NORM}, 0},
	{{RELU}, 0},
	{{CONV, .filters = 32, .kernel = 3}, 2},
	{{ADD, .a = 4, .b = 4}, 0},
	{{MAXPOOL}, 0},
	{{RELU}, 0},
	{{CONV, .filters = 40, .kernel = 3}, 1},
	{{GLOBALPOOL}, 0},
	{{FC, .filters = 40}, 1},
};

static void test_start_of(const struct gf_model *m, const struct gf_param *p, const float *values)
{
	const struct gf_layer *l = &m->layers[p->layer];
	size_t n = gf_shape_elems(&p->shape);
	double gain = starts[p->layer].gain, mean = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		mean += values[i] / (double)n;
		squares += (double)values[i] * values[i] / (double)n;
	}
	if (p != &m->params[l->first_param])
		EXPECT(squares == 0, "%s starts at 0", p->name);
	else if (l->type == GF_LAYER_BATCHNORM)
		EXPECT(mean == 1 && squares == 1, "%s starts at 1", p->name);
	else
		EXPECT_NEAR(squares * (double)(n / p->shape.dims[0]) / gain, 1, TOLERANCE_SPREAD,
			    "%s: gain %g", p->name, gain);
}

static void test_start(void)
{
	static const size_t input[3] = {4, 7, 7};
	struct spec specs[GF_ARRAY_LENGTH(starts)];
	struct gf_model *m;
	size_t *order, count, at = 0;
	float *a, *b;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(starts); i++)
		specs[i] = starts[i].spec;
	m = build_model(input, specs, GF_ARRAY_LENGTH(specs));
	order = gf_model_generation_order(m);
	count = gf_model_param_count(m);
	a = gf_xcalloc(count, sizeof(*a));
	b = gf_xcalloc(count, sizeof(*b));
	gf_net_init_params(m, 3, a);
	gf_net_init_params(m, 3, b);
	EXPECT(memcmp(a, b, count * sizeof(*a)) == 0, "one seed, one start");
	gf_net_init_params(m, 4, b);
	EXPECT(memcmp(a, b, count * sizeof(*a)) != 0, "two seeds, two starts");
	for (size_t t = 0; t < m->nparams; t++) {
		const struct gf_param *p = &m->params[order[t]];

		test_start_of(m, p, a + at);
		at += gf_shape_elems(&p->shape);
	}
	free(a);
	free(b);
	free(order);
	free_model(m);
}

/* --- running statistics ----------------------------------------------------
 */

/* Values 1 and 3: mean 2, variance 1 among them, 2 as an estimate of all; a tenth of it is taken
 * over from a start of 0 and 1. */
static void test_running(const struct gf_backend *b)
{
	static const size_t input[3] = {1};
	static const struct spec specs[] = {{NORM}, {FC, .filters = 2}};
	static const float want[] = {0.2f, 1.1f};
	struct gf_model *m = build_model(input, specs, 2);
	struct gf_net *net;
	struct run r;

	run_init(&r, m, 2, 2);
	r.input[0] = 1;
	r.input[1] = 3;
	net = new_net(b, &r);
	pass(b, net, &r);
	EXPECT(r.nrunning == 2, "%s: mean and variance", b->name);
	compare(b->name, r.running, want, 2, TOLERANCE_BACKEND);
	loss_of(b, net, &r, 0);
	copy_running(b, net, &r);
	compare(b->name, r.running, want, 2, TOLERANCE_BACKEND);
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

/* --- dropout -------------------------------------------------------------- */

static double dropped_loss(const struct gf_backend *b, struct gf_net *net, struct run *r,
			   size_t from, size_t count)
{
	float *input = r->input;
	int32_t *labels = r->labels;
	double loss;

	gf_net_set_samples(net, 11, 100 + from);
	r->input += from * gf_shape_elems(&r->m->input);
	r->labels += from;
	r->batch = count;
	loss = loss_of(b, net, r, 1);
	r->input = input;
	r->labels = labels;
	return loss;
}

/* Two halves of a batch drop what the whole batch drops; another seed and other numbers drop other
 * things; evaluation drops nothing. */
static void test_dropout(const struct gf_backend *b)
{
	static const size_t input[3] = {30};
	static const struct spec specs[] = {
		{DROPOUT, .rate = 0.25}, {FC, .filters = 20}, {RELU},
		{DROPOUT, .rate = 0.5},  {FC, .filters = 3},
	};
	struct gf_model *m = build_model(input, specs, GF_ARRAY_LENGTH(specs));
	struct gf_net *net;
	struct run r;
	double whole, halves, other;

	gf_rng_init(&rng, 12, 0);
	run_init(&r, m, 6, 6);
	net = new_net(b, &r);
	whole = dropped_loss(b, net, &r, 0, 6);
	halves = dropped_loss(b, net, &r, 0, 2) * 2 / 6 + dropped_loss(b, net, &r, 2, 4) * 4 / 6;
	EXPECT_NEAR(halves, whole, TOLERANCE_BACKEND, "%s: halves", b->name);
	r.batch = 6;
	gf_net_set_samples(net, 12, 100);
	other = loss_of(b, net, &r, 1);
	EXPECT(other != whole, "%s: another seed, the same loss", b->name);
	gf_net_set_samples(net, 11, 101);
	other = loss_of(b, net, &r, 1);
	EXPECT(other != whole, "%s: other samples, the same loss", b->name);
	other = loss_of(b, net, &r, 0);
	gf_net_set_samples(net, 13, 7);
	EXPECT(loss_of(b, net, &r, 0) == other, "%s: evaluation drops", b->name);
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

/* Of ones, the share that is kept, and what it becomes. */
static void test_dropout_rate(const struct gf_backend *b)
{
	static const size_t input[3] = {4096};
	static const struct spec specs[] = {{DROPOUT, .rate = 0.8}, {FC, .filters = 2}};
	struct gf_model *m = build_model(input, specs, 2);
	size_t weight, kept = 0;
	struct gf_net *net;
	struct run r;

	run_init(&r, m, 1, 1);
	for (size_t i = 0; i < 4096; i++)
		r.input[i] = 1;
	for (size_t i = 0; i < r.nparams; i++)
		r.params[i] = 0;
	r.labels[0] = 0;
	net = new_net(b, &r);
	pass(b, net, &r);
	/* generation order: bias first; d loss / d logit is -1/2 */
	weight = 2;
	for (size_t i = 0; i < 4096; i++) {
		float x = -2 * r.grads[weight + i];

		kept += x != 0;
		EXPECT(x == 0 || fabsf(x - 5) < 1e-4f, "%s: 1 became %g", b->name, x);
	}
	EXPECT(fabs((double)kept / 4096 - 0.2) < 0.02, "%s: kept %zu of 4096", b->name, kept);
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

/* Two tables are asked for the same numbers, and the first may have fewer rows, or the second. */
static void test_numbers(const struct gf_backend *b, size_t rows)
{
	static const size_t input[3] = {4};
	const struct spec specs[] = {{EMBEDDING, .entries = 9, .filters = 3},
				     {EMBEDDING, .a = INPUT, .entries = rows, .filters = 3},
				     {ADD, .a = 1, .b = 2},
				     {FC, .filters = 2}};
	static const float wrong[] = {8, 9, -1, NAN, INFINITY};
	struct gf_model *m = build_model(input, specs, 4);
	struct gf_net *net;
	struct run r;

	run_init(&r, m, 2, 2);
	net = new_net(b, &r);
	for (size_t i = rows > 8; i < GF_ARRAY_LENGTH(wrong); i++) {
		struct gf_error err = {""};
		const bool second = wrong[i] == 8;
		char text[128];

		r.input[5] = wrong[i];
		EXPECT(b->forward(net, r.params, r.input, 2, 1, &err) == -EINVAL, "%s: number %g",
		       b->name, wrong[i]);
		snprintf(text, sizeof(text),
			 "layer embedding%d: sample 1: want numbers of at least 0 and below %d, "
			 "got %g",
			 second, second ? 8 : 9, wrong[i]);
		EXPECT_TEXT(err.text, text);
	}
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

/* --- frozen layers -------------------------------------------------------- */

#define HALVES(frozen)                                                                             \
	"{\"format\": \"gf-model\", \"version\": 1, \"name\": \"halves\","                         \
	" \"input\": [2, 5, 5], \"classes\": 3, \"layers\": ["                                     \
	"{\"name\": \"conv\", \"type\": \"conv\", \"filters\": 4,"                                 \
	" \"kernel\": 3" frozen "}, {\"name\": \"r\", \"type\": \"relu\"},"                        \
	"{\"name\": \"fc1\", \"type\": \"fc\", \"outputs\": 6" frozen "},"                         \
	"{\"name\": \"fc2\", \"type\": \"fc\", \"outputs\": 3}]}"

/* The last layer's gradients are what they are if all is trained; the others are neither computed
 * nor reported. Both models lay their parameters alike. */
static void test_frozen(const struct gf_backend *b)
{
	struct gf_model *whole = read_model(HALVES(""));
	struct gf_model *half = read_model(HALVES(", \"frozen\": true"));
	const size_t trained = 3 + 18;
	struct gf_net *net;
	struct run r, f;

	gf_rng_init(&rng, 5, 0);
	run_init(&r, whole, 4, 4);
	net = new_net(b, &r);
	pass(b, net, &r);
	b->net_free(net);
	f = r;
	f.m = half;
	f.grads = draw(r.nparams, 0);
	f.emitted = gf_xcalloc(whole->nparams, sizeof(size_t));
	net = new_net(b, &f);
	pass(b, net, &f);
	EXPECT(half->ntrained == 2 && f.nemitted == 2 && f.emitted[0] == 0 && f.emitted[1] == 1,
	       "%s: %zu reported", b->name, f.nemitted);
	EXPECT(f.loss == r.loss && memcmp(f.grads, r.grads, trained * sizeof(float)) == 0,
	       "%s: other gradients", b->name);
	for (size_t i = trained; i < r.nparams; i++)
		EXPECT(f.grads[i] == 0, "%s: [%zu] %g", b->name, i, f.grads[i]);
	b->net_free(net);
	free(f.grads);
	free(f.emitted);
	run_release(&r);
	free_model(whole);
	free_model(half);
}

int main(void)
{
	test_start();
	for (size_t i = 0; gf_backends[i]; i++) {
		const struct gf_backend *b = gf_backends[i];

		if (b->on_device) /* tests/gpu has them */
			continue;

		test_running(b);
		test_dropout(b);
		test_dropout_rate(b);
		test_numbers(b, 8);
		test_numbers(b, 12);
		test_frozen(b);
	}
	return TEST_END();
}
