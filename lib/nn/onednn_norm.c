/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

/*
 * Batch and layer normalisation: the same arrays, over other dimensions. A ReLU after batch
 * normalisation is computed in the same pass (a workspace keeps its signs). In training the
 * primitive returns the batch's statistics, which are folded into the running ones; otherwise it
 * uses the running ones. Those of a layer normalisation are each row's own.
 */
static bool of_batch(const struct gf_layer *l)
{
	return l->type == GF_LAYER_BATCHNORM;
}

static unsigned flags(const struct gf_onednn *p, size_t l)
{
	const unsigned both = dnnl_use_scale | dnnl_use_shift;

	if (!of_batch(&p->net->model->layers[l]))
		return both;
	return both | (gf_onednn_fuses_relu(p, l) ? dnnl_fuse_norm_relu : 0u) |
	       (p->training ? 0u : dnnl_use_global_stats);
}

static const_dnnl_memory_desc_t vector(struct gf_onednn *p, size_t count)
{
	dnnl_dims_t dims = {(dnnl_dim_t)count};

	return gf_onednn_plain(p, dims, 1);
}

static dnnl_memory_t param(struct gf_onednn *p, enum gf_onednn_base base, size_t l, size_t which)
{
	const size_t i = p->net->model->layers[l].first_param + which;
	const size_t count = p->net->model->params[i].shape.dims[0];

	return gf_onednn_bound(p, vector(p, count), base, p->net->param_at[i]);
}

static void update_running(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	void *mean, *variance;

	dnnl_memory_get_data_handle(p->mean[l], &mean);
	dnnl_memory_get_data_handle(p->variance[l], &variance);
	gf_net_update_running(p->net, l, mean, variance, p->batch * gf_shape_spatial(&layer->in));
}

static void make_statistics(struct gf_onednn *p, size_t l, size_t count)
{
	float *running = p->net->running + p->net->running_at[l];
	const_dnnl_memory_desc_t md = vector(p, count);

	p->mean[l] = gf_onednn_memory(p, md, p->training ? DNNL_MEMORY_ALLOCATE : (void *)running);
	p->variance[l] = gf_onednn_memory(
		p, md, p->training ? DNNL_MEMORY_ALLOCATE : (void *)(running + count));
}

/* From the described primitive, p->hints[l], over values in the layout md, with so many means. */
static void forward(struct gf_onednn *p, size_t l, const_dnnl_memory_desc_t md, size_t count)
{
	struct gf_onednn_value *in = gf_onednn_input(p, l, 0);
	/* A row's own statistics stay within it but in training. */
	const bool statistics = p->training || of_batch(&p->net->model->layers[l]);
	dnnl_memory_t src = gf_onednn_as(p, &p->forward, in->data, md), bias;
	struct gf_onednn_op *op;

	gf_onednn_make_workspace(p, l);
	if (statistics)
		make_statistics(p, l, count);
	p->weight[l] = param(p, GF_ONEDNN_PARAMS, l, 0);
	bias = param(p, GF_ONEDNN_PARAMS, l, 1);
	gf_onednn_output(p, l, md);
	op = gf_onednn_add_op(p, &p->forward, p->hints[l]);
	gf_onednn_arg(op, DNNL_ARG_SRC, src);
	gf_onednn_arg(op, DNNL_ARG_SCALE, p->weight[l]);
	gf_onednn_arg(op, DNNL_ARG_SHIFT, bias);
	if (statistics) {
		gf_onednn_arg(op, DNNL_ARG_MEAN, p->mean[l]);
		gf_onednn_arg(op, DNNL_ARG_VARIANCE, p->variance[l]);
	}
	gf_onednn_arg(op, DNNL_ARG_DST, p->values[l]->data);
	if (p->workspace[l])
		gf_onednn_arg(op, DNNL_ARG_WORKSPACE, p->workspace[l]);
}

/* Backward reads no shift, and yet some versions refuse to run without one: 2.6 in both
 * normalisations, 3.7 in that of layers. Others refuse to run with one. The number of inputs tells
 * them apart. */
static bool wants_shift(const_dnnl_primitive_desc_t pd, bool workspace)
{
	int inputs = 0;

	dnnl_primitive_desc_query(pd, dnnl_query_num_of_inputs_s32, 0, &inputs);
	/* source, mean, variance, gradient and scale */
	return inputs > 5 + workspace;
}

static void backward(struct gf_onednn *p, size_t l, dnnl_primitive_desc_t pd)
{
	const struct gf_onednn_value *v = p->values[l];
	dnnl_memory_t src, din, dweight, dbias, dout, bias;
	struct gf_onednn_op *op;

	src = gf_onednn_as(p, &p->backward, gf_onednn_input(p, l, 0)->data, v->md);
	dout = gf_onednn_as(p, &p->backward, v->gradient, v->md);
	din = gf_onednn_target(p, l, 0, v->md);
	dweight = param(p, GF_ONEDNN_GRADS, l, 0);
	dbias = param(p, GF_ONEDNN_GRADS, l, 1);
	bias = param(p, GF_ONEDNN_PARAMS, l, 1);
	op = gf_onednn_add_op(p, &p->backward, pd);
	gf_onednn_arg(op, DNNL_ARG_SRC, src);
	gf_onednn_arg(op, DNNL_ARG_MEAN, p->mean[l]);
	gf_onednn_arg(op, DNNL_ARG_VARIANCE, p->variance[l]);
	gf_onednn_arg(op, DNNL_ARG_DIFF_DST, dout);
	gf_onednn_arg(op, DNNL_ARG_SCALE, p->weight[l]);
	if (wants_shift(pd, p->workspace[l]))
		gf_onednn_arg(op, DNNL_ARG_SHIFT, bias);
	gf_onednn_arg(op, DNNL_ARG_DIFF_SRC, din);
	gf_onednn_arg(op, DNNL_ARG_DIFF_SCALE, dweight);
	gf_onednn_arg(op, DNNL_ARG_DIFF_SHIFT, dbias);
	if (p->workspace[l])
		gf_onednn_arg(op, DNNL_ARG_WORKSPACE, p->workspace[l]);
	gf_onednn_report(p, l);
	gf_onednn_gave(p, l, 0, din);
}

/* --- over the batch ------------------------------------------------------- */

/* oneDNN is many times slower in the plain layout of images, which a concatenation has; the
 * convolution that follows wants blocks, too. */
static const_dnnl_memory_desc_t batch_layout(struct gf_onednn *p, size_t l)
{
	const_dnnl_memory_desc_t md = gf_onednn_input(p, l, 0)->md;
	const struct gf_onednn_layout have = gf_onednn_layout_of(md);

	if (have.ndims != 4 || have.inner_blocks > 0 || have.strides[1] == 1 ||
	    have.dims[1] % 16 != 0)
		return md;
	return gf_onednn_tagged(p, have.dims, 4, dnnl_aBcd16b);
}

static void batch_forward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	const_dnnl_memory_desc_t md = batch_layout(p, l);
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_batch_normalization_forward_primitive_desc_create(
		&pd, p->engine, gf_onednn_forward(p), md, md, (float)layer->epsilon, flags(p, l),
		p->attr);

	p->hints[l] = gf_onednn_describe(p, status, pd, "batch normalisation");
	forward(p, l, md, layer->in.dims[0]);
	if (p->training)
		gf_onednn_add_call(p, &p->forward, update_running, l);
}

static void batch_backward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	const_dnnl_memory_desc_t md = p->values[l]->md;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_batch_normalization_backward_primitive_desc_create(
		&pd, p->engine, dnnl_backward, md, md, md, (float)layer->epsilon, flags(p, l),
		p->hints[l], p->attr);

	backward(p, l, gf_onednn_describe(p, status, pd, "batch normalisation"));
}

/* --- over the features of a row ------------------------------------------- */

static size_t rows(const struct gf_onednn *p, size_t l)
{
	return p->batch * gf_shape_rows(&p->net->model->layers[l].in);
}

static void layer_forward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	const_dnnl_memory_desc_t md = gf_onednn_samples(p, &layer->in);
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_layer_normalization_forward_primitive_desc_create(
		&pd, p->engine, gf_onednn_forward(p), md, md, vector(p, rows(p, l)),
		(float)layer->epsilon, flags(p, l), p->attr);

	p->hints[l] = gf_onednn_describe(p, status, pd, "layer normalisation");
	forward(p, l, md, rows(p, l));
}

static void layer_backward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	const_dnnl_memory_desc_t md = p->values[l]->md;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_layer_normalization_backward_primitive_desc_create(
		&pd, p->engine, dnnl_backward, md, md, md, vector(p, rows(p, l)),
		(float)layer->epsilon, flags(p, l), p->hints[l], p->attr);

	backward(p, l, gf_onednn_describe(p, status, pd, "layer normalisation"));
}

const struct gf_onednn_layer gf_onednn_batchnorm = {
	.forward = batch_forward,
	.backward = batch_backward,
};
const struct gf_onednn_layer gf_onednn_layernorm = {
	.forward = layer_forward,
	.backward = layer_backward,
};
