/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

#include "base/heap.h"

const_dnnl_memory_desc_t gf_onednn_samples(struct gf_onednn *p, const struct gf_shape *s)
{
	dnnl_dims_t dims = {(dnnl_dim_t)p->batch};

	if (s->rank == 2) {
		dims[0] = (dnnl_dim_t)(p->batch * s->dims[0]);
		dims[1] = (dnnl_dim_t)s->dims[1];
		return gf_onednn_plain(p, dims, 2);
	}
	for (size_t d = 0; d < s->rank; d++)
		dims[1 + d] = (dnnl_dim_t)s->dims[d];
	return gf_onednn_plain(p, dims, 1 + (int)s->rank);
}

struct gf_onednn_value *gf_onednn_input(struct gf_onednn *p, size_t l, size_t i)
{
	int from = p->net->model->layers[l].inputs[i];

	return from < 0 ? &p->input : p->values[from];
}

/* The one layer that reads l, if it is a ReLU; else the number of layers. */
static size_t find_relu(const struct gf_onednn *p, size_t l)
{
	const struct gf_model *m = p->net->model;
	size_t r = l + 1;

	if (p->net->consumers[l] != 1)
		return m->nlayers;
	while (r < m->nlayers && !(p->net->on_path[r] && m->layers[r].inputs[0] == (int)l &&
				   m->layers[r].type == GF_LAYER_RELU))
		r++;
	return r;
}

bool gf_onednn_fuses_relu(const struct gf_onednn *p, size_t l)
{
	return find_relu(p, l) < p->net->model->nlayers;
}

/* The logits are computed in place where they are plain anyway. */
static void *logits_or_own(struct gf_onednn *p, size_t l, const_dnnl_memory_desc_t md)
{
	const size_t nlayers = p->net->model->nlayers;
	bool last = l + 1 == nlayers || find_relu(p, l) + 1 == nlayers;

	return last && gf_onednn_same(gf_onednn_plain_of(p, md), md) ? (void *)p->net->logits
								     : DNNL_MEMORY_ALLOCATE;
}

struct gf_onednn_value *gf_onednn_output(struct gf_onednn *p, size_t l, const_dnnl_memory_desc_t md)
{
	struct gf_onednn_value *v = gf_xcalloc(1, sizeof(*v));

	p->values[l] = v;
	v->md = md;
	if (!p->rc)
		v->data = gf_onednn_memory(p, md, logits_or_own(p, l, md));
	if (gf_onednn_fuses_relu(p, l)) {
		p->values[find_relu(p, l)] = v;
		p->fused[find_relu(p, l)] = true;
	}
	return v;
}

bool gf_onednn_wants_gradient(const struct gf_onednn *p, size_t l, size_t i)
{
	int from = p->net->model->layers[l].inputs[i];

	return from >= 0 && p->net->has_gradient[from];
}

dnnl_memory_t gf_onednn_target(struct gf_onednn *p, size_t l, size_t i, const_dnnl_memory_desc_t md)
{
	struct gf_onednn_value *v = gf_onednn_input(p, l, i);

	if (p->rc)
		return NULL;
	if (gf_onednn_wants_gradient(p, l, i) && !v->gradient && gf_onednn_same(md, v->md))
		return v->gradient = gf_onednn_memory(p, md, DNNL_MEMORY_ALLOCATE);
	return gf_onednn_memory(p, md, DNNL_MEMORY_ALLOCATE);
}

void gf_onednn_add_to(struct gf_onednn *p, dnnl_memory_t to, const_dnnl_memory_desc_t md,
		      dnnl_memory_t more)
{
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status = dnnl_binary_primitive_desc_create(&pd, p->engine, dnnl_binary_add,
								 md, md, md, p->attr);
	struct gf_onednn_op *op;

	pd = gf_onednn_describe(p, status, pd, "sum");
	op = gf_onednn_add_op(p, &p->backward, pd);
	gf_onednn_arg(op, DNNL_ARG_SRC_0, to);
	gf_onednn_arg(op, DNNL_ARG_SRC_1, more);
	gf_onednn_arg(op, DNNL_ARG_DST, to);
}

void gf_onednn_gave(struct gf_onednn *p, size_t l, size_t i, dnnl_memory_t gradient)
{
	struct gf_onednn_value *v = gf_onednn_input(p, l, i);

	if (p->rc || gradient == v->gradient || !gf_onednn_wants_gradient(p, l, i))
		return;
	if (v->gradient) {
		gf_onednn_add_to(p, v->gradient, v->md,
				 gf_onednn_as(p, &p->backward, gradient, v->md));
	} else {
		/* Never the giver's own memory: what is added here later, or changed in place, must
		 * not reach its other readers. */
		v->gradient = gf_onednn_memory(p, v->md, DNNL_MEMORY_ALLOCATE);
		gf_onednn_reorder(p, &p->backward, gradient, v->gradient);
	}
}
