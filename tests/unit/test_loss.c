/* SPDX-License-Identifier: BSD-3-Clause */
#include "test.h"

#include <errno.h>

#include "base/array.h"
#include "nn_run.h"

/*
 * The loss of one fully connected layer, whose logits are W x + b; b lies before W in memory. It is
 * compared with the formula in f64, and the count of correct labels with one made by hand.
 */
enum { CLASSES = 5, VALUES = 6, BATCH = 7 };

/* Of the largest; GPUs round exponentials in their own way. */
static const double tolerance = 1e-5;

static const size_t input[3] = {1, 2, 3};
static const struct spec one_layer[] = {{FC, .filters = CLASSES}};

/* p of one sample, and what its target gives to each class. */
struct sample {
	double log_p[CLASSES], target[CLASSES];
};

static struct sample sample_of(const struct run *r, size_t i)
{
	const float *b = r->params, *w = b + CLASSES;
	struct sample s;
	double sum = 0;

	for (size_t c = 0; c < CLASSES; c++) {
		s.log_p[c] = b[c];
		for (size_t k = 0; k < VALUES; k++)
			s.log_p[c] += (double)w[c * VALUES + k] * r->input[i * VALUES + k];
		s.target[c] = 0;
		sum += exp(s.log_p[c]);
	}
	for (size_t c = 0; c < CLASSES; c++)
		s.log_p[c] -= log(sum);
	s.target[r->labels[i]] = 1;
	return s;
}

/* The mean over labels of -sum(target*log p), and its gradients: that of a logit is (p - target) of
 * a label, by the number of labels. */
static double formula(const struct run *r, float *grads)
{
	double loss = 0, exact[CLASSES * (VALUES + 1)] = {0}, labels = 0;

	for (size_t i = 0; i < BATCH; i++)
		labels += r->labels[i] != GF_NO_LABEL;
	for (size_t i = 0; i < BATCH; i++) {
		struct sample s;

		if (r->labels[i] == GF_NO_LABEL)
			continue;
		s = sample_of(r, i);
		for (size_t c = 0; c < CLASSES; c++) {
			double d = (exp(s.log_p[c]) - s.target[c]) / labels;

			loss -= s.target[c] * s.log_p[c] / labels;
			for (size_t k = 0; k < VALUES; k++)
				exact[CLASSES + c * VALUES + k] += d * r->input[i * VALUES + k];
			exact[c] += d;
		}
	}
	for (size_t i = 0; i < GF_ARRAY_LENGTH(exact); i++)
		grads[i] = (float)exact[i];
	return loss;
}

static void test_formula(const struct gf_backend *b)
{
	struct gf_model *m = build_model(input, one_layer, GF_ARRAY_LENGTH(one_layer));
	float want[CLASSES * (VALUES + 1)];
	struct gf_net *net;
	struct run r;

	gf_rng_init(&rng, 3, 0);
	run_init(&r, m, BATCH, BATCH);
	EXPECT(r.nparams == GF_ARRAY_LENGTH(want), "%zu", r.nparams);
	net = new_net(b, &r);
	pass(b, net, &r);
	EXPECT_NEAR(r.loss, formula(&r, want), tolerance, "%s", b->name);
	compare(b->name, r.grads, want, r.nparams, tolerance);
	EXPECT_NEAR(loss_of(b, net, &r, 0), r.loss, tolerance, "%s: test", b->name);
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

/* One sample of BATCH positions, two of them without a label. */
static void test_unlabelled(const struct gf_backend *b)
{
	static const size_t positions[3] = {BATCH, VALUES};
	struct gf_model *m = build_model(positions, one_layer, GF_ARRAY_LENGTH(one_layer));
	float want[CLASSES * (VALUES + 1)];
	struct gf_error err = {""};
	struct gf_net *net;
	struct run r;

	gf_rng_init(&rng, 5, 0);
	run_init(&r, m, 1, 1);
	r.options.labels = BATCH - 2;
	r.labels[1] = r.labels[BATCH - 1] = GF_NO_LABEL;
	net = new_net(b, &r);
	pass(b, net, &r);
	EXPECT_NEAR(r.loss, formula(&r, want), tolerance, "%s", b->name);
	compare(b->name, r.grads, want, r.nparams, tolerance);
	r.labels[1] = -1;
	EXPECT(!b->forward(net, r.params, r.input, 1, 1, &err) &&
		       b->loss(net, r.labels, &err) == -EINVAL &&
		       strstr(err.text, "label 1: want 0 to 4, got -1"),
	       "%s: %s", b->name, err.text);
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

/* Logits are the same for all samples. The first of the two largest is the answer. */
static void test_answer(const struct gf_backend *b)
{
	static const float logits[CLASSES] = {1, 3, 1, 0, 3};
	static const int32_t labels[BATCH] = {0, 1, 2, 3, 4, 1, 4};
	struct gf_model *m = build_model(input, one_layer, GF_ARRAY_LENGTH(one_layer));
	struct gf_net *net;
	struct run r;

	gf_rng_init(&rng, 4, 0);
	run_init(&r, m, BATCH, BATCH);
	memset(r.params, 0, r.nparams * sizeof(*r.params));
	memcpy(r.params, logits, sizeof(logits));
	memcpy(r.labels, labels, sizeof(labels));
	net = new_net(b, &r);
	pass(b, net, &r);
	EXPECT(r.correct == 2, "%s: %zu", b->name, r.correct);
	b->net_free(net);
	run_release(&r);
	free_model(m);
}

int main(void)
{
	for (size_t i = 0; gf_backends[i]; i++) {
		if (gf_backends[i]->on_device)
			continue;
		test_formula(gf_backends[i]);
		test_unlabelled(gf_backends[i]);
		test_answer(gf_backends[i]);
	}
	return TEST_END();
}
