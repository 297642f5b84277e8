/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/net_device.h"

#include <assert.h>

#include "base/clock.h"
#include "base/heap.h"
#include "transport/backoff.h"

/* Long enough that a copy's start costs little beside it at 25 GB/s. */
#define PIECE_BYTES ((size_t)4 << 20)

struct gf_grad_stage {
	struct gf_stage_config k;
	size_t *offsets;
	size_t piece_elems;
	float *host; /* where gradients go */
	struct gf_gpu_stream *down, *up;
	struct gf_gpu_event **come; /* per tensor: its copy has ended */
	struct gf_gpu_event *computed, *uploaded;
	size_t *order; /* tensors as they were asked for */
	size_t asked, arrived;
	size_t first, end; /* parameters that wait to be uploaded */
};

int gf_stage_new(const struct gf_stage_config *config, struct gf_grad_stage **stage,
		 struct gf_error *err)
{
	const struct gf_gpu_ops *ops = config->gpu->ops;
	const size_t n = config->ntensors;
	struct gf_grad_stage *s = gf_xcalloc(1, sizeof(*s));
	int rc;

	s->k = *config;
	s->offsets = gf_xmemdup(config->offsets, (n + 1) * sizeof(*s->offsets));
	s->piece_elems = (config->piece_bytes ? config->piece_bytes : PIECE_BYTES) / sizeof(float);
	if (!s->piece_elems)
		s->piece_elems = 1;
	s->come = gf_xcalloc(n + 1, sizeof(struct gf_gpu_event *));
	s->order = gf_xcalloc(n + 1, sizeof(*s->order));
	rc = ops->stream_new(s->k.gpu, true, &s->down, err);
	rc = rc ?: ops->stream_new(s->k.gpu, true, &s->up, err);
	rc = rc ?: ops->event_new(s->k.gpu, false, &s->computed, err);
	rc = rc ?: ops->event_new(s->k.gpu, false, &s->uploaded, err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = ops->event_new(s->k.gpu, false, &s->come[i], err);
	if (rc)
		gf_stage_free(s);
	else
		*stage = s;
	return rc;
}

void gf_stage_free(struct gf_grad_stage *s)
{
	const struct gf_gpu_ops *ops;
	struct gf_error ignored;

	if (!s)
		return;
	ops = s->k.gpu->ops;
	if (s->down)
		(void)ops->stream_sync(s->k.gpu, s->down, &ignored);
	if (s->up)
		(void)ops->stream_sync(s->k.gpu, s->up, &ignored);
	for (size_t i = 0; i < s->k.ntensors; i++)
		ops->event_free(s->k.gpu, s->come[i]);
	ops->event_free(s->k.gpu, s->computed);
	ops->event_free(s->k.gpu, s->uploaded);
	ops->stream_free(s->k.gpu, s->down);
	ops->stream_free(s->k.gpu, s->up);
	free(s->come);
	free(s->order);
	free(s->offsets);
	free(s);
}

/* --- gradients ------------------------------------------------------------ */

void gf_stage_to(struct gf_grad_stage *s, float *host_grads)
{
	assert(s->arrived == s->asked);
	s->host = host_grads;
	s->asked = s->arrived = 0;
}

static int copy(struct gf_grad_stage *s, struct gf_gpu_stream *stream, float *to, const float *from,
		size_t count, enum gf_gpu_copy kind, struct gf_error *err)
{
	size_t n;
	int rc = 0;

	for (; count && !rc; to += n, from += n, count -= n) {
		n = count < s->piece_elems ? count : s->piece_elems;
		rc = s->k.gpu->ops->copy(s->k.gpu, stream, to, from, n * sizeof(float), kind, err);
	}
	return rc;
}

int gf_stage_down(struct gf_grad_stage *s, size_t tensor, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = s->k.gpu->ops;
	const size_t first = s->offsets[tensor];
	int rc;

	assert(s->asked < s->k.ntensors);
	rc = ops->record(s->k.gpu, s->computed, s->k.compute, err);
	rc = rc ?: ops->wait(s->k.gpu, s->down, s->computed, err);
	rc = rc ? rc
		: copy(s, s->down, s->host + first, s->k.grads + first,
		       s->offsets[tensor + 1] - first, GF_GPU_TO_HOST, err);
	rc = rc ?: ops->record(s->k.gpu, s->come[tensor], s->down, err);
	if (!rc)
		s->order[s->asked++] = tensor;
	return rc;
}

/* Kernels after the last gradient may still read parameters. */
int gf_stage_flush(struct gf_grad_stage *s, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = s->k.gpu->ops;
	int rc = ops->record(s->k.gpu, s->computed, s->k.compute, err);

	rc = rc ?: ops->wait(s->k.gpu, s->up, s->computed, err);
	return rc ?: ops->check(s->k.gpu, err);
}

int gf_stage_look(struct gf_grad_stage *s, size_t *tensor, struct gf_error *err)
{
	int rc;

	if (s->arrived == s->asked)
		return 0;
	rc = s->k.gpu->ops->query(s->k.gpu, s->come[s->order[s->arrived]], err);
	if (rc == 1)
		*tensor = s->order[s->arrived++];
	return rc;
}

int gf_stage_arrived(struct gf_grad_stage *s, size_t *tensor, struct gf_error *err)
{
	struct gf_backoff backoff = {.beside_compute = true};
	double began_s = 0;
	int rc;

	for (;;) {
		rc = gf_stage_look(s, tensor, err);
		if (rc || s->arrived == s->asked)
			return rc;
		if (began_s == 0)
			began_s = gf_clock_s();
		if (s->k.timeout_s > 0 && gf_clock_s() - began_s > s->k.timeout_s)
			return gf_error_set(
				err, -ETIMEDOUT,
				"GPU %d: the gradient of tensor %zu has not come for %g s",
				s->k.gpu->index, s->order[s->arrived], s->k.timeout_s);
		gf_backoff_wait(&backoff);
	}
}

/* --- parameters ----------------------------------------------------------- */

static int upload(struct gf_grad_stage *s, struct gf_error *err)
{
	size_t first = s->first, count = s->end - s->first;

	s->first = s->end = 0;
	if (!count)
		return 0;
	return copy(s, s->up, s->k.params + first, s->k.host_params + first, count,
		    GF_GPU_TO_DEVICE, err);
}

int gf_stage_up(struct gf_grad_stage *s, size_t first, size_t count, struct gf_error *err)
{
	int rc = 0;

	if (first != s->end)
		rc = upload(s, err);
	if (s->first == s->end)
		s->first = first;
	s->end = first + count;
	if (!rc && s->end - s->first >= s->piece_elems)
		rc = upload(s, err);
	return rc;
}

int gf_stage_join(struct gf_grad_stage *s, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = s->k.gpu->ops;
	int rc = upload(s, err);

	rc = rc ?: ops->record(s->k.gpu, s->uploaded, s->up, err);
	return rc ?: ops->wait(s->k.gpu, s->k.compute, s->uploaded, err);
}
