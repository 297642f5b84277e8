/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "optim/sgd.h"

/* A rate at which nothing grows, however many repeats there are. */
static const struct gf_sgd sgd = {.lr = 1e-6, .momentum = 0.9};
static const uint64_t seed = 1;

static void lay_out(struct gf_bench_step *s)
{
	size_t *order = gf_model_generation_order(s->model);
	size_t i;

	s->ntensors = s->model->ntrained;
	s->offsets = gf_xcalloc(s->ntensors + 1, sizeof(*s->offsets));
	for (i = 0; i < s->ntensors; i++)
		s->offsets[i + 1] =
			s->offsets[i] +
			gf_shape_elems(&s->model->params[order[i]].shape);
	free(order);
}

static void make_samples(struct gf_bench_step *s)
{
	const struct gf_model *m = s->model;
	size_t labels = s->batch * gf_model_positions(m), i;

	s->batch_elems = s->batch * gf_shape_elems(&m->input);
	s->vocabulary = gf_model_vocabulary(m);
	s->input = gf_xcalloc(s->batch_elems, sizeof(*s->input));
	s->labels = gf_xcalloc(labels, sizeof(*s->labels));
	gf_rng_init(&s->rng, seed, 0);
	for (i = 0; i < labels; i++)
		s->labels[i] = (int32_t)gf_rng_below(&s->rng, m->classes);
}

void gf_bench_step_load(struct gf_bench_step *s)
{
	size_t i;

	for (i = 0; i < s->batch_elems; i++)
		s->input[i] = s->vocabulary ? (float)gf_rng_below(&s->rng,
								  s->vocabulary)
					    : (float)gf_rng_uniform(&s->rng);
}

int gf_bench_step_open(struct gf_bench_step *s, const struct gf_model *model,
		       const struct gf_backend *backend, size_t batch,
		       struct gf_error *err)
{
	size_t count;
	int rc;

	memset(s, 0, sizeof(*s));
	s->model = model;
	s->backend = backend;
	s->batch = batch;
	lay_out(s);
	count = gf_model_param_count(model);
	s->params = gf_xcalloc(count, sizeof(*s->params));
	s->velocity = gf_xcalloc(count, sizeof(*s->velocity));
	make_samples(s);
	gf_net_init_params(model, seed, s->params);
	rc = backend->net_new(model, batch, &s->net, err);
	if (rc < 0)
		gf_bench_step_close(s);
	return rc;
}

void gf_bench_step_close(struct gf_bench_step *s)
{
	if (s->net)
		s->backend->net_free(s->net);
	free(s->params);
	free(s->velocity);
	free(s->input);
	free(s->labels);
	free(s->offsets);
	memset(s, 0, sizeof(*s));
}

int gf_bench_step_forward(struct gf_bench_step *s, struct gf_error *err)
{
	int rc;

	rc = s->backend->forward(s->net, s->params, s->input, s->batch, 1, err);
	if (rc < 0)
		return rc;
	return s->backend->loss(s->net, s->labels, err);
}

int gf_bench_step_backward(struct gf_bench_step *s, float *grads,
			   void (*on_grad)(void *ctx, size_t tensor), void *ctx,
			   struct gf_error *err)
{
	return s->backend->backward(s->net, s->params, grads, on_grad, ctx,
				    err);
}

void gf_bench_step_update(struct gf_bench_step *s, const float *grads)
{
	gf_sgd_update(&sgd, 1, grads, s->params, s->velocity,
		      s->offsets[s->ntensors]);
}
