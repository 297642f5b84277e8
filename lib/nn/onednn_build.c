/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn.h"

#include <assert.h>

#include "base/array.h"

bool gf_onednn_ok(struct gf_onednn *p, dnnl_status_t status, const char *what)
{
	if (p->rc)
		return false;
	if (status == dnnl_success)
		return true;
	p->rc = status == dnnl_unimplemented       ? -ENOTSUP
		: status == dnnl_invalid_arguments ? -ENOTSUP
		: status == dnnl_out_of_memory     ? -ENOMEM
						   : -EIO;
	gf_error_set(p->err, p->rc, "layer %s: oneDNN has no %s for it: %s",
		     p->net->model->layers[p->layer].name, what, dnnl_status2str(status));
	return false;
}

static const_dnnl_memory_desc_t typed(struct gf_onednn *p, const dnnl_dims_t dims, int ndims,
				      dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	const_dnnl_memory_desc_t md = NULL;
	dnnl_status_t status;

	if (p->rc)
		return NULL;
	status = gf_onednn_md_new(&md, dims, ndims, type, tag);
	*gf_array_push(&p->mds, &p->nmds, &p->mds_capacity) = md;
	return gf_onednn_ok(p, status, "layout") ? md : NULL;
}

const_dnnl_memory_desc_t gf_onednn_tagged(struct gf_onednn *p, const dnnl_dims_t dims, int ndims,
					  dnnl_format_tag_t tag)
{
	return typed(p, dims, ndims, dnnl_f32, tag);
}

const_dnnl_memory_desc_t gf_onednn_plain(struct gf_onednn *p, const dnnl_dims_t dims, int ndims)
{
	static const dnnl_format_tag_t tags[] = {
		dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};

	if (p->rc)
		return NULL;
	assert(ndims > 0 && ndims < (int)GF_ARRAY_LENGTH(tags));
	return gf_onednn_tagged(p, dims, ndims, tags[ndims]);
}

const_dnnl_memory_desc_t gf_onednn_any(struct gf_onednn *p, const_dnnl_memory_desc_t md)
{
	const struct gf_onednn_layout l = gf_onednn_layout_of(md);

	return gf_onednn_tagged(p, l.dims, l.ndims, dnnl_format_tag_any);
}

const_dnnl_memory_desc_t gf_onednn_factor(struct gf_onednn *p, const_dnnl_memory_desc_t md)
{
	const struct gf_onednn_layout l = gf_onednn_layout_of(md);

	return typed(p, l.dims, l.ndims, p->net->precision == GF_BF16 ? dnnl_bf16 : dnnl_f32,
		     dnnl_format_tag_any);
}

const_dnnl_memory_desc_t gf_onednn_plain_of(struct gf_onednn *p, const_dnnl_memory_desc_t md)
{
	const struct gf_onednn_layout l = gf_onednn_layout_of(md);

	return gf_onednn_plain(p, l.dims, l.ndims);
}

bool gf_onednn_same(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b)
{
	return dnnl_memory_desc_equal(a, b);
}

void gf_onednn_count(struct gf_onednn *p, size_t bytes)
{
	struct gf_net_memory *m = &p->layer_memory[p->layer];
	size_t *kind = p->makes_weights    ? &m->weights_bytes
		       : p->makes_backward ? &m->gradients_bytes
					   : &m->activations_bytes;

	*kind += bytes;
}

dnnl_memory_t gf_onednn_memory(struct gf_onednn *p, const_dnnl_memory_desc_t md, void *handle)
{
	dnnl_memory_t memory = NULL;

	if (p->rc || !gf_onednn_ok(p, dnnl_memory_create(&memory, md, p->engine, handle), "memory"))
		return NULL;
	*gf_array_push(&p->memories, &p->nmemories, &p->memories_capacity) = memory;
	if (handle == DNNL_MEMORY_ALLOCATE)
		gf_onednn_count(p, dnnl_memory_desc_get_size(md));
	return memory;
}

dnnl_memory_t gf_onednn_bound(struct gf_onednn *p, const_dnnl_memory_desc_t md,
			      enum gf_onednn_base base, size_t at)
{
	dnnl_memory_t memory = gf_onednn_memory(p, md, DNNL_MEMORY_NONE);

	if (memory)
		*gf_array_push(&p->bindings, &p->nbindings, &p->bindings_capacity) =
			(struct gf_onednn_binding){memory, base, at};
	return memory;
}

static bool is_parameter(const struct gf_onednn *p, dnnl_memory_t memory)
{
	for (size_t i = 0; i < p->nbindings; i++)
		if (p->bindings[i].memory == memory)
			return p->bindings[i].base == GF_ONEDNN_PARAMS;
	return false;
}

dnnl_memory_t gf_onednn_as(struct gf_onednn *p, struct gf_onednn_ops *ops, dnnl_memory_t memory,
			   const_dnnl_memory_desc_t md)
{
	const_dnnl_memory_desc_t have;
	dnnl_memory_t to;

	if (p->rc || !gf_onednn_ok(p, dnnl_memory_get_memory_desc(memory, &have), "description"))
		return NULL;
	if (gf_onednn_same(have, md))
		return memory;
	/* In backward the copies that forward reordered still exist. */
	for (size_t i = 0; i < p->ncopies; i++)
		if (p->copies[i].from == memory && gf_onednn_same(p->copies[i].md, md))
			return p->copies[i].to;
	p->makes_weights = is_parameter(p, memory);
	to = gf_onednn_memory(p, md, DNNL_MEMORY_ALLOCATE);
	p->makes_weights = false;
	gf_onednn_reorder(p, ops, memory, to);
	if (!p->rc)
		*gf_array_push(&p->copies, &p->ncopies, &p->copies_capacity) =
			(struct gf_onednn_copy){memory, to, md};
	return to;
}

dnnl_prop_kind_t gf_onednn_forward(const struct gf_onednn *p)
{
	return p->training ? dnnl_forward_training : dnnl_forward_inference;
}

dnnl_primitive_attr_t gf_onednn_result(const struct gf_onednn *p, size_t l)
{
	return gf_onednn_fuses_relu(p, l) ? p->relu_attr : p->attr;
}

dnnl_primitive_desc_t gf_onednn_describe(struct gf_onednn *p, dnnl_status_t status,
					 dnnl_primitive_desc_t pd, const char *what)
{
	if (pd)
		*gf_array_push(&p->descs, &p->ndescs, &p->descs_capacity) = pd;
	return gf_onednn_ok(p, status, what) ? pd : NULL;
}

const_dnnl_memory_desc_t gf_onednn_md(struct gf_onednn *p, const_dnnl_primitive_desc_t pd,
				      dnnl_query_t what, int index)
{
	return p->rc ? NULL : dnnl_primitive_desc_query_md(pd, what, index);
}

void gf_onednn_make_workspace(struct gf_onednn *p, size_t l)
{
	const_dnnl_memory_desc_t md = gf_onednn_md(p, p->hints[l], dnnl_query_workspace_md, 0);

	if (gf_onednn_layout_of(md).ndims > 0)
		p->workspace[l] = gf_onednn_memory(p, md, DNNL_MEMORY_ALLOCATE);
}

static void add_scratchpad(struct gf_onednn *p, struct gf_onednn_op *op,
			   const_dnnl_primitive_desc_t pd)
{
	const_dnnl_memory_desc_t md = gf_onednn_md(p, pd, dnnl_query_scratchpad_md, 0);
	size_t bytes = md ? dnnl_memory_desc_get_size(md) : 0;
	dnnl_memory_t memory;

	if (p->rc || bytes == 0)
		return;
	memory = gf_onednn_memory(p, md, DNNL_MEMORY_NONE);
	if (!memory)
		return;
	*gf_array_push(&p->scratchpads, &p->nscratchpads, &p->scratchpads_capacity) = memory;
	if (bytes > p->scratchpad_bytes)
		p->scratchpad_bytes = bytes;
	gf_onednn_arg(op, DNNL_ARG_SCRATCHPAD, memory);
}

struct gf_onednn_op *gf_onednn_add_op(struct gf_onednn *p, struct gf_onednn_ops *ops,
				      const_dnnl_primitive_desc_t pd)
{
	struct gf_onednn_op *op = gf_array_push(&ops->items, &ops->count, &ops->capacity);

	if (!p->rc && gf_onednn_ok(p, dnnl_primitive_create(&op->primitive, pd), "primitive"))
		add_scratchpad(p, op, pd);
	return op;
}

void gf_onednn_arg(struct gf_onednn_op *op, int index, dnnl_memory_t memory)
{
	assert(op->nargs < GF_ONEDNN_MAX_ARGS);
	op->args[op->nargs++] = (dnnl_exec_arg_t){index, memory};
}

void gf_onednn_add_call(struct gf_onednn *p, struct gf_onednn_ops *ops,
			void (*call)(struct gf_onednn *p, size_t layer), size_t layer)
{
	struct gf_onednn_op *op = gf_array_push(&ops->items, &ops->count, &ops->capacity);

	(void)p;
	op->call = call;
	op->layer = layer;
}

void gf_onednn_reorder(struct gf_onednn *p, struct gf_onednn_ops *ops, dnnl_memory_t from,
		       dnnl_memory_t to)
{
	const_dnnl_memory_desc_t a = NULL, b = NULL;
	dnnl_primitive_desc_t pd = NULL;
	dnnl_status_t status;
	struct gf_onednn_op *op;

	if (p->rc)
		return;
	dnnl_memory_get_memory_desc(from, &a);
	dnnl_memory_get_memory_desc(to, &b);
	status = dnnl_reorder_primitive_desc_create(&pd, a, p->engine, b, p->engine, p->attr);
	pd = gf_onednn_describe(p, status, pd, "reorder");
	op = gf_onednn_add_op(p, ops, pd);
	gf_onednn_arg(op, DNNL_ARG_FROM, from);
	gf_onednn_arg(op, DNNL_ARG_TO, to);
}
