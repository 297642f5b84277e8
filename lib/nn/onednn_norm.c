/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

/*
 * Batch normalisation. A ReLU after it is computed in the same pass (a
 * workspace keeps its signs). In training the primitive returns the batch's
 * statistics, which are folded into the running ones; otherwise it uses the
 * running ones.
 */
static unsigned flags(const struct gf_onednn *p, size_t l)
{
	return dnnl_use_scale | dnnl_use_shift |
	       (gf_onednn_fuses_relu(p, l) ? dnnl_fuse_norm_relu : 0u) |
	       (p->training ? 0u : dnnl_use_global_stats);
}

static dnnl_memory_desc_t per_channel(const struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	dnnl_dims_t dims = {(dnnl_dim_t)layer->in.dims[0]};

	return gf_onednn_plain(dims, 1);
}

static dnnl_memory_t param(struct gf_onednn *p, enum gf_onednn_base base,
			   size_t l, size_t which)
{
	size_t first = p->net->model->layers[l].first_param;
	dnnl_memory_desc_t md = per_channel(p, l);

	return gf_onednn_bound(p, &md, base, p->net->param_at[first + which]);
}

static void update_running(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	void *mean, *variance;

	dnnl_memory_get_data_handle(p->mean[l], &mean);
	dnnl_memory_get_data_handle(p->variance[l], &variance);
	gf_net_update_running(p->net, l, mean, variance,
			      p->batch * gf_shape_spatial(&layer->in));
}

static void make_statistics(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	float *running = p->net->running + p->net->running_at[l];
	dnnl_memory_desc_t md = per_channel(p, l);

	p->mean[l] = gf_onednn_memory(
		p, &md, p->training ? DNNL_MEMORY_ALLOCATE : (void *)running);
	p->variance[l] = gf_onednn_memory(
		p, &md,
		p->training ? DNNL_MEMORY_ALLOCATE
			    : (void *)(running + layer->in.dims[0]));
}

static void forward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	struct gf_onednn_value *in = gf_onednn_input(p, l, 0);
	dnnl_batch_normalization_desc_t desc = {0};
	dnnl_memory_desc_t workspace;
	struct gf_onednn_op *op;
	dnnl_memory_t weight, bias;

	gf_onednn_ok(p,
		     dnnl_batch_normalization_forward_desc_init(
			     &desc,
			     p->training ? dnnl_forward_training
					 : dnnl_forward_inference,
			     &in->md, (float)layer->epsilon, flags(p, l)),
		     "batch normalisation");
	p->hints[l] = gf_onednn_describe(p, &desc, false, NULL);
	workspace = gf_onednn_md(p, p->hints[l], dnnl_query_workspace_md, 0);
	if (workspace.ndims)
		p->workspace[l] =
			gf_onednn_memory(p, &workspace, DNNL_MEMORY_ALLOCATE);
	make_statistics(p, l);
	weight = param(p, GF_ONEDNN_PARAMS, l, 0);
	bias = param(p, GF_ONEDNN_PARAMS, l, 1);
	p->weight[l] = weight;
	gf_onednn_output(p, l, &in->md);
	op = gf_onednn_add_op(p, &p->forward, p->hints[l]);
	gf_onednn_arg(op, DNNL_ARG_SRC, in->data);
	gf_onednn_arg(op, DNNL_ARG_SCALE, weight);
	gf_onednn_arg(op, DNNL_ARG_SHIFT, bias);
	gf_onednn_arg(op, DNNL_ARG_MEAN, p->mean[l]);
	gf_onednn_arg(op, DNNL_ARG_VARIANCE, p->variance[l]);
	gf_onednn_arg(op, DNNL_ARG_DST, p->values[l]->data);
	if (p->workspace[l])
		gf_onednn_arg(op, DNNL_ARG_WORKSPACE, p->workspace[l]);
	if (p->training)
		gf_onednn_add_call(p, &p->forward, update_running, l);
}

static void backward(struct gf_onednn *p, size_t l)
{
	const struct gf_layer *layer = &p->net->model->layers[l];
	struct gf_onednn_value *in = gf_onednn_input(p, l, 0);
	dnnl_batch_normalization_desc_t desc = {0};
	dnnl_primitive_desc_t pd;
	dnnl_memory_t din, dweight, dbias, dout, bias;
	struct gf_onednn_op *op;

	gf_onednn_ok(p,
		     dnnl_batch_normalization_backward_desc_init(
			     &desc, dnnl_backward, &in->md, &in->md,
			     (float)layer->epsilon, flags(p, l)),
		     "batch normalisation");
	pd = gf_onednn_describe(p, &desc, false, p->hints[l]);
	dout = gf_onednn_as(p, &p->backward, p->values[l]->gradient, &in->md);
	din = gf_onednn_target(p, l, 0, &in->md);
	dweight = param(p, GF_ONEDNN_GRADS, l, 0);
	dbias = param(p, GF_ONEDNN_GRADS, l, 1);
	bias = param(p, GF_ONEDNN_PARAMS, l, 1);
	op = gf_onednn_add_op(p, &p->backward, pd);
	gf_onednn_arg(op, DNNL_ARG_SRC, in->data);
	gf_onednn_arg(op, DNNL_ARG_MEAN, p->mean[l]);
	gf_onednn_arg(op, DNNL_ARG_VARIANCE, p->variance[l]);
	gf_onednn_arg(op, DNNL_ARG_DIFF_DST, dout);
	gf_onednn_arg(op, DNNL_ARG_SCALE, p->weight[l]);
	/* Not read, but 2.6 counts it among the inputs. */
	gf_onednn_arg(op, DNNL_ARG_SHIFT, bias);
	gf_onednn_arg(op, DNNL_ARG_DIFF_SRC, din);
	gf_onednn_arg(op, DNNL_ARG_DIFF_SCALE, dweight);
	gf_onednn_arg(op, DNNL_ARG_DIFF_SHIFT, dbias);
	if (p->workspace[l])
		gf_onednn_arg(op, DNNL_ARG_WORKSPACE, p->workspace[l]);
	gf_onednn_report(p, l);
	gf_onednn_gave(p, l, 0, din);
}

const struct gf_onednn_layer gf_onednn_batchnorm = {
	.forward = forward,
	.backward = backward,
};
