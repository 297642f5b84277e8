/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

/* ReLU, tanh, GELU and the residual sum. */

/* By its output alone, so that the input need not be kept; GELU's backward wants the input. */
static dnnl_alg_kind_t kind_of(const struct gf_layer *l)
{
	return l->type == GF_LAYER_GELU   ? dnnl_eltwise_gelu_erf
	       : l->type == GF_LAYER_TANH ? dnnl_eltwise_tanh_use_dst_for_bwd
					  : dnnl_eltwise_relu_use_dst_for_bwd;
}

static dnnl_primitive_desc_t eltwise(struct gf_onednn *p, dnnl_alg_kind_t kind,
				     const_dnnl_memory_desc_t md)
{
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_eltwise_forward_primitive_desc_create(
		&pd, p->engine, dnnl_forward_training, kind, md, md, 0, 0, p->attr);

	return gf_onednn_describe(p, status, pd, "function of a value");
}

/* The gradient of x from that of the output; `kept` is the output or x. */
static void eltwise_gradient(struct gf_onednn *p, dnnl_alg_kind_t kind, struct gf_onednn_value *v,
			     dnnl_memory_t kept, dnnl_memory_t din)
{
	dnnl_primitive_desc_t hint = eltwise(p, kind, v->md), pd = NULL;
	dnnl_status_t status = dnnl_eltwise_backward_primitive_desc_create(
		&pd, p->engine, kind, v->md, v->md, v->md, 0, 0, hint, p->attr);
	struct gf_onednn_op *op;

	pd = gf_onednn_describe(p, status, pd, "function of a value");
	op = gf_onednn_add_op(p, &p->backward, pd);
	gf_onednn_arg(op, kind == dnnl_eltwise_gelu_erf ? DNNL_ARG_SRC : DNNL_ARG_DST, kept);
	gf_onednn_arg(op, DNNL_ARG_DIFF_DST, v->gradient);
	gf_onednn_arg(op, DNNL_ARG_DIFF_SRC, din);
}

void gf_onednn_relu_gradient(struct gf_onednn *p, struct gf_onednn_value *v)
{
	eltwise_gradient(p, dnnl_eltwise_relu_use_dst_for_bwd, v, v->data, v->gradient);
}

static void eltwise_forward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	struct gf_onednn_value *in = gf_onednn_input(p, l, 0);
	dnnl_primitive_desc_t pd = eltwise(p, kind_of(layer), in->md);
	struct gf_onednn_value *v = gf_onednn_output(p, l, in->md);
	struct gf_onednn_op *op = gf_onednn_add_op(p, &p->forward, pd);

	gf_onednn_arg(op, DNNL_ARG_SRC, in->data);
	gf_onednn_arg(op, DNNL_ARG_DST, v->data);
}

static void eltwise_backward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	const bool by_input = layer->type == GF_LAYER_GELU;
	struct gf_onednn_value *v = p->values[l];
	dnnl_memory_t din;

	if (!gf_onednn_wants_gradient(p, l, 0))
		return;
	din = gf_onednn_target(p, l, 0, v->md);
	eltwise_gradient(p, kind_of(layer), v, by_input ? gf_onednn_input(p, l, 0)->data : v->data,
			 din);
	gf_onednn_gave(p, l, 0, din);
}

static void add_forward(struct gf_onednn *p, size_t l)
{
	struct gf_onednn_value *a = gf_onednn_input(p, l, 0);
	struct gf_onednn_value *b = gf_onednn_input(p, l, 1);
	dnnl_memory_t right = gf_onednn_as(p, &p->forward, b->data, a->md);
	struct gf_onednn_value *v = gf_onednn_output(p, l, a->md);
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_binary_primitive_desc_create(
		&pd, p->engine, dnnl_binary_add, a->md, a->md, a->md, gf_onednn_result(p, l));
	struct gf_onednn_op *op;

	pd = gf_onednn_describe(p, status, pd, "sum");
	op = gf_onednn_add_op(p, &p->forward, pd);
	gf_onednn_arg(op, DNNL_ARG_SRC_0, a->data);
	gf_onednn_arg(op, DNNL_ARG_SRC_1, right);
	gf_onednn_arg(op, DNNL_ARG_DST, v->data);
}

static void add_backward(struct gf_onednn *p, size_t l)
{
	struct gf_onednn_value *v = p->values[l];

	if (gf_onednn_fuses_relu(p, l))
		gf_onednn_relu_gradient(p, v);
	for (size_t i = 0; i < 2; i++)
		gf_onednn_gave(p, l, i, v->gradient);
}

const struct gf_onednn_layer gf_onednn_eltwise = {
	.forward = eltwise_forward,
	.backward = eltwise_backward,
};
const struct gf_onednn_layer gf_onednn_add = {
	.forward = add_forward,
	.backward = add_backward,
};
