/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

/*
 * Convolution and fully connected: the layers with a weight and perhaps a bias. Both are asked for
 * the layouts they like best; weights are reordered from the caller's plain array in each pass,
 * weight gradients back into it.
 * A fully connected layer of few rows uses them as they lie, in f32: reading a weight once for the
 * product costs as much as reordering it. So does one of a net that keeps no copies.
 */
#define FEW_ROWS 16 /* twice as many gain nothing: alexnet-bn's fc6 */

struct shapes {
	/* Plain; bias: NULL without one. */
	const_dnnl_memory_desc_t src, weight, bias, dst;
	bool stays; /* the weight is used as it lies */
	dnnl_dims_t strides, pads;
};

static struct shapes conv_shapes(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	dnnl_dim_t n = (dnnl_dim_t)p->batch;
	dnnl_dim_t h = (dnnl_dim_t)layer->kernel;
	dnnl_dim_t w = (dnnl_dim_t)layer->kernel_w;
	dnnl_dim_t c = (dnnl_dim_t)layer->in.dims[0];
	dnnl_dim_t o = (dnnl_dim_t)layer->filters;
	dnnl_dim_t g = (dnnl_dim_t)layer->groups;
	dnnl_dims_t src = {n, c, (dnnl_dim_t)layer->in.dims[1], (dnnl_dim_t)layer->in.dims[2]};
	dnnl_dims_t dst = {n, o, (dnnl_dim_t)layer->out.dims[1], (dnnl_dim_t)layer->out.dims[2]};
	dnnl_dims_t grouped = {g, o / g, c / g, h, w};
	dnnl_dims_t weight = {o, c, h, w}, bias = {o};
	struct shapes s = {
		.src = gf_onednn_plain(p, src, 4),
		.weight = g > 1 ? gf_onednn_plain(p, grouped, 5) : gf_onednn_plain(p, weight, 4),
		.bias = layer->bias ? gf_onednn_plain(p, bias, 1) : NULL,
		.dst = gf_onednn_plain(p, dst, 4),
		.strides = {(dnnl_dim_t)layer->stride, (dnnl_dim_t)layer->stride},
		.pads = {(dnnl_dim_t)layer->pad, (dnnl_dim_t)layer->pad_w},
	};

	return s;
}

/* The input keeps its dimensions. In plain memory, weights {O, C, H, W} lie as {O, I} does. */
static struct shapes fc_shapes(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	const struct gf_onednn_layout in = gf_onednn_layout_of(gf_onednn_input(p, l, 0)->md);
	dnnl_dim_t o = (dnnl_dim_t)layer->filters;
	dnnl_dims_t weight = {o}, bias = {o};
	dnnl_dims_t dst = {in.dims[0], o};

	for (int d = 1; d < in.ndims; d++)
		weight[d] = in.dims[d];
	return (struct shapes){
		.src = gf_onednn_plain(p, in.dims, in.ndims),
		.weight = gf_onednn_plain(p, weight, in.ndims),
		.bias = layer->bias ? gf_onednn_plain(p, bias, 1) : NULL,
		.dst = gf_onednn_plain(p, dst, 2),
		.stays = (in.dims[0] <= FEW_ROWS || p->net->in_place) &&
			 p->net->precision == GF_F32,
	};
}

static dnnl_memory_t param(struct gf_onednn *p, enum gf_onednn_base base, size_t l, size_t which,
			   const_dnnl_memory_desc_t md)
{
	const struct gf_layer *layer = &p->net->model->layers[l];

	return gf_onednn_bound(p, md, base, p->net->param_at[gf_layer_use(layer, which)]);
}

static void forward(struct gf_onednn *p, size_t l, const struct shapes *s, dnnl_primitive_desc_t pd)
{
	const_dnnl_memory_desc_t src = gf_onednn_md(p, pd, dnnl_query_src_md, 0);
	const_dnnl_memory_desc_t weight = gf_onednn_md(p, pd, dnnl_query_weights_md, 0);
	const_dnnl_memory_desc_t dst = gf_onednn_md(p, pd, dnnl_query_dst_md, 0);
	dnnl_memory_t in, w, b = NULL;
	struct gf_onednn_op *op;

	p->hints[l] = pd;
	in = gf_onednn_as(p, &p->forward, gf_onednn_input(p, l, 0)->data, src);
	w = param(p, GF_ONEDNN_PARAMS, l, 0, s->weight);
	p->weight[l] = w;
	w = gf_onednn_as(p, &p->forward, w, weight);
	if (s->bias)
		b = param(p, GF_ONEDNN_PARAMS, l, 1, s->bias);
	gf_onednn_output(p, l, dst);
	op = gf_onednn_add_op(p, &p->forward, pd);
	gf_onednn_arg(op, DNNL_ARG_SRC, in);
	gf_onednn_arg(op, DNNL_ARG_WEIGHTS, w);
	if (s->bias)
		gf_onednn_arg(op, DNNL_ARG_BIAS, b);
	gf_onednn_arg(op, DNNL_ARG_DST, p->values[l]->data);
}

static void backward_weight(struct gf_onednn *p, size_t l, const struct shapes *s,
			    dnnl_primitive_desc_t pd)
{
	const_dnnl_memory_desc_t src = gf_onednn_md(p, pd, dnnl_query_src_md, 0);
	const_dnnl_memory_desc_t dweight = gf_onednn_md(p, pd, dnnl_query_diff_weights_md, 0);
	const_dnnl_memory_desc_t ddst = gf_onednn_md(p, pd, dnnl_query_diff_dst_md, 0);
	dnnl_memory_t in, dout, to, dw, db = NULL;
	struct gf_onednn_op *op;

	in = gf_onednn_as(p, &p->backward, gf_onednn_input(p, l, 0)->data, src);
	dout = gf_onednn_as(p, &p->backward, p->values[l]->gradient, ddst);
	to = param(p, GF_ONEDNN_GRADS, l, 0, s->weight);
	dw = gf_onednn_same(dweight, s->weight) && !p->net->adds[l]
		     ? to
		     : gf_onednn_memory(p, dweight, DNNL_MEMORY_ALLOCATE);
	if (s->bias)
		db = param(p, GF_ONEDNN_GRADS, l, 1, s->bias);
	op = gf_onednn_add_op(p, &p->backward, pd);
	gf_onednn_arg(op, DNNL_ARG_SRC, in);
	gf_onednn_arg(op, DNNL_ARG_DIFF_DST, dout);
	gf_onednn_arg(op, DNNL_ARG_DIFF_WEIGHTS, dw);
	if (s->bias)
		gf_onednn_arg(op, DNNL_ARG_DIFF_BIAS, db);
	if (p->net->adds[l])
		gf_onednn_add_to(p, to, s->weight, gf_onednn_as(p, &p->backward, dw, s->weight));
	else if (dw != to)
		gf_onednn_reorder(p, &p->backward, dw, to);
}

static void backward_data(struct gf_onednn *p, size_t l, dnnl_primitive_desc_t pd)
{
	const_dnnl_memory_desc_t dsrc = gf_onednn_md(p, pd, dnnl_query_diff_src_md, 0);
	const_dnnl_memory_desc_t weight = gf_onednn_md(p, pd, dnnl_query_weights_md, 0);
	const_dnnl_memory_desc_t ddst = gf_onednn_md(p, pd, dnnl_query_diff_dst_md, 0);
	dnnl_memory_t w, dout, din;
	struct gf_onednn_op *op;

	w = gf_onednn_as(p, &p->backward, p->weight[l], weight);
	dout = gf_onednn_as(p, &p->backward, p->values[l]->gradient, ddst);
	din = gf_onednn_target(p, l, 0, dsrc);
	op = gf_onednn_add_op(p, &p->backward, pd);
	gf_onednn_arg(op, DNNL_ARG_DIFF_DST, dout);
	gf_onednn_arg(op, DNNL_ARG_WEIGHTS, w);
	gf_onednn_arg(op, DNNL_ARG_DIFF_SRC, din);
	gf_onednn_gave(p, l, 0, din);
}

static void conv_forward(struct gf_onednn *p, size_t l)
{
	struct shapes s = conv_shapes(p, l);
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
		&pd, p->engine, gf_onednn_forward(p), dnnl_convolution_direct,
		gf_onednn_factor(p, s.src), gf_onednn_factor(p, s.weight), s.bias,
		gf_onednn_any(p, s.dst), s.strides, gf_onednn_no_dilation, s.pads, s.pads,
		gf_onednn_result(p, l));

	forward(p, l, &s, gf_onednn_describe(p, status, pd, "convolution"));
}

static void conv_backward_data(struct gf_onednn *p, size_t l, const struct shapes *s)
{
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_convolution_backward_data_primitive_desc_create(
		&pd, p->engine, dnnl_convolution_direct, gf_onednn_any(p, s->src),
		gf_onednn_factor(p, s->weight), gf_onednn_factor(p, s->dst), s->strides,
		gf_onednn_no_dilation, s->pads, s->pads, p->hints[l], p->attr);

	backward_data(p, l, gf_onednn_describe(p, status, pd, "convolution"));
}

static void conv_backward(struct gf_onednn *p, size_t l)
{
	struct shapes s = conv_shapes(p, l);
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_convolution_backward_weights_primitive_desc_create(
		&pd, p->engine, dnnl_convolution_direct, gf_onednn_factor(p, s.src),
		gf_onednn_any(p, s.weight), s.bias, gf_onednn_factor(p, s.dst), s.strides,
		gf_onednn_no_dilation, s.pads, s.pads, p->hints[l], p->attr);

	pd = gf_onednn_describe(p, status, pd, "convolution");
	if (gf_onednn_fuses_relu(p, l))
		gf_onednn_relu_gradient(p, p->values[l]);
	backward_weight(p, l, &s, pd);
	gf_onednn_report(p, l);
	if (gf_onednn_wants_gradient(p, l, 0))
		conv_backward_data(p, l, &s);
}

/* As a factor. */
static const_dnnl_memory_desc_t fc_weight(struct gf_onednn *p, const struct shapes *s)
{
	return s->stays ? s->weight : gf_onednn_factor(p, s->weight);
}

static void fc_forward(struct gf_onednn *p, size_t l)
{
	struct shapes s = fc_shapes(p, l);
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_inner_product_forward_primitive_desc_create(
		&pd, p->engine, gf_onednn_forward(p), gf_onednn_factor(p, s.src), fc_weight(p, &s),
		s.bias, gf_onednn_any(p, s.dst), gf_onednn_result(p, l));

	forward(p, l, &s, gf_onednn_describe(p, status, pd, "inner product"));
}

static void fc_backward_data(struct gf_onednn *p, size_t l, const struct shapes *s)
{
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_inner_product_backward_data_primitive_desc_create(
		&pd, p->engine, gf_onednn_any(p, s->src), fc_weight(p, s),
		gf_onednn_factor(p, s->dst), p->hints[l], p->attr);

	backward_data(p, l, gf_onednn_describe(p, status, pd, "inner product"));
}

static void fc_backward(struct gf_onednn *p, size_t l)
{
	struct shapes s = fc_shapes(p, l);
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_inner_product_backward_weights_primitive_desc_create(
		&pd, p->engine, gf_onednn_factor(p, s.src),
		s.stays ? s.weight : gf_onednn_any(p, s.weight), s.bias, gf_onednn_factor(p, s.dst),
		p->hints[l], p->attr);

	pd = gf_onednn_describe(p, status, pd, "inner product");
	if (gf_onednn_fuses_relu(p, l))
		gf_onednn_relu_gradient(p, p->values[l]);
	backward_weight(p, l, &s, pd);
	gf_onednn_report(p, l);
	if (gf_onednn_wants_gradient(p, l, 0))
		fc_backward_data(p, l, &s);
}

const struct gf_onednn_layer gf_onednn_conv = {
	.forward = conv_forward,
	.backward = conv_backward,
};
const struct gf_onednn_layer gf_onednn_fc = {
	.forward = fc_forward,
	.backward = fc_backward,
};
