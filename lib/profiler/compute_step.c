/* SPDX-License-Identifier: BSD-3-Clause */
#include "profiler/model_times.h"

#include <string.h>

#include "base/array.h"
#include "base/heap.h"

static const uint64_t seed = 1;

static void lay_out(struct gf_measure_step *s)
{
	GF_FREED size_t *order = gf_model_generation_order(s->model);

	s->ntensors = s->model->ntrained;
	s->offsets = gf_xcalloc(s->ntensors + 1, sizeof(*s->offsets));
	for (size_t i = 0; i < s->ntensors; i++)
		s->offsets[i + 1] =
			s->offsets[i] + gf_shape_elems(&s->model->params[order[i]].shape);
}

static void make_samples(struct gf_measure_step *s)
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

static int upload(struct gf_measure_step *s, void *to, const void *from, size_t bytes,
		  struct gf_error *err)
{
	int rc = s->gpu->ops->copy(s->gpu, s->stream, to, from, bytes, GF_GPU_TO_DEVICE, err);

	return rc ?: s->gpu->ops->stream_sync(s->gpu, s->stream, err);
}

int gf_measure_step_load(struct gf_measure_step *s, struct gf_error *err)
{
	for (size_t i = 0; i < s->batch_elems; i++)
		s->input[i] = s->vocabulary ? (float)gf_rng_below(&s->rng, s->vocabulary)
					    : (float)gf_rng_uniform(&s->rng);
	return s->gpu ? upload(s, s->on_device.input, s->input, s->batch_elems * sizeof(*s->input),
			       err)
		      : 0;
}

/* Its arrays there, of which some begin as the host's. */
static int open_device(struct gf_measure_step *s, struct gf_error *err)
{
	struct gf_measure_step_arrays *d = &s->on_device;
	const size_t floats = gf_model_param_count(s->model) * sizeof(float);
	const size_t labels = s->batch * gf_model_positions(s->model) * sizeof(int32_t);
	const struct {
		void **to;
		const void *from;
		size_t bytes;
	} arrays[] = {
		{&d->params, s->params, floats},
		{&d->grads, NULL, floats},
		{&d->input, NULL, s->batch_elems * sizeof(float)},
		{&d->labels, s->labels, labels},
		{&d->velocity, s->velocity, floats},
	};
	const size_t n = GF_ARRAY_LENGTH(arrays) - !s->updates_there;
	int rc = s->gpu->ops->stream_new(s->gpu, false, &s->stream, err);

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = s->gpu->ops->alloc(s->gpu, arrays[i].bytes, arrays[i].to, err);
	for (size_t i = 0; i < n && rc == 0; i++)
		if (arrays[i].from)
			rc = upload(s, *arrays[i].to, arrays[i].from, arrays[i].bytes, err);
	return rc;
}

int gf_measure_step_open(struct gf_measure_step *s, const struct gf_measure_step_config *config,
			 struct gf_error *err)
{
	const struct gf_model *model = config->model;
	size_t count;
	int rc;

	memset(s, 0, sizeof(*s));
	s->model = model;
	s->backend = config->backend;
	s->batch = config->batch;
	s->gpu = config->backend->on_device ? config->gpu : NULL;
	s->updates_there = s->gpu && config->updates_there;
	lay_out(s);
	count = gf_model_param_count(model);
	s->params = gf_xcalloc(count, sizeof(*s->params));
	s->velocity = gf_xcalloc(count, sizeof(*s->velocity));
	make_samples(s);
	gf_net_init_params(model, seed, s->params);
	rc = s->gpu ? open_device(s, err) : 0;
	if (rc == 0)
		rc = s->backend->net_new(model, s->batch,
					 &(struct gf_net_options){.threads = config->threads,
								  .precision = config->precision,
								  .gpu = s->gpu,
								  .stream = s->stream},
					 &s->net, err);
	if (rc < 0)
		gf_measure_step_close(s);
	return rc;
}

void gf_measure_step_close(struct gf_measure_step *s)
{
	if (s->net)
		s->backend->net_free(s->net);
	if (s->gpu) {
		s->gpu->ops->free(s->gpu, s->on_device.params);
		s->gpu->ops->free(s->gpu, s->on_device.grads);
		s->gpu->ops->free(s->gpu, s->on_device.input);
		s->gpu->ops->free(s->gpu, s->on_device.labels);
		s->gpu->ops->free(s->gpu, s->on_device.velocity);
		s->gpu->ops->stream_free(s->gpu, s->stream);
	}
	free(s->params);
	free(s->velocity);
	free(s->input);
	free(s->labels);
	free(s->offsets);
	memset(s, 0, sizeof(*s));
}

int gf_measure_step_forward(struct gf_measure_step *s, struct gf_error *err)
{
	int rc = s->backend->forward(s->net, s->gpu ? s->on_device.params : s->params,
				 s->gpu ? s->on_device.input : s->input, s->batch, 1, err);

	if (rc < 0)
		return rc;
	return s->backend->loss(s->net, s->gpu ? s->on_device.labels : s->labels, err);
}

int gf_measure_step_backward(struct gf_measure_step *s, float *grads,
			     void (*on_grad)(void *ctx, size_t tensor), void *ctx,
			     struct gf_error *err)
{
	return s->backend->backward(s->net, s->gpu ? s->on_device.params : s->params,
				    s->gpu ? s->on_device.grads : grads, on_grad, ctx, err);
}
