/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_NN_RUN_H
#define GF_TESTS_NN_RUN_H

#include "test.h"

#include <stdint.h>

#include "base/rng.h"
#include "nn/net.h"
#include "nn_model.h"

#ifndef TOLERANCE_BACKEND
#define TOLERANCE_BACKEND 1e-4 /* of the largest value; both are f32 */
#endif

/* Random data for a model, one training pass over it, and comparisons. */

static struct gf_rng rng; /* every test seeds it */

/* A model with its data and one backend's answers. */
struct run {
	const struct gf_model *m;
	struct gf_net_options options;
	size_t batch, max_batch, nparams, nrunning;
	float *params, *input, *grads, *running;
	int32_t *labels;
	size_t *order, *emitted, nemitted;
	double loss;
	size_t correct;
};

static float *draw(size_t n, double scale)
{
	float *a = gf_xcalloc(n + 1, sizeof(*a));

	for (size_t i = 0; i < n; i++)
		a[i] = (float)(scale * gf_rng_normal(&rng));
	return a;
}

static void draw_numbers(struct run *r, size_t bound)
{
	for (size_t i = 0; i < r->batch * gf_shape_elems(&r->m->input); i++)
		r->input[i] = (float)gf_rng_below(&rng, bound);
}

static void run_init(struct run *r, const struct gf_model *m, size_t batch, size_t max_batch)
{
	size_t positions;

	*r = (struct run){.m = m, .batch = batch, .max_batch = max_batch};
	r->nparams = gf_model_param_count(m);
	r->params = draw(r->nparams, 0);
	gf_net_init_params(m, 7, r->params);
	/* Biases and batch norm away from their start, too. */
	for (size_t i = 0; i < r->nparams; i++)
		r->params[i] += 0.2f * (float)gf_rng_normal(&rng);
	r->input = draw(batch * gf_shape_elems(&m->input), 1);
	if (gf_model_vocabulary(m))
		draw_numbers(r, gf_model_vocabulary(m));
	r->grads = draw(r->nparams, 1);
	positions = gf_shape_elems(&m->layers[m->nlayers - 1].out) / m->classes;
	r->labels = gf_xcalloc(batch * positions, sizeof(*r->labels));
	for (size_t i = 0; i < batch * positions; i++)
		r->labels[i] = (int32_t)gf_rng_below(&rng, m->classes);
	r->order = gf_model_generation_order(m);
	r->emitted = gf_xcalloc(m->nparams + 1, sizeof(size_t));
}

static void run_release(struct run *r)
{
	free(r->params);
	free(r->input);
	free(r->grads);
	free(r->running);
	free(r->labels);
	free(r->order);
	free(r->emitted);
}

static void note_grad(void *ctx, size_t tensor)
{
	struct run *r = ctx;

	if (r->nemitted < r->m->nparams)
		r->emitted[r->nemitted] = tensor;
	r->nemitted++;
}

static struct gf_net *new_net(const struct gf_backend *b, const struct run *r)
{
	struct gf_error err = {""};
	struct gf_net *net = NULL;
	int rc = b->net_new(r->m, r->max_batch, &r->options, &net, &err);

	EXPECT(rc == 0, "%s: net_new: %s", b->name, err.text);
	return net;
}

static void copy_running(const struct gf_backend *b, struct gf_net *net, struct run *r)
{
	float *running = b->running(net, &r->nrunning);

	free(r->running);
	r->running = r->nrunning ? gf_xmemdup(running, r->nrunning * sizeof(float)) : NULL;
}

/* One training pass; fills r's grads, loss, correct and running. */
static void pass(const struct gf_backend *b, struct gf_net *net, struct run *r)
{
	struct gf_error err = {""};
	int rc = b->forward(net, r->params, r->input, r->batch, 1, &err);

	if (!rc)
		rc = b->loss(net, r->labels, &err);
	r->nemitted = 0;
	if (!rc)
		rc = b->backward(net, r->params, r->grads, note_grad, r, &err);
	if (!rc)
		rc = b->result(net, &r->loss, &r->correct, &err);
	EXPECT(rc == 0, "%s: %s", b->name, err.text);
	copy_running(b, net, r);
}

static double loss_of(const struct gf_backend *b, struct gf_net *net, struct run *r, int training)
{
	double loss = NAN;
	size_t correct;

	if (b->forward(net, r->params, r->input, r->batch, training, NULL) ||
	    b->loss(net, r->labels, NULL) || b->result(net, &loss, &correct, NULL))
		EXPECT(0, "%s: no loss", b->name);
	return loss;
}

static double largest(const float *a, size_t n)
{
	double max = 0;

	for (size_t i = 0; i < n; i++)
		max = fmax(max, fabs(a[i]));
	return max;
}

/* Are a and b equal within tolerance of b's largest? Prints the worst. */
static void compare(const char *what, const float *a, const float *b, size_t n, double tolerance)
{
	double scale = fmax(largest(b, n), 1e-3), worst = 0;
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		double off = fabs((double)a[i] - b[i]);

		if (!(off <= worst)) {
			worst = off;
			at = i;
		}
	}
	EXPECT(worst <= tolerance * scale, "%s: [%zu] want %g, got %g", what, at, b[at], a[at]);
}

/* How far a is from b, as a share of b's length. */
static inline double apart(const float *a, const float *b, size_t n)
{
	double off = 0, all = 1e-12;

	for (size_t i = 0; i < n; i++) {
		off += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
		all += (double)b[i] * b[i];
	}
	return sqrt(off / all);
}

/* One backend against ref on the same data, at several batch sizes of one net, in training and
 * not. */
static inline void compare_backends(const char *name, const struct gf_backend *b,
				    const struct gf_model *m, size_t batch)
{
	const struct gf_backend *ref = gf_backend_find("ref");
	struct run want, got;
	struct gf_net *net, *ref_net;
	double a, e;

	run_init(&want, m, batch, batch + 2);
	got = want;
	got.grads = draw(want.nparams, 1);
	got.emitted = gf_xcalloc(m->nparams + 1, sizeof(size_t));
	net = new_net(b, &got);
	ref_net = new_net(ref, &want);
	for (size_t k = 0; k < 3; k++) {
		/* the batch, one sample, the batch again */
		want.batch = got.batch = k == 1 ? 1 : batch;
		pass(ref, ref_net, &want);
		pass(b, net, &got);
		EXPECT_NEAR(got.loss, want.loss, TOLERANCE_BACKEND, "%s, %s: loss of batch %zu",
			    b->name, name, got.batch);
		compare(name, got.grads, want.grads, want.nparams, TOLERANCE_BACKEND);
		compare(name, got.running, want.running, want.nrunning, TOLERANCE_BACKEND);
		a = loss_of(b, net, &got, 0);
		e = loss_of(ref, ref_net, &want, 0);
		EXPECT_NEAR(a, e, TOLERANCE_BACKEND, "%s, %s: loss with running statistics",
			    b->name, name);
	}
	b->net_free(net);
	ref->net_free(ref_net);
	free(got.grads);
	free(got.emitted);
	free(got.running);
	run_release(&want);
}

#endif
