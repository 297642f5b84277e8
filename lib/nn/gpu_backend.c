/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/heap.h"
#include "nn/gpu_net.h"

/*
 * The CUDA backend: products by cuBLAS, convolutions by cuDNN, all else by kernels/cuda. Everything
 * is enqueued on one stream, so what is written once and read later in the same pass needs no more
 * order than that.
 */
static struct gf_gpu_net *gpu_net(const struct gf_net *net)
{
	return net->priv;
}

/* Waits first: enqueued work may still use the memory. */
static void net_free(struct gf_net *net)
{
	GF_FREED struct gf_gpu_net *g = NULL;

	if (!net)
		return;
	g = gpu_net(net);
	(void)g->gpu->ops->stream_sync(g->gpu, g->stream, NULL);
	for (size_t l = 0; l < net->model->nlayers; l++) {
		struct gf_gpu_io *io = &g->io[l];

		for (size_t i = 0; i < io->nconvs; i++)
			gf_gpu_conv_free(io->convs[i].conv);
		free(io->convs);
		free(io->in);
		free(io->din);
		free(io->add);
	}
	gf_gpu_dnn_free(g->dnn);
	gf_gpu_blas_free(g->blas);
	if (g->event)
		g->gpu->ops->event_free(g->gpu, g->event);
	if (g->ended)
		g->gpu->ops->host_free(g->gpu, g->ended);
	for (size_t i = 0; i < g->ngrown; i++)
		g->gpu->ops->free(g->gpu, g->grown[i]);
	free(g->grown);
	if (g->memory)
		g->gpu->ops->free(g->gpu, g->memory);
	free(g->io);
	gf_net_release(net);
	free(net);
}

static void tell(struct gf_net *net)
{
	struct gf_gpu_net *g = gpu_net(net);

	g->kernels->set_samples(g->stream, g->samples, net->dropout_seed, net->first_sample);
	g->unscale = 1 / net->loss_scale;
}

static int check_sizes(const struct gf_model *m, size_t max_batch, struct gf_error *err)
{
	for (size_t l = 0; l < m->nlayers; l++) {
		const struct gf_layer *layer = &m->layers[l];
		/* four gates */
		const size_t most =
			GF_GPU_NN_MOST / max_batch / (layer->type == GF_LAYER_LSTM ? 4 : 1);

		if (gf_shape_elems(&layer->in) > most || gf_shape_elems(&layer->out) > most)
			return gf_error_set(err, -ENOTSUP,
					    "layer %s: want fewer values than %zu for each of %zu "
					    "samples on a GPU",
					    layer->name, most + 1, max_batch);
	}
	return 0;
}

static void init_io(struct gf_gpu_net *g, size_t l)
{
	const struct gf_layer *layer = &g->net->model->layers[l];

	g->io[l] = (struct gf_gpu_io){
		.g = g,
		.layer = layer,
		.index = l,
		.in = gf_xcalloc(layer->ninputs + 1, sizeof(*g->io->in)),
		.din = gf_xcalloc(layer->ninputs + 1, sizeof(*g->io->din)),
		.add = gf_xcalloc(layer->ninputs + 1, sizeof(*g->io->add)),
	};
}

static int prepare_layers(struct gf_gpu_net *g, struct gf_error *err)
{
	const struct gf_model *m = g->net->model;
	int rc = 0;

	for (size_t l = 0; l < m->nlayers && !rc; l++) {
		const struct gf_gpu_layer *ops = gf_gpu_layers[m->layers[l].type];

		if (m->layers[l].type == GF_LAYER_CONV && !g->dnn)
			rc = gf_gpu_dnn_new(g->stream, &g->dnn, err);
		if (rc)
			return rc;
		rc = ops->prepare ? ops->prepare(&g->io[l], err) : 0;
		if (rc)
			gf_error_prefix(err, "layer %s", m->layers[l].name);
	}
	return rc;
}

/* The host's copy of the running statistics has their start. */
static int start(struct gf_gpu_net *g, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = g->gpu->ops;
	const struct gf_net *net = g->net;
	void *ended;
	int rc = ops->host_alloc(g->gpu, sizeof(*g->ended), &ended, err);

	if (rc)
		return rc;
	g->ended = ended;
	rc = ops->event_new(g->gpu, false, &g->event, err);
	if (!rc && net->nrunning)
		rc = ops->copy(g->gpu, g->stream, g->running, net->running,
			       net->nrunning * sizeof(float), GF_GPU_TO_DEVICE, err);
	for (size_t l = 0; l < net->model->nlayers && !rc; l++) {
		const struct gf_gpu_layer *layer = gf_gpu_layers[net->model->layers[l].type];

		rc = layer->start ? layer->start(&g->io[l], err) : 0;
	}
	return rc ?: ops->stream_sync(g->gpu, g->stream, err);
}

static bool is_image(const struct gf_shape *s)
{
	return s->rank == 3 && s->dims[1] * s->dims[2] > 1;
}

/* Can images lie channels last without other layers noticing? */
static bool wants_channels_last(const struct gf_model *m, enum gf_dtype dtype)
{
	if (dtype == GF_F32 || is_image(&m->layers[m->nlayers - 1].out))
		return false;
	for (size_t l = 0; l < m->nlayers; l++) {
		const struct gf_layer *layer = &m->layers[l];

		/* these go by the place of a value in a sample; fc turns it back */
		if ((layer->type == GF_LAYER_DROPOUT || layer->type == GF_LAYER_LAYERNORM) &&
		    is_image(&layer->in))
			return false;
		for (size_t i = 0; i < layer->ninputs; i++) {
			const int from = layer->inputs[i];
			const struct gf_shape *in = from < 0 ? &m->input : &m->layers[from].out;

			if (is_image(in) != is_image(&layer->in))
				return false;
		}
	}
	return true;
}

/* A logit's gradient is at most 1 by the number of labels. */
static float start_scale(const struct gf_net *net)
{
	float scale = 16;

	if (net->precision != GF_F16)
		return 1;
	while (scale <= 8 * (float)(net->max_batch * net->labels))
		scale *= 2;
	return scale;
}

static int net_new(const struct gf_model *m, size_t max_batch, const struct gf_net_options *options,
		   struct gf_net **net, struct gf_error *err)
{
	struct gf_gpu_net *g;
	struct gf_net *n;
	void *work;
	int rc;

	if (!options->gpu)
		return gf_error_set(err, -EINVAL, "cuda: want a GPU to compute on");
	n = gf_xcalloc(1, sizeof(*n));
	rc = gf_net_init(n, m, max_batch, options, err);
	if (rc) {
		free(n);
		return rc;
	}
	/* the host's are not used, and can be large */
	free(n->logits);
	free(n->dlogits);
	n->logits = n->dlogits = NULL;
	n->priv = g = gf_xcalloc(1, sizeof(*g));
	*g = (struct gf_gpu_net){
		.net = n,
		.gpu = options->gpu,
		.stream = options->stream,
		.kernels = &gf_gpu_nn_kernels_cuda,
		.dtype = n->precision,
		.channels_last = wants_channels_last(m, n->precision),
		.io = gf_xcalloc(m->nlayers, sizeof(*g->io)),
	};
	n->tell = tell;
	n->loss_scale = start_scale(n);
	g->unscale = 1 / n->loss_scale;
	for (size_t l = 0; l < m->nlayers; l++)
		init_io(g, l);
	rc = check_sizes(m, max_batch, err);
	rc = rc ?: prepare_layers(g, err);
	rc = rc ?: gf_gpu_memory(g, &work, err);
	rc = rc ?: gf_gpu_blas_new(g->stream, work, &g->blas, err);
	rc = rc ?: start(g, err);
	if (rc)
		net_free(n);
	else
		*net = n;
	return rc;
}

/* --- a pass -----------------------------------------------------------------
 */

static void bind(struct gf_gpu_io *io, const float *params, float *grads)
{
	const struct gf_net *net = io->g->net;
	const struct gf_layer *layer = io->layer;

	io->batch = net->batch;
	io->training = net->training;
	for (size_t i = 0; i < gf_layer_uses(layer); i++) {
		const size_t at = net->param_at[gf_layer_use(layer, i)];

		io->param[i] = params + at;
		io->dparam[i] = grads && !layer->frozen ? grads + at : NULL;
	}
}

static int failed(struct gf_gpu_net *g, size_t l, int rc, struct gf_error *err)
{
	gf_error_prefix(err, "layer %s", g->net->model->layers[l].name);
	g->net->stage = GF_NET_IDLE;
	return rc;
}

static int forward(struct gf_net *net, const float *params, const float *input, size_t batch,
		   int training, struct gf_error *err)
{
	struct gf_gpu_net *g = gpu_net(net);
	const struct gf_model *m = net->model;
	int rc = gf_net_begin_forward(net, NULL, batch, training, err);

	if (!rc && gf_model_vocabulary(m))
		rc = g->gpu->ops->zero(g->gpu, g->stream, &g->outcome->bad_number,
				       sizeof(g->outcome->bad_number), err);
	if (rc)
		return rc;
	if (g->input)
		gf_gpu_from_plain(g, input, g->input,
				  (size_t[3]){batch,
					      m->input.rank == 3 ? m->input.dims[0]
								 : gf_shape_elems(&m->input),
					      gf_shape_spatial(&m->input)});
	for (size_t l = 0; l < m->nlayers; l++) {
		if (!net->on_path[l] || g->io[l].forward_done)
			continue;
		bind(&g->io[l], params, NULL);
		g->io[l].sample = input;
		rc = gf_gpu_layers[m->layers[l].type]->forward(&g->io[l], err);
		if (rc)
			return failed(g, l, rc, err);
	}
	return 0;
}

static int loss(struct gf_net *net, const int32_t *labels, struct gf_error *err)
{
	struct gf_gpu_net *g = gpu_net(net);
	const struct gf_gpu_ops *ops = g->gpu->ops;
	const struct gf_gpu_io *last = &g->io[net->model->nlayers - 1];
	const struct gf_gpu_loss o = {
		.dtype = g->dtype,
		.logits = last->out,
		.labels = labels,
		.dlogits = last->dout,
		.rows = net->batch * net->positions,
		.counted = net->batch * net->labels,
		.no_label = GF_NO_LABEL,
		.classes = net->model->classes,
		.scale = net->loss_scale,
		.work = g->loss_work,
		.outcome = g->outcome,
	};
	int rc = gf_net_begin_loss(net, err);

	if (rc)
		return rc;
	g->kernels->softmax_loss(g->stream, &o);
	rc = ops->copy(g->gpu, g->stream, g->ended, g->outcome, sizeof(*g->ended), GF_GPU_TO_HOST,
		       err);
	rc = rc ?: ops->record(g->gpu, g->event, g->stream, err);
	rc = rc ?: ops->check(g->gpu, err);
	if (rc)
		return rc;
	net->stage = GF_NET_LOSS;
	net->has_loss = true;
	return 0;
}

static int bad_number(const struct gf_net *net, const struct gf_gpu_outcome *o,
		      struct gf_error *err)
{
	const uint32_t bits = (uint32_t)o->bad_number;
	const struct gf_layer *layer = net->model->layers;
	float number;

	memcpy(&number, &bits, sizeof(number));
	while (layer->type != GF_LAYER_EMBEDDING || layer->positional ||
	       (number >= 0 && number < (float)layer->entries))
		layer++;
	return gf_net_bad_number(net, (size_t)(layer - net->model->layers),
				 (uint32_t) ~(o->bad_number >> 32), number, err);
}

static int result(struct gf_net *net, double *loss_value, size_t *correct, struct gf_error *err)
{
	const struct gf_gpu_net *g = gpu_net(net);
	const struct gf_gpu_outcome *o = g->ended;
	int rc = net->has_loss ? g->gpu->ops->event_sync(g->gpu, g->event, err)
			       : gf_net_result(net, loss_value, correct, err);

	if (rc)
		return rc;
	if (o->bad_number)
		return bad_number(net, o, err);
	if (o->bad_label)
		return gf_net_bad_label(net, o->bad_label - 1, o->label, err);
	*loss_value = o->loss;
	*correct = o->correct;
	return 0;
}

static int zero_gradients(struct gf_gpu_io *io, struct gf_error *err)
{
	const struct gf_gpu_net *g = io->g;
	const struct gf_model *m = g->net->model;
	int rc = 0;

	for (size_t i = gf_net_first_own(g->net, io->index); i < gf_layer_uses(io->layer) && !rc;
	     i++) {
		const struct gf_param *p = &m->params[gf_layer_use(io->layer, i)];

		if (io->dparam[i])
			rc = g->gpu->ops->zero(g->gpu, g->stream, io->dparam[i],
					       gf_shape_elems(&p->shape) * sizeof(float), err);
	}
	return rc;
}

static int backward(struct gf_net *net, const float *params, float *grads,
		    void (*on_grad)(void *ctx, size_t tensor), void *ctx, struct gf_error *err)
{
	struct gf_gpu_net *g = gpu_net(net);
	const struct gf_model *m = net->model;
	int rc = gf_net_begin_backward(net, err);

	for (size_t l = m->nlayers; l-- > 0 && !rc;) {
		struct gf_gpu_io *io = &g->io[l];

		bind(io, params, grads);
		if (io->backward_done)
			continue;
		if (net->has_gradient[l])
			rc = gf_gpu_layers[m->layers[l].type]->backward(io, err);
		else
			rc = zero_gradients(io, err);
		if (rc)
			return failed(g, l, rc, err);
		gf_net_emit(net, l, on_grad, ctx);
	}
	return rc ?: g->gpu->ops->check(g->gpu, err);
}

static float *running(struct gf_net *net, size_t *count)
{
	*count = net->nrunning;
	return net->nrunning ? gpu_net(net)->running : NULL;
}

const struct gf_backend gf_backend_cuda = {
	.name = "cuda",
	.on_device = true,
	.net_new = net_new,
	.net_free = net_free,
	.forward = forward,
	.loss = loss,
	.result = result,
	.backward = backward,
	.running = running,
};
