/* SPDX-License-Identifier: BSD-3-Clause */
#include "select/csc_device.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "select/csc.h"

/* What the host and the device tell each other of a step, in pinned memory. */
struct told {
	double *norms;    /* per chunk, from the device */
	uint32_t *chosen; /* as the step's */
	uint8_t *sent;    /* per chunk, 1: it goes */
};

struct gf_csc_device {
	struct gf_csc_device_config k;
	struct gf_csc_step **steps;
	size_t npinned; /* their `packed` */
	struct told *told;
	void *host;
	void *history;
	/* Gradients with their history, of chunks that wait: the gradients'
	 * place where one step is under way at a time, else `left`. */
	void *left;
	void *packed;
	void *norms, *chosen, *sent; /* of the step taken last */
	/* of the step that is being taken */
	size_t slot, untaken;    /* tensors */
	size_t *chunk_tensors;   /* that each chunk has */
	size_t *chunk_missing;   /* that it waits for */
	size_t *message_missing; /* the same, of packed messages */
	/* of a chunk that is looked at */
	struct gf_gpu_stream *looking;
	void *looked_at;
	struct gf_gpu_stream *taking; /* where takes went last */
};

static size_t count_elems(const struct gf_csc_device *d)
{
	return d->k.csc->layout->count_elems;
}

/* The first and the last chunk that has some of a tensor. */
static void chunks_of(const struct gf_csc_device *d, size_t tensor,
		      size_t *first, size_t *last)
{
	const size_t *offsets = d->k.csc->layout->offsets;

	*first = offsets[tensor] / d->k.csc->chunk_elems;
	*last = (offsets[tensor + 1] - 1) / d->k.csc->chunk_elems;
}

/* --- memory --------------------------------------------------------------- */

static void count_tensors(struct gf_csc_device *d)
{
	size_t t, c, last;

	for (t = 0; t < d->k.csc->layout->ntensors; t++)
		for (chunks_of(d, t, &c, &last); c <= last; c++)
			d->chunk_tensors[c]++;
}

static int open_told(struct gf_csc_device *d, struct gf_error *err)
{
	const size_t n = d->k.csc->nchunks, all = n * d->k.depth;
	double *norms;
	uint32_t *chosen;
	size_t i;
	int rc;

	rc = d->k.gpu->ops->host_alloc(
		d->k.gpu,
		all * (sizeof(*norms) + sizeof(*chosen) + sizeof(uint8_t)),
		&d->host, err);
	if (rc)
		return rc;
	norms = d->host;
	chosen = (uint32_t *)(void *)(norms + all);
	for (i = 0; i < d->k.depth; i++)
		d->told[i] = (struct told){
			.norms = norms + i * n,
			.chosen = chosen + i * n,
			.sent = (uint8_t *)(chosen + all) + i * n,
		};
	return 0;
}

static int allocate(struct gf_csc_device *d, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	const size_t n = d->k.csc->nchunks;
	const struct {
		void **p;
		size_t size_bytes;
	} wanted[] = {
		{&d->history, count_elems(d) * sizeof(float)},
		{&d->packed, count_elems(d) * sizeof(float)},
		{&d->norms, n * sizeof(double)},
		{&d->chosen, n * sizeof(uint32_t)},
		{&d->sent, n},
		{&d->left, count_elems(d) * sizeof(float)},
	};
	/* the last one is for steps that overlap */
	const size_t nwanted =
		sizeof(wanted) / sizeof(wanted[0]) - (d->k.depth == 1);
	size_t i;
	int rc = open_told(d, err);

	for (i = 0; i < nwanted && !rc; i++)
		rc = ops->alloc(d->k.gpu, wanted[i].size_bytes, wanted[i].p,
				err);
	rc = rc ? rc
		: ops->host_alloc(d->k.gpu,
				  d->k.csc->chunk_elems * sizeof(float),
				  &d->looked_at, err);
	rc = rc ? rc : ops->stream_new(d->k.gpu, false, &d->looking, err);
	for (; !rc && d->npinned < d->k.depth; d->npinned += !rc)
		rc = ops->host_pin(d->k.gpu, d->steps[d->npinned]->packed,
				   count_elems(d) * sizeof(float), err);
	/* before the first take, on whichever stream */
	rc = rc ? rc
		: ops->zero(d->k.gpu, d->k.compute, d->history,
			    count_elems(d) * sizeof(float), err);
	return rc ? rc : ops->stream_sync(d->k.gpu, d->k.compute, err);
}

static float *left(const struct gf_csc_device *d)
{
	return d->left ? d->left : d->k.grads;
}

/* Of a step that has a gradient which is not finite; its takes have ended, and
 * nothing has been enqueued that would change it. */
static const float *look(void *device, size_t chunk)
{
	struct gf_csc_device *d = device;
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	struct gf_error ignored;
	int rc;

	rc = ops->copy(d->k.gpu, d->looking, d->looked_at,
		       left(d) + gf_csc_chunk_first(d->k.csc, chunk),
		       gf_csc_chunk_count(d->k.csc, chunk) * sizeof(float),
		       GF_GPU_TO_HOST, &ignored);
	rc = rc ? rc : ops->stream_sync(d->k.gpu, d->looking, &ignored);
	return rc ? NULL : d->looked_at;
}

int gf_csc_device_new(const struct gf_csc_device_config *config,
		      struct gf_csc_device **device, struct gf_error *err)
{
	struct gf_csc_device *d = gf_xcalloc(1, sizeof(*d));
	const size_t n = config->csc->nchunks;
	size_t i;
	int rc;

	d->k = *config;
	d->steps = gf_xmemdup(config->steps,
			      config->depth * sizeof(struct gf_csc_step *));
	d->k.steps = d->steps;
	d->told = gf_xcalloc(config->depth, sizeof(*d->told));
	d->chunk_tensors = gf_xcalloc(n, sizeof(size_t));
	d->chunk_missing = gf_xcalloc(n, sizeof(size_t));
	d->message_missing = gf_xcalloc(n, sizeof(size_t));
	count_tensors(d);
	rc = allocate(d, err);
	if (rc) {
		gf_error_prefix(err, "selection");
		gf_csc_device_free(d);
		return rc;
	}
	for (i = 0; i < config->depth; i++) {
		d->steps[i]->fetch = look;
		d->steps[i]->fetch_ctx = d;
	}
	*device = d;
	return 0;
}

void gf_csc_device_free(struct gf_csc_device *d)
{
	const struct gf_gpu_ops *ops;
	struct gf_error ignored;

	if (!d)
		return;
	ops = d->k.gpu->ops;
	if (d->taking)
		(void)ops->stream_sync(d->k.gpu, d->taking, &ignored);
	(void)ops->stream_sync(d->k.gpu, d->k.compute, &ignored);
	ops->stream_free(d->k.gpu, d->looking);
	while (d->npinned > 0)
		ops->host_unpin(d->k.gpu, d->steps[--d->npinned]->packed);
	ops->host_free(d->k.gpu, d->looked_at);
	ops->host_free(d->k.gpu, d->host);
	ops->free(d->k.gpu, d->left);
	ops->free(d->k.gpu, d->sent);
	ops->free(d->k.gpu, d->chosen);
	ops->free(d->k.gpu, d->norms);
	ops->free(d->k.gpu, d->packed);
	ops->free(d->k.gpu, d->history);
	free(d->chunk_tensors);
	free(d->chunk_missing);
	free(d->message_missing);
	free(d->told);
	free(d->steps);
	free(d);
}

/* --- taking --------------------------------------------------------------- */

void gf_csc_device_begin(struct gf_csc_device *d, size_t slot)
{
	const struct gf_csc_step *step = d->steps[slot];
	struct told *told = &d->told[slot];
	const size_t n = d->k.csc->nchunks;
	size_t i;

	d->slot = slot;
	d->untaken = d->k.csc->layout->ntensors;
	memcpy(d->chunk_missing, d->chunk_tensors,
	       n * sizeof(*d->chunk_missing));
	for (i = 0; i < step->nwork; i++)
		d->message_missing[i] =
			step->work[i].last - step->work[i].first + 1;
	memcpy(told->chosen, step->chosen,
	       step->nchosen * sizeof(*told->chosen));
	memset(told->sent, 0, n);
	for (i = 0; i < step->nchosen; i++)
		told->sent[step->chosen[i]] = 1;
}

static int send_lists(struct gf_csc_device *d, struct gf_gpu_stream *s,
		      struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	const struct told *told = &d->told[d->slot];
	int rc = ops->copy(d->k.gpu, s, d->sent, told->sent, d->k.csc->nchunks,
			   GF_GPU_TO_DEVICE, err);

	return rc ? rc
		  : ops->copy(d->k.gpu, s, d->chosen, told->chosen,
			      d->steps[d->slot]->nchosen * sizeof(uint32_t),
			      GF_GPU_TO_DEVICE, err);
}

/* All of it goes. */
static int take_dense(struct gf_csc_device *d, size_t tensor,
		      struct gf_gpu_stream *s, struct gf_error *err)
{
	const size_t first = d->k.csc->layout->offsets[tensor];
	const size_t n = d->k.csc->layout->offsets[tensor + 1] - first;

	d->k.gpu->kernels->add_f32(s, d->k.grads + first,
				   (float *)d->history + first, n);
	return d->k.gpu->ops->copy(
		d->k.gpu, s, d->steps[d->slot]->packed + first,
		d->k.grads + first, n * sizeof(float), GF_GPU_TO_HOST, err);
}

/* Chunks first to end - 1. Those that go are measured when they are sums, too;
 * one pass over neighbours costs less than many over what lies between. */
static int measure(struct gf_csc_device *d, size_t first, size_t end,
		   struct gf_gpu_stream *s, struct gf_error *err)
{
	const struct gf_csc *c = d->k.csc;
	const size_t at = gf_csc_chunk_first(c, first);
	const size_t n = gf_csc_chunk_first(c, end - 1) +
			 gf_csc_chunk_count(c, end - 1) - at;

	d->k.gpu->kernels->chunk_norms_f32(
		s, d->k.grads + at, (float *)d->history + at, n, c->chunk_elems,
		(double *)d->norms + first);
	if (!d->left)
		return 0;
	return d->k.gpu->ops->copy(d->k.gpu, s, (float *)d->left + at,
				   d->k.grads + at, n * sizeof(float),
				   GF_GPU_WITHIN, err);
}

static int pack(struct gf_csc_device *d, size_t message,
		struct gf_gpu_stream *s, struct gf_error *err)
{
	const struct gf_csc_step *step = d->steps[d->slot];
	const struct gf_work *w = &step->work[message];
	const size_t first = step->first_chosen[message];
	float *to = (float *)d->packed + ((float *)w->data - step->packed);

	d->k.gpu->kernels->gather_chunks_f32(
		s, to, d->k.grads, count_elems(d), d->k.csc->chunk_elems,
		(uint32_t *)d->chosen + first,
		step->first_chosen[message + 1] - first);
	return d->k.gpu->ops->copy(d->k.gpu, s, w->data, to,
				   w->count_elems * sizeof(float),
				   GF_GPU_TO_HOST, err);
}

/* The first packed message that does not end before the tensor. */
static size_t message_behind(const struct gf_csc_step *step, size_t tensor)
{
	size_t low = 0, high = step->nwork, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (step->work[middle].last < tensor)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Chunks that a tensor completes are neighbours: only its first and its last
 * have others'. */
static int take_chunks(struct gf_csc_device *d, size_t tensor,
		       struct gf_gpu_stream *s, struct gf_error *err)
{
	const struct gf_csc_step *step = d->steps[d->slot];
	size_t c, last, first, end = 0, i;
	int rc = 0;

	for (chunks_of(d, tensor, &c, &last), first = last + 1; c <= last;
	     c++) {
		assert(d->chunk_missing[c]);
		if (--d->chunk_missing[c])
			continue;
		first = c < first ? c : first;
		end = c + 1;
	}
	if (first < end)
		rc = measure(d, first, end, s, err);
	for (i = message_behind(step, tensor);
	     !rc && i < step->nwork && step->work[i].first <= tensor; i++)
		if (!--d->message_missing[i])
			rc = pack(d, i, s, err);
	return rc;
}

int gf_csc_device_take(struct gf_csc_device *d, size_t tensor,
		       struct gf_gpu_stream *s, struct gf_error *err)
{
	const size_t n = d->k.csc->nchunks;
	int rc = 0;

	d->taking = s;
	if (d->untaken == d->k.csc->layout->ntensors)
		rc = send_lists(d, s, err);
	if (rc)
		return rc;
	rc = d->steps[d->slot]->dense ? take_dense(d, tensor, s, err)
				      : take_chunks(d, tensor, s, err);
	d->untaken--;
	if (rc || d->untaken || d->steps[d->slot]->dense)
		return rc;
	return d->k.gpu->ops->copy(d->k.gpu, s, d->told[d->slot].norms,
				   d->norms, n * sizeof(double), GF_GPU_TO_HOST,
				   err);
}

void gf_csc_device_measured(struct gf_csc_device *d, size_t slot)
{
	struct gf_csc_step *step = d->steps[slot];
	size_t i;

	for (i = 0; i < step->nwaiting; i++)
		step->norms[step->waiting[i]] =
			d->told[slot].norms[step->waiting[i]];
}

/* --- what becomes of a step ----------------------------------------------- */

int gf_csc_device_commit(struct gf_csc_device *d, struct gf_gpu_stream *s,
			 struct gf_error *err)
{
	(void)err;
	d->k.gpu->kernels->keep_chunks_f32(
		s, NULL, d->history, left(d), count_elems(d),
		d->k.csc->chunk_elems, d->sent, d->k.csc->decay);
	return 0;
}

int gf_csc_device_sums(struct gf_csc_device *d, size_t slot, const float **sums,
		       struct gf_error *err)
{
	const struct gf_csc_step *step = d->steps[slot];
	const size_t last = step->chosen[step->nchosen - 1];
	const size_t n = (step->nchosen - 1) * d->k.csc->chunk_elems +
			 gf_csc_chunk_count(d->k.csc, last);

	*sums = d->packed;
	return d->k.gpu->ops->copy(d->k.gpu, d->k.compute, d->packed,
				   step->packed, n * sizeof(float),
				   GF_GPU_TO_DEVICE, err);
}

/* --- checkpoints ---------------------------------------------------------- */

static int copy(struct gf_csc_device *d, void *to, const void *from,
		enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	int rc = ops->copy(d->k.gpu, d->k.compute, to, from,
			   count_elems(d) * sizeof(float), kind, err);

	return rc ? rc : ops->stream_sync(d->k.gpu, d->k.compute, err);
}

int gf_csc_device_fetch(struct gf_csc_device *d, struct gf_error *err)
{
	return copy(d, d->k.csc->history, d->history, GF_GPU_TO_HOST, err);
}

int gf_csc_device_send(struct gf_csc_device *d, struct gf_error *err)
{
	return copy(d, d->history, d->k.csc->history, GF_GPU_TO_DEVICE, err);
}
