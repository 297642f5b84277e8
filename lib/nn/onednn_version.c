/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/onednn_version.h"

#include "base/heap.h"

const dnnl_dims_t gf_onednn_no_dilation = {0};

#if DNNL_VERSION_MAJOR < 3
struct gf_onednn_layout gf_onednn_layout_of(const_dnnl_memory_desc_t md)
{
	if (!md)
		return (struct gf_onednn_layout){0};
	return (struct gf_onednn_layout){
		.ndims = md->ndims,
		.inner_blocks = md->format_desc.blocking.inner_nblks,
		.dims = md->dims,
		.strides = md->format_desc.blocking.strides,
	};
}

dnnl_status_t gf_onednn_md_new(const_dnnl_memory_desc_t *md, const dnnl_dims_t dims, int ndims,
			       dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	dnnl_memory_desc_t *made = gf_xcalloc(1, sizeof(*made));

	*md = made;
	return dnnl_memory_desc_init_by_tag(made, ndims, dims, type, tag);
}

void gf_onednn_md_free(const_dnnl_memory_desc_t md)
{
	free((void *)md);
}
#else
struct gf_onednn_layout gf_onednn_layout_of(const_dnnl_memory_desc_t md)
{
	struct gf_onednn_layout l = {0};
	const dnnl_dims_t *dims = NULL, *strides = NULL;

	if (!md)
		return l;
	dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &l.ndims);
	if (l.ndims == 0)
		return l;
	dnnl_memory_desc_query(md, dnnl_query_dims, &dims);
	dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &l.inner_blocks);
	dnnl_memory_desc_query(md, dnnl_query_strides, &strides);
	l.dims = *dims;
	l.strides = strides ? *strides : NULL;
	return l;
}

dnnl_status_t gf_onednn_md_new(const_dnnl_memory_desc_t *md, const dnnl_dims_t dims, int ndims,
			       dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	dnnl_memory_desc_t made = NULL;
	dnnl_status_t status = dnnl_memory_desc_create_with_tag(&made, ndims, dims, type, tag);

	*md = made;
	return status;
}

void gf_onednn_md_free(const_dnnl_memory_desc_t md)
{
	dnnl_memory_desc_destroy((dnnl_memory_desc_t)md);
}
#endif
