/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

/*
 * Pooling. A global pool is an average over one window as large as the image. Its output {N, C, 1,
 * 1} is then seen as {N, C}.
 */
struct window {
	dnnl_alg_kind_t algorithm;
	dnnl_dims_t kernel, strides, pads;
	const_dnnl_memory_desc_t dst; /* plain */
};

static struct window window_of(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	bool global = layer->type == GF_LAYER_GLOBALPOOL;
	const size_t kernel[] = {layer->kernel, layer->kernel_w};
	const size_t pad[] = {layer->pad, layer->pad_w};
	dnnl_dims_t dst = {(dnnl_dim_t)p->batch, (dnnl_dim_t)layer->out.dims[0], 1, 1};
	struct window w = {
		.algorithm = layer->type == GF_LAYER_MAXPOOL ? dnnl_pooling_max
							     : dnnl_pooling_avg_include_padding,
	};

	for (int d = 0; d < 2; d++) {
		dnnl_dim_t in = (dnnl_dim_t)layer->in.dims[1 + d];

		w.kernel[d] = global ? in : (dnnl_dim_t)kernel[d];
		w.strides[d] = global ? 1 : (dnnl_dim_t)layer->stride;
		w.pads[d] = global ? 0 : (dnnl_dim_t)pad[d];
		if (!global)
			dst[2 + d] = (dnnl_dim_t)layer->out.dims[1 + d];
	}
	w.dst = gf_onednn_plain(p, dst, 4);
	return w;
}

/* Describes the forward pass and returns the layout of what it makes. */
static const_dnnl_memory_desc_t describe(struct gf_onednn *p, size_t l)
{
	struct gf_onednn_value *in = gf_onednn_input(p, l, 0);
	struct window w = window_of(p, l);
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_pooling_forward_primitive_desc_create(
		&pd, p->engine, gf_onednn_forward(p), w.algorithm, in->md, gf_onednn_any(p, w.dst),
		w.strides, w.kernel, gf_onednn_no_dilation, w.pads, w.pads, p->attr);

	p->hints[l] = gf_onednn_describe(p, status, pd, "pooling");
	gf_onednn_make_workspace(p, l);
	return gf_onednn_md(p, p->hints[l], dnnl_query_dst_md, 0);
}

static void run_forward(struct gf_onednn *p, size_t l, dnnl_memory_t out)
{
	struct gf_onednn_op *op = gf_onednn_add_op(p, &p->forward, p->hints[l]);

	gf_onednn_arg(op, DNNL_ARG_SRC, gf_onednn_input(p, l, 0)->data);
	gf_onednn_arg(op, DNNL_ARG_DST, out);
	if (p->workspace[l])
		gf_onednn_arg(op, DNNL_ARG_WORKSPACE, p->workspace[l]);
}

static void run_backward(struct gf_onednn *p, size_t l, dnnl_memory_t gradient)
{
	struct gf_onednn_value *in = gf_onednn_input(p, l, 0);
	struct window w = window_of(p, l);
	const_dnnl_memory_desc_t ddst = gf_onednn_md(p, p->hints[l], dnnl_query_dst_md, 0);
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_pooling_backward_primitive_desc_create(
		&pd, p->engine, w.algorithm, in->md, ddst, w.strides, w.kernel,
		gf_onednn_no_dilation, w.pads, w.pads, p->hints[l], p->attr);
	dnnl_memory_t dout, din;
	struct gf_onednn_op *op;

	pd = gf_onednn_describe(p, status, pd, "pooling");
	dout = gf_onednn_as(p, &p->backward, gradient, ddst);
	din = gf_onednn_target(p, l, 0, in->md);
	op = gf_onednn_add_op(p, &p->backward, pd);
	gf_onednn_arg(op, DNNL_ARG_DIFF_DST, dout);
	gf_onednn_arg(op, DNNL_ARG_DIFF_SRC, din);
	if (p->workspace[l])
		gf_onednn_arg(op, DNNL_ARG_WORKSPACE, p->workspace[l]);
	gf_onednn_gave(p, l, 0, din);
}

static void forward(struct gf_onednn *p, size_t l)
{
	gf_onednn_output(p, l, describe(p, l));
	run_forward(p, l, p->values[l]->data);
}

static void backward(struct gf_onednn *p, size_t l)
{
	if (gf_onednn_wants_gradient(p, l, 0))
		run_backward(p, l, p->values[l]->gradient);
}

/* The same bytes under another description. */
static dnnl_memory_t view(struct gf_onednn *p, dnnl_memory_t memory, const_dnnl_memory_desc_t md)
{
	void *handle = NULL;

	if (p->rc || !gf_onednn_ok(p, dnnl_memory_get_data_handle(memory, &handle), "view"))
		return NULL;
	return gf_onednn_memory(p, md, handle);
}

static void global_forward(struct gf_onednn *p, size_t l)
{
	const_dnnl_memory_desc_t dst = describe(p, l);
	const_dnnl_memory_desc_t plain = window_of(p, l).dst;
	const struct gf_onednn_layout image = gf_onednn_layout_of(plain);
	struct gf_onednn_value *v = gf_onednn_output(p, l, gf_onednn_plain(p, image.dims, 2));
	dnnl_memory_t out = view(p, v->data, plain), own = out;

	if (!gf_onednn_same(dst, plain))
		own = gf_onednn_memory(p, dst, DNNL_MEMORY_ALLOCATE);
	run_forward(p, l, own);
	if (own != out)
		gf_onednn_reorder(p, &p->forward, own, out);
}

static void global_backward(struct gf_onednn *p, size_t l)
{
	if (gf_onednn_wants_gradient(p, l, 0))
		run_backward(p, l, view(p, p->values[l]->gradient, window_of(p, l).dst));
}

const struct gf_onednn_layer gf_onednn_maxpool = {
	.forward = forward,
	.backward = backward,
};
const struct gf_onednn_layer gf_onednn_avgpool = {
	.forward = forward,
	.backward = backward,
};
const struct gf_onednn_layer gf_onednn_globalpool = {
	.forward = global_forward,
	.backward = global_backward,
};
