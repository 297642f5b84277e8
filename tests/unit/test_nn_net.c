/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>

#include "base/array.h"
#include "nn_run.h"
#include "trainer/optim/sgd.h"

/*
 * Nets as a whole: random models on both backends, learning, repeatability, the order of calls,
 * what is refused.
 */
#define RANDOM_MODELS 10

static const size_t image[3] = {1, 8, 8};
static const struct spec small_cnn[] = {
	{CONV, .filters = 8, .kernel = 3, .pad = 1, .no_bias = true},
	{NORM},
	{RELU},
	{MAXPOOL, .kernel = 2, .stride = 2},
	{CONV, .filters = 16, .kernel = 3, .pad = 1},
	{RELU},
	{GLOBALPOOL},
	{FC, .filters = 4},
};

static struct gf_model *build_small(void)
{
	return build_model(image, small_cnn, GF_ARRAY_LENGTH(small_cnn));
}

/* --- random models ------------------------------------------------------- */

static size_t below(size_t bound)
{
	return (size_t)gf_rng_below(&rng, bound);
}

/* One to six layers that keep height and width or halve them, now and then a residual block; in the
 * end a fully connected layer. */
static size_t draw_specs(struct spec *specs, size_t channels)
{
	size_t n = 0, blocks = 1 + below(4);

	while (blocks--) {
		size_t filters = 1 + below(40), groups = 1;
		int skip;

		if (below(3) == 0 && channels % 2 == 0) {
			filters += filters % 2;
			groups = 2;
		}
		specs[n++] = (struct spec){CONV,
					   .filters = filters,
					   .kernel = 3,
					   .pad = 1,
					   .stride = 1 + below(2),
					   .groups = groups,
					   .no_bias = below(2)};
		if (below(2))
			specs[n++] = (struct spec){NORM};
		if (below(2))
			specs[n++] = (struct spec){RELU};
		if (below(3) == 0)
			specs[n++] = (struct spec){MAXPOOL, .kernel = 3, .pad = 1,
						   .stride = 1 + below(2)};
		if (below(2)) {
			skip = (int)n;
			specs[n++] = (struct spec){CONV, .filters = filters, .kernel = 1};
			specs[n++] = (struct spec){ADD, .b = skip};
		}
		channels = filters;
	}
	if (below(2))
		specs[n++] = (struct spec){GLOBALPOOL};
	specs[n++] = (struct spec){FC, .filters = 2 + below(20)};
	return n;
}

static void test_random_model(uint64_t seed, const struct gf_backend *b)
{
	struct spec specs[32];
	char name[32];
	size_t input[3], n;
	struct gf_model *m;

	gf_rng_init(&rng, seed, 3);
	input[0] = 1 + below(20);
	input[1] = 5 + below(12);
	input[2] = 5 + below(12);
	n = draw_specs(specs, input[0]);
	m = build_model(input, specs, n);
	snprintf(name, sizeof(name), "random model %d", (int)seed);
	compare_backends(name, b, m, 1 + below(5));
	free_model(m);
}

/* --- learning ------------------------------------------------------------ */

#define STEPS 60

/* Each class lights another quarter of the image, in noise. */
static void draw_task(struct run *r)
{
	for (size_t i = 0; i < r->batch; i++) {
		float *x = r->input + i * 64;

		r->labels[i] = (int32_t)(i % 4);
		for (size_t k = 0; k < 64; k++)
			x[k] = 0.3f * (float)gf_rng_normal(&rng);
		for (size_t k = 0; k < 16; k++)
			x[(i % 4 / 2 * 4 + k / 4) * 8 + i % 2 * 4 + k % 4] += 1;
	}
}

static void learn(const struct gf_backend *b, double *first, double *last)
{
	const struct gf_sgd sgd = {.lr = 0.1, .momentum = 0.9};
	struct gf_model *m = build_small();
	struct gf_net *net;
	struct run r;
	float *velocity;

	gf_rng_init(&rng, 5, 0);
	run_init(&r, m, 32, 32);
	gf_net_init_params(m, 1, r.params);
	velocity = gf_xcalloc(r.nparams, sizeof(*velocity));
	net = new_net(b, &r);
	for (int step = 0; step < STEPS; step++) {
		draw_task(&r);
		pass(b, net, &r);
		if (step == 0)
			*first = r.loss;
		gf_sgd_update(&sgd, 1, r.grads, r.params, velocity, r.nparams);
	}
	*last = r.loss;
	EXPECT(r.correct == r.batch, "%s: %zu of %zu right after training", b->name, r.correct,
	       r.batch);
	draw_task(&r);
	EXPECT(loss_of(b, net, &r, 0) < 0.3, "%s: running statistics serve new samples", b->name);
	b->net_free(net);
	free(velocity);
	run_release(&r);
	free_model(m);
}

static void test_learning(const struct gf_backend *b)
{
	double first = 0, last = 1;

	learn(b, &first, &last);
	EXPECT(first > 1 && last < 0.1, "%s: loss from %g to %g", b->name, first, last);
}

/* --- repeatability ------------------------------------------------------- */

/* Two nets, the second asked other things first: the same bits. */
static void test_same_bits(const struct gf_backend *b, int threads)
{
	struct gf_model *m = build_small();
	struct gf_net *net;
	struct run r;
	float *grads;
	double loss;

	gf_rng_init(&rng, 6, 0);
	run_init(&r, m, 7, 16);
	r.options.threads = threads;
	net = new_net(b, &r);
	pass(b, net, &r);
	grads = gf_xmemdup(r.grads, r.nparams * sizeof(*grads));
	loss = r.loss;
	b->net_free(net);

	net = new_net(b, &r);
	loss_of(b, net, &r, 0);
	r.batch = 3;
	pass(b, net, &r);
	r.batch = 7;
	pass(b, net, &r);
	EXPECT(r.loss == loss, "%s, %d threads: loss %.17g, then %.17g", b->name, threads, loss,
	       r.loss);
	EXPECT(memcmp(grads, r.grads, r.nparams * sizeof(*grads)) == 0,
	       "%s, %d threads: other gradients", b->name, threads);
	b->net_free(net);
	free(grads);
	run_release(&r);
	free_model(m);
}

/* More batch sizes than a backend keeps prepared. */
static void test_many_batches(const struct gf_backend *b)
{
	struct gf_model *m = build_small();
	double losses[12];
	struct gf_net *net;
	struct run r;

	gf_rng_init(&rng, 8, 0);
	run_init(&r, m, 12, 12);
	net = new_net(b, &r);
	for (size_t k = 0; k < 24; k++) {
		r.batch = 1 + k % 12;
		pass(b, net, &r);
		if (k < 12)
			losses[k] = r.loss;
		else
			EXPECT(r.loss == losses[k - 12], "%s: loss of batch %zu", b->name, r.batch);
	}
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

/* --- calls --------------------------------------------------------------- */

static void test_calls(const struct gf_backend *b)
{
	struct gf_model *m = build_small();
	struct gf_error err = {""};
	struct gf_net *net;
	struct run r;
	size_t correct, nans = 0;
	double loss, before;

	gf_rng_init(&rng, 9, 0);
	run_init(&r, m, 4, 4);
	net = new_net(b, &r);
	EXPECT(b->loss(net, r.labels, &err) == -EINVAL, "loss before forward");
	EXPECT_TEXT(err.text, "loss: want a forward pass before it");
	EXPECT(b->result(net, &loss, &correct, &err) == -EINVAL, "result before loss");
	EXPECT_TEXT(err.text, "result: want a loss before it");
	EXPECT(b->backward(net, r.params, r.grads, NULL, NULL, &err) == -EINVAL,
	       "backward before loss");
	EXPECT_TEXT(err.text, "backward: want a forward pass in training and its loss before it");
	EXPECT(b->forward(net, r.params, r.input, 5, 1, &err) == -EINVAL, "a batch too large");
	EXPECT_TEXT(err.text, "batch: want 1 to 4 samples, got 5");
	EXPECT(b->forward(net, r.params, r.input, 0, 1, &err) == -EINVAL, "an empty batch");
	before = loss_of(b, net, &r, 0);
	EXPECT(b->backward(net, r.params, r.grads, NULL, NULL, &err) == -EINVAL,
	       "backward of an evaluation");
	b->forward(net, r.params, r.input, 4, 1, &err);
	r.labels[2] = 4;
	EXPECT(b->loss(net, r.labels, &err) == -EINVAL, "a label too large");
	EXPECT_TEXT(err.text, "label 2: want 0 to 3, got 4");
	r.labels[2] = -1;
	EXPECT(b->loss(net, r.labels, &err) == -EINVAL, "a label below 0");
	EXPECT_TEXT(err.text, "label 2: want 0 to 3, got -1");
	r.labels[2] = 0;
	EXPECT(b->result(net, &loss, &correct, &err) == 0 && loss == before,
	       "a loss that fails leaves the latest");
	EXPECT(!b->loss(net, r.labels, &err) &&
		       !b->backward(net, r.params, r.grads, NULL, NULL, &err),
	       "nobody need listen: %s", err.text);

	r.input[70] = NAN;
	pass(b, net, &r);
	for (size_t i = 0; i < r.nparams; i++)
		nans += isnan(r.grads[i]);
	EXPECT(nans > 0 || isnan(r.loss), "%s: NaN vanished", b->name);
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

/* --- refusals ------------------------------------------------------------ */

static void no_layers(struct gf_model *m)
{
	m->nlayers = 0;
}

static void classes(struct gf_model *m)
{
	m->classes = 5;
}

static void no_stride(struct gf_model *m)
{
	m->layers[3].stride = 0;
}

static void large_kernel(struct gf_model *m)
{
	m->layers[4].kernel = 7;
}

static void large_pad(struct gf_model *m)
{
	m->layers[3].pad_w = 2;
}

static void groups(struct gf_model *m)
{
	m->layers[4].groups = 3;
}

static void later_layer(struct gf_model *m)
{
	m->layers[2].inputs[0] = 4;
}

static void other_shape(struct gf_model *m)
{
	m->layers[5].inputs[0] = 2;
}

static void epsilon(struct gf_model *m)
{
	m->layers[1].epsilon = 0;
}

static void unknown_type(struct gf_model *m)
{
	m->layers[2].type = 1000;
}

static void rotary(struct gf_model *m)
{
	m->layers[2].type = GF_LAYER_ATTENTION;
	m->layers[2].in = (struct gf_shape){2, {8, 64}};
	m->layers[2].rotary = true;
}

static void huge(struct gf_model *m)
{
	m->layers[6].out.dims[0] = (size_t)1 << 40;
}

static const struct {
	const char *name;
	void (*spoil)(struct gf_model *m);
	int rc;
	const char *text;
} refusals[] = {
	{"no layers", no_layers, -EINVAL, "test: want a layer and a sample at least"},
	{"classes", classes, -EINVAL, "layer fc7: want 5 outputs, one per class, got 4"},
	{"stride", no_stride, -EINVAL, "layer maxpool3: want a kernel and a stride of at least 1"},
	{"kernel", large_kernel, -EINVAL,
	 "layer conv4: want a kernel of at most the padded input, 6, got 7"},
	{"pad", large_pad, -EINVAL, "layer maxpool3: want the output that the window gives"},
	{"groups", groups, -EINVAL,
	 "layer conv4: want groups that divide 8 and 16 channels, got 3"},
	{"order", later_layer, -EINVAL, "layer relu2: want earlier layers as inputs"},
	{"shape", other_shape, -EINVAL, "layer relu5: want inputs of 256 values, got 512"},
	{"epsilon", epsilon, -EINVAL, "layer batchnorm1: want epsilon > 0 and momentum in 0 to 1"},
	{"type", unknown_type, -ENOTSUP, "layer relu2: no backend computes layers of this type"},
	{"rotary", rotary, -ENOTSUP,
	 "layer relu2: no backend computes attention with rotary positions"},
	{"size", huge, -EINVAL, "layer globalpool6: want sizes that 2 samples can have in memory"},
};

static void test_refusal(size_t c, const struct gf_backend *b)
{
	struct gf_model *m = build_small();
	size_t nlayers = m->nlayers;
	struct gf_net *net = NULL;
	struct gf_error err = {""};
	int rc;

	refusals[c].spoil(m);
	rc = b->net_new(m, 2, &(struct gf_net_options){0}, &net, &err);
	EXPECT(rc == refusals[c].rc, "%s: %s: got %d", b->name, refusals[c].name, rc);
	EXPECT(!net, "%s: set only on success", refusals[c].name);
	EXPECT_TEXT(err.text, refusals[c].text);
	m->nlayers = nlayers;
	free_model(m);
}

int main(void)
{
	const struct gf_backend *ref = gf_backend_find("ref");

	EXPECT(ref && !gf_backend_find("none"), "backends by name");
	EXPECT(gf_backend_find(NULL) == gf_backend_find("auto") &&
		       !gf_backend_find("auto")->on_device,
	       "the host's fastest by default");
	for (size_t i = 0; gf_backends[i]; i++) {
		const struct gf_backend *b = gf_backends[i];

		if (b->on_device) /* tests/gpu has them */
			continue;

		test_learning(b);
		test_same_bits(b, 1);
#ifndef __SANITIZE_THREAD__ /* which does not see what OpenMP waits for */
		test_same_bits(b, 2);
#endif
		test_many_batches(b);
		test_calls(b);
		for (size_t c = 0; c < GF_ARRAY_LENGTH(refusals); c++)
			test_refusal(c, b);
		for (uint64_t s = 0; s < RANDOM_MODELS && b != ref; s++)
			test_random_model(s, b);
	}
	return TEST_END();
}
