/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/device_graphs.h"

int gf_train_sum_open(struct gf_train_sum *s, struct gf_error *err)
{
	size_t size_bytes = s->offsets[s->ntensors] * sizeof(float);
	int rc;

	if (s->parts < 2)
		return 0;
	rc = s->gpu->ops->alloc(s->gpu, size_bytes, &s->sum, err);
	if (rc)
		gf_error_prefix(err, "the sum of %zu batches' gradients",
				s->parts);
	return rc;
}

void gf_train_sum_close(struct gf_train_sum *s)
{
	if (s->sum)
		s->gpu->ops->free(s->gpu, s->sum);
	s->sum = NULL;
}

/* The first of several begins the sum. */
float *gf_train_sum_to(const struct gf_train_sum *s, size_t part)
{
	return s->sum && part == 0 ? s->sum : s->grads;
}

void gf_train_sum_keep(const struct gf_train_sum *s, size_t part)
{
	if (part)
		s->gpu->kernels->add_f32(s->stream, s->sum, s->grads,
					 s->offsets[s->ntensors]);
}

void gf_train_sum_take_up(const struct gf_train_sum *s, size_t tensor)
{
	const size_t first = s->offsets[tensor];
	const size_t count = s->offsets[tensor + 1] - first;
	float *grad = s->grads + first;

	if (!s->sum)
		return;
	s->gpu->kernels->add_f32(s->stream, grad, (float *)s->sum + first,
				 count);
	s->gpu->kernels->scale_f32(s->stream, 1.0f / (float)s->parts, grad,
				   grad, count);
}
