/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/net_device.h"

#include "base/heap.h"

#define LINE_ELEMS 32

/* A batch on the device: values, then labels, in one piece of memory. */
struct buffer {
	void *device;
	struct gf_gpu_event *copied, *used; /* the batch has been, by a pass */
};

struct gf_train_device {
	struct gf_train_device_config k;
	size_t *offsets, nparams, values_bytes;
	void *params, *grads;
	size_t stride, pool; /* between pools; that this step writes to */
	bool pinned;
	/*
	 * The mean of several micro-batches' gradients: those before the last are added up without
	 * a wait on the host. The last one takes the sum up tensor by tensor, each as soon as it is
	 * there. The result has the same bits as trainer/train_step.c's on the host.
	 */
	void *sum;         /* NULL: one part, nothing to do */
	float *step_grads; /* of the pool that this step writes to; in the end the mean */
	struct gf_train_graphs *graphs;   /* NULL: none */
	struct gf_train_device_pass pass; /* the one under way */
	struct gf_grad_stage *stage;      /* NULL: gradients stay */
	struct gf_gpu_stream *input;
	struct buffer buffers[2];
	void *rooms[GF_NET_DEVICE_ROOMS]; /* the same on the host, pinned */
	size_t nbatches;                  /* so far */
	/* timed: around forward */
	struct gf_gpu_event *begun, *ended;
	double forward_s;
	/* of the update: the first failure */
	int rc;
	struct gf_error reason;
};

/* A graph is for one kind of pass: by the place of the batch, the place of the gradients, and the
 * work on them. */
enum role { FIRST, MIDDLE, LAST, ROLES };

static enum role role_of(const struct gf_train_device *d)
{
	if (d->pass.part + 1 >= d->k.accumulate)
		return LAST;
	return d->pass.part ? MIDDLE : FIRST;
}

/* The key of a forward, which has no pool, or of a backward into one. */
static size_t key_of(const struct gf_train_device *d, bool backward)
{
	return ((d->nbatches % 2) * ROLES + role_of(d)) * (1 + d->k.pools) +
	       (backward ? 1 + d->pool : 0);
}

static size_t keys(const struct gf_train_device *d)
{
	return 2 * ROLES * (1 + d->k.pools);
}

/* Gradients that do not stay are all in the one pool, on their way. */
static void use_pool(struct gf_train_device *d, const float *grads)
{
	float *first = d->grads;

	d->pool = d->k.stays ? (size_t)(grads - first) / d->stride : 0;
	d->step_grads = first + d->pool * d->stride;
}

/* --- making --------------------------------------------------------------- */

static void place(struct gf_train_device *d)
{
	const struct gf_model *m = d->k.model;
	size_t *order = gf_model_generation_order(m), i;

	d->nparams = m->nparams;
	d->offsets = gf_xcalloc(m->nparams + 1, sizeof(*d->offsets));
	for (i = 0; i < m->nparams; i++)
		d->offsets[i + 1] = d->offsets[i] + gf_shape_elems(&m->params[order[i]].shape);
	free(order);
	d->stride = d->offsets[d->nparams] + LINE_ELEMS - 1;
	d->stride -= d->stride % LINE_ELEMS;
}

static int device_memory(struct gf_train_device *d, size_t size_bytes, const char *what, void **p,
			 struct gf_error *err)
{
	int rc = d->k.gpu->ops->alloc(d->k.gpu, size_bytes, p, err);

	if (rc)
		gf_error_prefix(err, "%s", what);
	return rc;
}

static size_t batch_bytes(const struct gf_train_device *d)
{
	return d->values_bytes + d->k.labels * sizeof(int32_t);
}

static int make(struct gf_train_device *d, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	size_t size_bytes = d->offsets[d->nparams] * sizeof(float);
	struct gf_error ignored;
	int rc, i;

	rc = device_memory(d, size_bytes, "parameters", &d->params, err);
	rc = rc ? rc
		: device_memory(d, d->k.pools * d->stride * sizeof(float), "gradients", &d->grads,
				err);
	d->step_grads = d->grads;
	if (!rc && d->k.accumulate > 1) {
		rc = ops->alloc(d->k.gpu, size_bytes, &d->sum, err);
		if (rc)
			gf_error_prefix(err, "the sum of %zu batches' gradients", d->k.accumulate);
	}
	/* else copies wait for the host, which is slower and no worse */
	if (!rc)
		d->pinned = !ops->host_pin(d->k.gpu, d->k.params, size_bytes, &ignored);
	rc = rc ?: ops->stream_new(d->k.gpu, true, &d->input, err);
	rc = rc ?: ops->event_new(d->k.gpu, true, &d->begun, err);
	rc = rc ?: ops->event_new(d->k.gpu, true, &d->ended, err);
	for (i = 0; i < 2 && !rc; i++) {
		struct buffer *b = &d->buffers[i];

		rc = device_memory(d, batch_bytes(d), "batches", &b->device, err);
		rc = rc ?: ops->event_new(d->k.gpu, false, &b->copied, err);
		rc = rc ?: ops->event_new(d->k.gpu, false, &b->used, err);
	}
	for (i = 0; i < GF_NET_DEVICE_ROOMS && !rc; i++)
		rc = ops->host_alloc(d->k.gpu, batch_bytes(d), &d->rooms[i], err);
	if (!rc && d->k.cut)
		rc = gf_train_graphs_new(
			&(struct gf_train_graphs_config){
				.gpu = d->k.gpu,
				.stream = d->k.stream,
				.keys = keys(d),
				.ntensors = d->nparams,
				.cut = d->k.cut,
			},
			&d->graphs, err);
	if (rc || d->k.stays)
		return rc;
	return gf_stage_new(
		&(struct gf_stage_config){
			.gpu = d->k.gpu,
			.compute = d->k.stream,
			.offsets = d->offsets,
			.ntensors = d->nparams,
			.grads = d->grads,
			.params = d->params,
			.host_params = d->k.params,
			.timeout_s = d->k.timeout_s,
		},
		&d->stage, err);
}

int gf_train_device_new(const struct gf_train_device_config *config,
			struct gf_train_device **device, struct gf_error *err)
{
	struct gf_train_device *d = gf_xcalloc(1, sizeof(*d));
	int rc;

	d->k = *config;
	d->k.pools = config->pools ? config->pools : 1;
	d->values_bytes = config->values * sizeof(float);
	place(d);
	rc = make(d, err);
	if (rc)
		gf_train_device_free(d);
	else
		*device = d;
	return rc;
}

void gf_train_device_free(struct gf_train_device *d)
{
	const struct gf_gpu_ops *ops;
	struct gf_error ignored;

	if (!d)
		return;
	ops = d->k.gpu->ops;
	gf_stage_free(d->stage);
	if (d->input)
		(void)ops->stream_sync(d->k.gpu, d->input, &ignored);
	(void)ops->stream_sync(d->k.gpu, d->k.stream, &ignored);
	gf_train_graphs_free(d->graphs);
	for (int i = 0; i < 2; i++) {
		ops->free(d->k.gpu, d->buffers[i].device);
		ops->event_free(d->k.gpu, d->buffers[i].copied);
		ops->event_free(d->k.gpu, d->buffers[i].used);
	}
	for (int i = 0; i < GF_NET_DEVICE_ROOMS; i++)
		ops->host_free(d->k.gpu, d->rooms[i]);
	ops->event_free(d->k.gpu, d->begun);
	ops->event_free(d->k.gpu, d->ended);
	ops->stream_free(d->k.gpu, d->input);
	if (d->pinned)
		ops->host_unpin(d->k.gpu, d->k.params);
	ops->free(d->k.gpu, d->sum);
	ops->free(d->k.gpu, d->grads);
	ops->free(d->k.gpu, d->params);
	free(d->offsets);
	free(d);
}

/* --- batches -------------------------------------------------------------- */

struct gf_train_device_room gf_train_device_room(const struct gf_train_device *d, size_t i)
{
	char *at = d->rooms[i];

	return (struct gf_train_device_room){
		.values = (float *)(void *)at,
		.labels = (int32_t *)(void *)(at + d->values_bytes),
	};
}

int gf_train_device_copied(struct gf_train_device *d, struct gf_error *err)
{
	return d->k.gpu->ops->event_sync(d->k.gpu, d->buffers[(d->nbatches + 1) % 2].copied, err);
}

int gf_train_device_input(struct gf_train_device *d, struct gf_train_device_batch *batch,
			  struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	struct gf_gpu *gpu = d->k.gpu;
	struct buffer *last = &d->buffers[(d->nbatches + 1) % 2];
	struct buffer *b = &d->buffers[d->nbatches % 2];
	size_t labels_bytes = batch->nlabels * sizeof(int32_t);
	size_t size_bytes = d->values_bytes + labels_bytes;
	int rc = 0;

	/* all passes over the one before are enqueued by now */
	if (d->nbatches)
		rc = ops->record(gpu, last->used, d->k.stream, err);
	rc = rc ?: ops->wait(gpu, d->input, b->used, err);
	rc = rc ? rc
		: ops->copy(gpu, d->input, b->device, batch->values, size_bytes, GF_GPU_TO_DEVICE,
			    err);
	rc = rc ?: ops->record(gpu, b->copied, d->input, err);
	rc = rc ?: ops->wait(gpu, d->k.stream, b->copied, err);
	if (rc)
		return rc;
	d->nbatches++;
	batch->values = b->device;
	batch->labels = (const int32_t *)(void *)((char *)b->device + d->values_bytes);
	return 0;
}

/* --- a pass --------------------------------------------------------------- */

struct gf_train_arrays gf_train_device_arrays(const struct gf_train_device *d)
{
	return (struct gf_train_arrays){d->params, d->grads, d->stride};
}

static int run_forward(void *ctx, void (*made)(void *made_ctx, size_t tensor), void *made_ctx,
		       struct gf_error *err)
{
	struct gf_train_device *d = ctx;
	const struct gf_train_device_pass *p = &d->pass;
	int rc = p->backend->forward(p->net, d->params, p->on.values, p->batch, p->training, err);

	(void)made;
	(void)made_ctx;
	return rc ?: p->backend->loss(p->net, p->on.labels, err);
}

int gf_train_device_forward(struct gf_train_device *d, const struct gf_train_device_pass *pass,
			    struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	const struct gf_train_pass run = {.run = run_forward, .ctx = d};
	int rc;

	d->pass = *pass;
	rc = ops->record(d->k.gpu, d->begun, d->k.stream, err);
	/* tests pass now and then, with batches of any size */
	rc = rc ? rc
		: gf_train_graphs_run(pass->training ? d->graphs : NULL, key_of(d, false), &run,
				      err);
	return rc ?: ops->record(d->k.gpu, d->ended, d->k.stream, err);
}

int gf_train_device_forget(struct gf_train_device *d, struct gf_error *err)
{
	int rc;

	if (!d->graphs)
		return 0;
	rc = d->k.gpu->ops->stream_sync(d->k.gpu, d->k.stream, err);
	if (!rc)
		gf_train_graphs_forget(d->graphs);
	return rc;
}

/* The backend's callback: kernels that make a gradient are enqueued. */
struct backward {
	struct gf_train_device *d;
	/* around each gradient of what is in the pass itself */
	void (*made)(void *made_ctx, size_t tensor);
	void *made_ctx;
	/* outside */
	void (*on_grad)(void *ctx, size_t tensor);
	void *ctx;
	int rc;
	struct gf_error *err;
};

static void take_up(void *ctx, size_t tensor)
{
	struct backward *b = ctx;
	const struct gf_train_device *d = b->d;
	const struct gf_gpu_kernels *kernels = d->k.gpu->kernels;
	const size_t first = d->offsets[tensor], count = d->offsets[tensor + 1] - first;
	float *grad = d->step_grads + first;

	if (d->sum) {
		kernels->add_f32(d->k.stream, grad, (float *)d->sum + first, count);
		kernels->scale_f32(d->k.stream, 1.0f / (float)d->k.accumulate, grad, grad, count);
	}
	b->made(b->made_ctx, tensor);
}

static int run_backward(void *ctx, void (*made)(void *made_ctx, size_t tensor), void *made_ctx,
			struct gf_error *err)
{
	struct backward *b = ctx;
	const struct gf_train_device_pass *p = &b->d->pass;

	b->made = made;
	b->made_ctx = made_ctx;
	return p->backend->backward(p->net, b->d->params, b->d->step_grads, take_up, b, err);
}

static int run_early(void *ctx, void (*made)(void *made_ctx, size_t tensor), void *made_ctx,
		     struct gf_error *err)
{
	struct gf_train_device *d = ctx;
	const struct gf_train_device_pass *p = &d->pass;
	/* the first of several begins the sum */
	float *to = d->sum && p->part == 0 ? d->sum : d->step_grads;
	int rc = p->backend->backward(p->net, d->params, to, NULL, NULL, err);

	(void)made;
	(void)made_ctx;
	if (!rc && p->part)
		d->k.gpu->kernels->add_f32(d->k.stream, d->sum, d->step_grads,
					   d->offsets[d->nparams]);
	return rc;
}

int gf_train_device_early(struct gf_train_device *d, float *grads, struct gf_error *err)
{
	const struct gf_train_pass run = {.run = run_early, .ctx = d};

	use_pool(d, grads);
	return gf_train_graphs_run(d->graphs, key_of(d, true), &run, err);
}

/* A gradient that goes by the host is on its way; earlier ones may have come meanwhile. */
static void send(void *ctx, size_t tensor)
{
	struct backward *b = ctx;
	size_t come;

	if (!b->d->stage) {
		b->on_grad(b->ctx, tensor);
		return;
	}
	if (b->rc < 0)
		return;
	b->rc = gf_stage_down(b->d->stage, tensor, b->err);
	while (!b->rc) {
		b->rc = gf_stage_look(b->d->stage, &come, b->err);
		if (b->rc != 1)
			break;
		b->on_grad(b->ctx, come);
		b->rc = 0;
	}
}

int gf_train_device_backward(struct gf_train_device *d, float *grads,
			     void (*on_grad)(void *ctx, size_t tensor), void *ctx,
			     struct gf_error *err)
{
	struct backward b = {.d = d, .on_grad = on_grad, .ctx = ctx, .err = err};
	const struct gf_train_pass run = {run_backward, send, &b};
	size_t tensor;
	int rc;

	use_pool(d, grads);
	if (d->stage)
		gf_stage_to(d->stage, grads);
	rc = gf_train_graphs_run(d->graphs, key_of(d, true), &run, err);
	rc = rc ?: b.rc;
	if (rc || !d->stage)
		return rc;
	rc = gf_stage_flush(d->stage, err);
	if (rc)
		return rc;
	while ((rc = gf_stage_arrived(d->stage, &tensor, err)) == 1)
		on_grad(ctx, tensor);
	rc = rc ?: d->k.gpu->ops->event_sync(d->k.gpu, d->ended, err);
	return rc ?: d->k.gpu->ops->event_s(d->k.gpu, d->begun, d->ended, &d->forward_s, err);
}

double gf_train_device_forward_s(const struct gf_train_device *d)
{
	return d->forward_s;
}

/* --- parameters ----------------------------------------------------------- */

void gf_train_device_changed(void *device, size_t first, size_t count)
{
	struct gf_train_device *d = device;

	if (!d->rc)
		d->rc = gf_stage_up(d->stage, first, count, &d->reason);
}

int gf_train_device_join(struct gf_train_device *d, struct gf_error *err)
{
	if (d->rc && err)
		*err = d->reason;
	return d->rc ? d->rc : gf_stage_join(d->stage, err);
}

int gf_train_device_copy(struct gf_train_device *d, void *to, const void *from, size_t count,
			 enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = d->k.gpu->ops;
	int rc = 0;

	if (count)
		rc = ops->copy(d->k.gpu, d->k.stream, to, from, count * sizeof(float), kind, err);
	return rc ?: ops->stream_sync(d->k.gpu, d->k.stream, err);
}
