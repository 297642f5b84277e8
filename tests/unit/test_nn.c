/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>

#include "base/array.h"
#include "nn_run.h"

/*
 * Every layer, on every backend: gradients against finite differences of the reference's loss, and
 * against the reference itself.
 */
#define TOLERANCE 5e-3 /* of a tensor's largest gradient, or of SMALL */
#define SMALL     0.05
#define STEP      1e-3f
#define MAX_KINKS 0.1 /* of the elements that are tried */
#define PROBES    24  /* elements per tensor that are tried */
/* Of the loss; of the length of all gradients. */
#define BF16_LOSS 0.02
#ifndef BF16_GRADIENTS
#define BF16_GRADIENTS 0.04
#endif

static const struct {
	const char *name;
	struct {
		size_t input[3]; /* see build_model */
		size_t batch;
	};
	struct spec specs[16];
} models[] = {
	{"fc", {{5}, 3}, {{FC, .filters = 4}}},
	{"fc no bias", {{5}, 1}, {{FC, .filters = 4, .no_bias = true}}},
	{"fc of an image", {{3, 2, 5}, 2}, {{FC, .filters = 4}}},
	{"mlp", {{9}, 4}, {{FC, .filters = 17}, {RELU}, {FC, .filters = 3}}},
	{"conv", {{2, 5, 4}, 2}, {{CONV, .filters = 3, .kernel = 3, .pad = 1}, {FC, .filters = 3}}},
	{"conv chain",
	 {{1, 7, 7}, 3},
	 {{CONV, .filters = 5, .kernel = 3},
	  {CONV, .filters = 18, .kernel = 2, .no_bias = true},
	  {CONV, .filters = 4, .kernel = 1},
	  {FC, .filters = 3}}},
	{"conv stride",
	 {{3, 9, 8}, 2},
	 {{CONV, .filters = 4, .kernel = 3, .pad = 1, .stride = 2},
	  {CONV, .filters = 4, .kernel = 1, .stride = 2},
	  {FC, .filters = 5}}},
	{"conv wide and high",
	 {{2, 6, 7}, 2},
	 {{CONV, .filters = 17, .kernel = 1, .kernel_w = 5, .pad_w = 3},
	  {CONV, .filters = 4, .kernel = 4, .kernel_w = 2, .pad = 2, .stride = 3},
	  {FC, .filters = 3}}},
	{"fc of a sequence", {{4, 5}, 2}, {{FC, .filters = 6}, {RELU}, {FC, .filters = 3}}},
	{"add in a sequence",
	 {{3, 5}, 2},
	 {{FC, .filters = 5},
	  {ADD, .a = 1, .b = INPUT},
	  {RELU},
	  {FC, .a = 2, .filters = 5},
	  {ADD, .a = 3, .b = 4},
	  {FC, .filters = 3}}},
	{"conv groups",
	 {{4, 5, 5}, 2},
	 {{CONV, .filters = 6, .kernel = 3, .pad = 1, .groups = 2},
	  {CONV, .filters = 9, .kernel = 3, .groups = 3},
	  {FC, .filters = 3}}},
	{"conv depthwise",
	 {{6, 6, 5}, 2},
	 {{CONV, .filters = 6},
	  {CONV, .filters = 6, .kernel = 3, .pad = 1, .groups = 6},
	  {FC, .filters = 3}}},
	{"batchnorm",
	 {{2, 4, 3}, 4},
	 {{CONV, .filters = 3, .kernel = 3, .pad = 1, .no_bias = true},
	  {NORM},
	  {FC, .filters = 3}}},
	{"batchnorm of the input", {{3, 4, 4}, 3}, {{NORM}, {FC, .filters = 3}}},
	{"batchnorm flat",
	 {{6}, 5},
	 {{FC, .filters = 7, .no_bias = true}, {NORM}, {FC, .filters = 3}}},
	{"batchnorm relu",
	 {{2, 6, 5}, 3},
	 {{CONV, .filters = 16, .kernel = 3},
	  {NORM},
	  {RELU},
	  {CONV, .filters = 5, .kernel = 2},
	  {NORM},
	  {RELU},
	  {FC, .filters = 3}}},
	{"conv relu",
	 {{3, 6, 6}, 2},
	 {{CONV, .filters = 17, .kernel = 3, .pad = 1},
	  {RELU},
	  {CONV, .filters = 4, .kernel = 3},
	  {RELU},
	  {FC, .filters = 3}}},
	{"maxpool",
	 {{2, 7, 6}, 2},
	 {{CONV, .filters = 5, .kernel = 2},
	  {MAXPOOL, .kernel = 2, .stride = 2},
	  {FC, .filters = 3}}},
	{"maxpool overlapping and padded",
	 {{2, 7, 6}, 2},
	 {{CONV, .filters = 16, .kernel = 2},
	  {MAXPOOL, .kernel = 3, .stride = 2, .pad = 1},
	  {MAXPOOL, .kernel = 2, .stride = 1, .pad = 1},
	  {FC, .filters = 3}}},
	{"avgpool",
	 {{2, 7, 6}, 2},
	 {{CONV, .filters = 5, .kernel = 2},
	  {AVGPOOL, .kernel = 3, .stride = 2, .pad = 1},
	  {FC, .filters = 3}}},
	{"pools wide and high",
	 {{2, 7, 6}, 2},
	 {{CONV, .filters = 5, .kernel = 2},
	  {AVGPOOL, .kernel = 1, .kernel_w = 3, .pad_w = 2},
	  {MAXPOOL, .kernel = 3, .kernel_w = 2, .pad = 1, .stride = 2},
	  {FC, .filters = 3}}},
	{"globalpool",
	 {{3, 5, 4}, 2},
	 {{CONV, .filters = 18, .kernel = 2}, {GLOBALPOOL}, {FC, .filters = 3}}},
	{"globalpool to the logits",
	 {{3, 5, 4}, 2},
	 {{CONV, .filters = 3, .kernel = 2}, {GLOBALPOOL, .filters = 3}}},
	{"globalpool, batchnorm, relu",
	 {{3, 5, 4}, 4},
	 {{CONV, .filters = 5}, {GLOBALPOOL}, {NORM}, {RELU}, {FC, .filters = 3}}},
	{"add",
	 {{2, 5, 5}, 2},
	 {{CONV, .filters = 4, .kernel = 3, .pad = 1},
	  {CONV, .filters = 4, .kernel = 1},
	  {ADD, .a = 1, .b = 2},
	  {FC, .filters = 3}}},
	{"add the input",
	 {{4, 3, 3}, 2},
	 {{CONV, .filters = 4, .kernel = 3, .pad = 1},
	  {ADD, .a = 1, .b = INPUT},
	  {RELU},
	  {FC, .filters = 3}}},
	{"add itself",
	 {{2, 3, 3}, 2},
	 {{CONV, .filters = 4, .kernel = 2}, {ADD, .a = 1, .b = 1}, {FC, .filters = 3}}},
	{"one value, many consumers",
	 {{2, 5, 5}, 2},
	 {{CONV, .filters = 4, .kernel = 3, .pad = 1},
	  {CONV, .a = 1, .filters = 4, .kernel = 1},
	  {CONV, .a = 1, .filters = 4, .kernel = 3, .pad = 1},
	  {RELU, .a = 1},
	  {ADD, .a = 2, .b = 3},
	  {ADD, .a = 5, .b = 4},
	  {ADD, .a = 6, .b = 1},
	  {FC, .filters = 3}}},
	{"residual block",
	 {{3, 6, 6}, 3},
	 {{CONV, .filters = 16, .kernel = 3, .pad = 1, .no_bias = true},
	  {NORM},
	  {RELU},
	  {CONV, .filters = 16, .kernel = 3, .pad = 1, .no_bias = true},
	  {NORM},
	  {ADD, .a = 5, .b = 3},
	  {RELU},
	  {GLOBALPOOL},
	  {FC, .filters = 5}}},
	{"residual flat",
	 {{6}, 3},
	 {{FC, .filters = 6},
	  {RELU},
	  {FC, .filters = 6},
	  {ADD, .a = 3, .b = 2},
	  {RELU},
	  {FC, .filters = 3}}},
	{"concat",
	 {{3, 5, 4}, 2},
	 {{CONV, .filters = 4, .kernel = 3, .pad = 1},
	  {RELU},
	  {CONV, .a = 1, .filters = 17},
	  {CONCAT, .a = 2, .b = 3, .c = INPUT},
	  {CONV, .filters = 4, .kernel = 2},
	  {FC, .filters = 3}}},
	{"concat with itself",
	 {{4}, 3},
	 {{FC, .filters = 5}, {CONCAT, .a = 1, .b = 1}, {FC, .filters = 3}}},
	{"concat of sequences",
	 {{4, 5}, 2},
	 {{FC, .filters = 5}, {CONCAT, .a = 1, .b = INPUT}, {FC, .filters = 3}}},
	{"dropout",
	 {{2, 6, 5}, 3},
	 {{CONV, .filters = 17, .kernel = 3},
	  {DROPOUT, .rate = 0.4},
	  {FC, .filters = 9},
	  {RELU},
	  {DROPOUT, .rate = 0.5},
	  {FC, .filters = 3}}},
	{"tanh and GELU",
	 {{6}, 3},
	 {{FC, .filters = 9}, {TANH}, {FC, .filters = 9}, {GELU}, {FC, .filters = 3}}},
	{"tanh and GELU of an image",
	 {{2, 6, 5}, 2},
	 {{CONV, .filters = 17, .kernel = 2},
	  {GELU},
	  {CONV, .filters = 4, .kernel = 2},
	  {TANH},
	  {FC, .filters = 3}}},
	{"layernorm", {{7}, 3}, {{FC, .filters = 9}, {LAYERNORM}, {FC, .filters = 3}}},
	{"layernorm of a sequence",
	 {{4, 7}, 2},
	 {{LAYERNORM}, {FC, .filters = 9}, {LAYERNORM}, {FC, .filters = 3}}},
	{"embedding", {{5}, 3}, {{EMBEDDING, .entries = 7, .filters = 4}, {FC, .filters = 3}}},
	{"select",
	 {{5}, 3},
	 {{EMBEDDING, .entries = 7, .filters = 4}, {SELECT, .position = 3}, {FC, .filters = 3}}},
	{"lstm", {{4, 3}, 2}, {{LSTM, .filters = 5}, {FC, .filters = 3}}},
	{"lstm of one position", {{1, 3}, 2}, {{LSTM, .filters = 5}, {FC, .filters = 3}}},
	{"language model",
	 {{6}, 3},
	 {{EMBEDDING, .entries = 9, .filters = 6},
	  {DROPOUT, .rate = 0.2},
	  {LSTM, .filters = 8},
	  {DROPOUT, .rate = 0.2},
	  {LSTM, .filters = 7},
	  {FC, .filters = 9}}},
	{"attention",
	 {{5, 6}, 2},
	 {{FC, .filters = 8},
	  {FC, .a = INPUT, .filters = 8},
	  {FC, .a = INPUT, .filters = 8},
	  {ATTENTION, .a = 1, .b = 2, .c = 3, .heads = 2},
	  {FC, .filters = 3}}},
	{"transformer layer",
	 {{4}, 2},
	 {{EMBEDDING, .entries = 9, .filters = 6},
	  {ATTENTION, .a = 1, .b = 1, .c = 1, .heads = 3},
	  {FC, .filters = 6},
	  {ADD, .a = 3, .b = 1},
	  {LAYERNORM},
	  {FC, .filters = 12},
	  {GELU},
	  {FC, .filters = 6},
	  {ADD, .a = 8, .b = 5},
	  {LAYERNORM},
	  {SELECT, .position = 0},
	  {FC, .filters = 3}}},
	{"attention of one input",
	 {{5, 6}, 2},
	 {{FC, .filters = 24}, {ATTENTION, .heads = 2}, {FC, .filters = 3}}},
	{"causal attention",
	 {{5, 6}, 3},
	 {{FC, .filters = 8},
	  {FC, .a = INPUT, .filters = 8},
	  {FC, .a = INPUT, .filters = 8},
	  {ATTENTION, .a = 1, .b = 2, .c = 3, .heads = 2, .causal = true},
	  {FC, .filters = 3}}},
	{"attention of the sample",
	 {{4, 9}, 2},
	 {{ATTENTION, .heads = 3, .causal = true}, {FC, .filters = 3}}},
	{"long causal attention",
	 {{70, 4}, 2},
	 {{FC, .filters = 12}, {ATTENTION, .heads = 2, .causal = true}, {FC, .filters = 3}}},
	{"positional embedding",
	 {{5}, 3},
	 {{EMBEDDING, .entries = 7, .filters = 4},
	  {EMBEDDING, .a = INPUT, .entries = 6, .filters = 4, .positional = true},
	  {ADD, .a = 1, .b = 2},
	  {FC, .filters = 3}}},
	{"decoder",
	 {{6}, 2},
	 {{EMBEDDING, .entries = 9, .filters = 8},
	  {EMBEDDING, .a = INPUT, .entries = 6, .filters = 8, .positional = true},
	  {ADD, .a = 1, .b = 2},
	  {LAYERNORM},
	  {FC, .filters = 24},
	  {ATTENTION, .heads = 2, .causal = true},
	  {FC, .filters = 8},
	  {ADD, .a = 7, .b = 3},
	  {LAYERNORM},
	  {FC, .filters = 32},
	  {GELU},
	  {FC, .filters = 8},
	  {ADD, .a = 12, .b = 8},
	  {LAYERNORM},
	  {FC, .filters = 9, .no_bias = true}}},
	{"tied to the embedding",
	 {{5}, 3},
	 {{EMBEDDING, .entries = 7, .filters = 4},
	  {EMBEDDING, .a = INPUT, .entries = 2, .filters = 4, .positional = true, .stretch = 3},
	  {ADD, .a = 1, .b = 2},
	  {FC, .filters = 4},
	  {TANH},
	  {FC, .filters = 7, .tied = 1}}},
	{"tied without bias",
	 {{4}, 2},
	 {{EMBEDDING, .entries = 6, .filters = 5},
	  {TANH},
	  {FC, .filters = 6, .no_bias = true, .tied = 1}}},
	{"one weight, three uses",
	 {{4, 6}, 2},
	 {{FC, .filters = 6},
	  {TANH},
	  {FC, .filters = 6, .tied = 1},
	  {TANH},
	  {FC, .filters = 6, .no_bias = true, .tied = 1}}},
	{"tied to a layer nobody reads",
	 {{4}, 3},
	 {{EMBEDDING, .entries = 9, .filters = 5},
	  {EMBEDDING, .a = INPUT, .entries = 9, .filters = 5},
	  {FC, .a = 1, .filters = 9, .tied = 2}}},
	{"a layer nobody reads",
	 {{2, 4, 4}, 2},
	 {{CONV, .filters = 4, .kernel = 3},
	  {CONV, .a = 1, .filters = 5, .kernel = 2},
	  {FC, .a = 1, .filters = 3}}},
	{"no parameters before the last layer",
	 {{2, 4, 4}, 2},
	 {{RELU}, {MAXPOOL, .kernel = 2, .stride = 2}, {FC, .filters = 3}}},
};

static struct gf_model *model_of(size_t c)
{
	return build_model(models[c].input, models[c].specs, GF_ARRAY_LENGTH(models[c].specs));
}

/* The slopes of the loss on both sides of one parameter. */
static void slopes(struct gf_net *net, struct run *r, size_t i, double s[2])
{
	const struct gf_backend *ref = gf_backend_find("ref");
	const float kept = r->params[i];
	double middle = loss_of(ref, net, r, 1);

	for (int side = 0; side < 2; side++) {
		r->params[i] = kept + (side ? STEP : -STEP);
		s[side] = (loss_of(ref, net, r, 1) - middle) / ((double)r->params[i] - kept);
		r->params[i] = kept;
	}
}

/*
 * The gradient lies between the slopes of both sides. If a ReLU or a maximum switches within the
 * step, they are far apart and prove little: few elements may be so.
 */
static void test_differences(size_t c, const struct gf_backend *b)
{
	struct gf_model *m = model_of(c);
	struct gf_net *net, *ref;
	struct run r;
	size_t at = 0, tried = 0, kinks = 0;

	gf_rng_init(&rng, c, 0);
	run_init(&r, m, models[c].batch, models[c].batch);
	net = new_net(b, &r);
	ref = new_net(gf_backend_find("ref"), &r);
	pass(b, net, &r);
	for (size_t t = 0; t < m->nparams; t++) {
		const struct gf_param *p = &m->params[r.order[t]];
		size_t n = gf_shape_elems(&p->shape);
		double off = TOLERANCE * fmax(largest(r.grads + at, n), SMALL);

		for (size_t k = 0; k < PROBES && k < n; k++) {
			size_t i = at + (n <= PROBES ? k : gf_rng_below(&rng, n));
			double s[2], apart;

			slopes(ref, &r, i, s);
			apart = fabs(s[0] - s[1]);
			tried++;
			kinks += apart > 2 * off;
			EXPECT(fabs(r.grads[i] - (s[0] + s[1]) / 2) <= off + apart / 2,
			       "%s, %s: %s[%zu]: slopes %g %g, gradient %g", b->name,
			       models[c].name, p->name, i - at, s[0], s[1], r.grads[i]);
		}
		at += n;
	}
	EXPECT((double)kinks <= MAX_KINKS * (double)tried,
	       "%s, %s: %zu of %zu elements stand on kinks", b->name, models[c].name, kinks, tried);
	b->net_free(net);
	gf_backend_find("ref")->net_free(ref);
	run_release(&r);
	free_model(m);
}

/* Rounded factors of products, in a pass of training; 0 where the backend or the processor has no
 * bf16. */
static bool test_bf16(size_t c, const struct gf_backend *b)
{
	const struct gf_backend *ref = gf_backend_find("ref");
	struct gf_model *m = model_of(c);
	struct gf_net *net = NULL, *ref_net;
	struct gf_error err = {""};
	struct run want, got;
	int rc;

	gf_rng_init(&rng, c, 3);
	run_init(&want, m, models[c].batch, models[c].batch);
	got = want;
	got.grads = draw(want.nparams, 1);
	got.emitted = gf_xcalloc(m->nparams + 1, sizeof(size_t));
	got.options.precision = GF_BF16;
	rc = b->net_new(m, got.max_batch, &got.options, &net, &err);
	EXPECT(rc == 0 || (rc == -ENOTSUP && strstr(err.text, "bf16")), "%s, %s: %d: %s", b->name,
	       models[c].name, rc, err.text);
	if (rc == 0) {
		ref_net = new_net(ref, &want);
		pass(ref, ref_net, &want);
		pass(b, net, &got);
		EXPECT_NEAR(got.loss, want.loss, BF16_LOSS * want.loss, "%s in bf16: loss",
			    models[c].name);
		EXPECT(apart(got.grads, want.grads, want.nparams) <= BF16_GRADIENTS,
		       "%s in bf16: gradients are %g away", models[c].name,
		       apart(got.grads, want.grads, want.nparams));
		b->net_free(net);
		ref->net_free(ref_net);
	}
	free(got.grads);
	free(got.emitted);
	free(got.running);
	run_release(&want);
	free_model(m);
	return rc == 0;
}

/* Generation order, once each, last layer's bias first. */
static void test_emission(size_t c, const struct gf_backend *b)
{
	struct gf_model *m = model_of(c);
	struct gf_net *net;
	struct run r;

	run_init(&r, m, models[c].batch, models[c].batch);
	net = new_net(b, &r);
	pass(b, net, &r);
	EXPECT(r.nemitted == m->nparams, "%s, %s: want %zu gradients, got %zu", b->name,
	       models[c].name, m->nparams, r.nemitted);
	for (size_t t = 0; t < m->nparams; t++)
		EXPECT(r.emitted[t] == t, "%s, %s: gradient %zu came as %zu", b->name,
		       models[c].name, r.emitted[t], t);
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

int main(void)
{
	const struct gf_backend *ref = gf_backend_find("ref");

	for (size_t i = 0; gf_backends[i]; i++) {
		const struct gf_backend *b = gf_backends[i];
		size_t in_bf16 = 0;

		if (b->on_device) /* tests/gpu has them */
			continue;

		for (size_t c = 0; c < GF_ARRAY_LENGTH(models); c++) {
			struct gf_model *m = model_of(c);

			test_differences(c, b);
			test_emission(c, b);
			in_bf16 += test_bf16(c, b);
			gf_rng_init(&rng, c, 2);
			if (b != ref)
				compare_backends(models[c].name, b, m, models[c].batch);
			free_model(m);
		}
		printf("%s: %zu models in bf16\n", b->name, in_bf16);
		EXPECT(in_bf16 == 0 || in_bf16 == GF_ARRAY_LENGTH(models), "%s: %zu models in bf16",
		       b->name, in_bf16);
	}
	return TEST_END();
}
