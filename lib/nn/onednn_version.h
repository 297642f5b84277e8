/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_ONEDNN_VERSION_H
#define GF_NN_ONEDNN_VERSION_H

#include <dnnl.h>
#include <dnnl_debug.h>
#include <dnnl_version.h>

/*
 * The backend is written for oneDNN 3. This header makes oneDNN 3's calls out of those of oneDNN 2
 * (2.6 and later) where that is installed; only this header and onednn_version.c know which version
 * it is (private to the onednn files of lib/nn).
 */
#if DNNL_VERSION_MAJOR < 3
typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;

/* oneDNN 2 fills the record of an operation first, and describes the primitive from it. `record`
 * and `call` are the names of the two. */
#define GF_ONEDNN_2(record, call, pd, engine, hint, attr, ...)                                     \
	({                                                                                         \
		dnnl_##record##_desc_t desc_ = {0};                                                \
		dnnl_status_t status_ = dnnl_##call##_desc_init(&desc_, __VA_ARGS__);              \
		status_ != dnnl_success                                                            \
			? status_                                                                  \
			: dnnl_primitive_desc_create(pd, &desc_, attr, engine, hint);              \
	})

/* The arguments of oneDNN 3, of which some are dropped: the dilation, which must be
 * gf_onednn_no_dilation, and layouts that oneDNN 2 takes to be equal.
 */
/* clang-format off */
#define dnnl_binary_primitive_desc_create(pd, engine, kind, a, b, dst, attr) \
	GF_ONEDNN_2(binary, binary, pd, engine, NULL, attr, kind, a, b, dst)
#define dnnl_eltwise_forward_primitive_desc_create( \
	pd, engine, prop, kind, src, dst, alpha, beta, attr) \
	GF_ONEDNN_2(eltwise, eltwise_forward, pd, engine, NULL, attr, \
		    prop, kind, src, alpha, beta)
#define dnnl_eltwise_backward_primitive_desc_create( \
	pd, engine, kind, dsrc, ddst, data, alpha, beta, hint, attr) \
	GF_ONEDNN_2(eltwise, eltwise_backward, pd, engine, hint, attr, \
		    kind, ddst, data, alpha, beta)
#define dnnl_pooling_forward_primitive_desc_create( \
	pd, engine, prop, kind, src, dst, strides, kernel, dilation, l, r, attr) \
	GF_ONEDNN_2(pooling, pooling_forward, pd, engine, NULL, attr, \
		    prop, kind, src, dst, strides, kernel, l, r)
#define dnnl_pooling_backward_primitive_desc_create( \
	pd, engine, kind, dsrc, ddst, strides, kernel, dilation, l, r, hint, attr) \
	GF_ONEDNN_2(pooling, pooling_backward, pd, engine, hint, attr, \
		    kind, dsrc, ddst, strides, kernel, l, r)
#define dnnl_batch_normalization_forward_primitive_desc_create( \
	pd, engine, prop, src, dst, epsilon, flags, attr) \
	GF_ONEDNN_2(batch_normalization, batch_normalization_forward, \
		    pd, engine, NULL, attr, prop, src, epsilon, flags)
#define dnnl_batch_normalization_backward_primitive_desc_create( \
	pd, engine, prop, dsrc, ddst, src, epsilon, flags, hint, attr) \
	GF_ONEDNN_2(batch_normalization, batch_normalization_backward, \
		    pd, engine, hint, attr, prop, ddst, src, epsilon, flags)
#define dnnl_layer_normalization_forward_primitive_desc_create( \
	pd, engine, prop, src, dst, statistics, epsilon, flags, attr) \
	GF_ONEDNN_2(layer_normalization, layer_normalization_forward, \
		    pd, engine, NULL, attr, prop, src, statistics, epsilon, flags)
#define dnnl_layer_normalization_backward_primitive_desc_create( \
	pd, engine, prop, dsrc, ddst, src, statistics, epsilon, flags, hint, attr) \
	GF_ONEDNN_2(layer_normalization, layer_normalization_backward, \
		    pd, engine, hint, attr, prop, ddst, src, statistics, epsilon, flags)
#define dnnl_convolution_forward_primitive_desc_create( \
	pd, engine, prop, kind, src, weights, bias, dst, strides, dilation, l, r, attr) \
	GF_ONEDNN_2(convolution, convolution_forward, pd, engine, NULL, attr, \
		    prop, kind, src, weights, bias, dst, strides, l, r)
#define dnnl_convolution_backward_data_primitive_desc_create( \
	pd, engine, kind, dsrc, weights, ddst, strides, dilation, l, r, hint, attr) \
	GF_ONEDNN_2(convolution, convolution_backward_data, pd, engine, hint, attr, \
		    kind, dsrc, weights, ddst, strides, l, r)
#define dnnl_convolution_backward_weights_primitive_desc_create( \
	pd, engine, kind, src, weights, bias, ddst, strides, dilation, l, r, hint, attr) \
	GF_ONEDNN_2(convolution, convolution_backward_weights, pd, engine, hint, attr, \
		    kind, src, weights, bias, ddst, strides, l, r)
#define dnnl_inner_product_forward_primitive_desc_create( \
	pd, engine, prop, src, weights, bias, dst, attr) \
	GF_ONEDNN_2(inner_product, inner_product_forward, pd, engine, NULL, attr, \
		    prop, src, weights, bias, dst)
#define dnnl_inner_product_backward_data_primitive_desc_create( \
	pd, engine, dsrc, weights, ddst, hint, attr) \
	GF_ONEDNN_2(inner_product, inner_product_backward_data, pd, engine, hint, attr, \
		    dsrc, weights, ddst)
#define dnnl_inner_product_backward_weights_primitive_desc_create( \
	pd, engine, src, weights, bias, ddst, hint, attr) \
	GF_ONEDNN_2(inner_product, inner_product_backward_weights, \
		    pd, engine, hint, attr, src, weights, bias, ddst)
/* oneDNN 2 takes a scale, too. */
#define dnnl_post_ops_append_eltwise(ops, kind, alpha, beta) \
	(dnnl_post_ops_append_eltwise)(ops, 1, kind, alpha, beta)
/* clang-format on */
#endif

extern const dnnl_dims_t gf_onednn_no_dilation;

/* What a memory description says; all 0 if it is NULL or describes nothing. The pointers live as
 * long as the description. */
struct gf_onednn_layout {
	int ndims, inner_blocks;
	const dnnl_dim_t *dims, *strides;
};
struct gf_onednn_layout gf_onednn_layout_of(const_dnnl_memory_desc_t md);

/* The caller owns the description that this makes. */
dnnl_status_t gf_onednn_md_new(const_dnnl_memory_desc_t *md, const dnnl_dims_t dims, int ndims,
			       dnnl_data_type_t type, dnnl_format_tag_t tag);
void gf_onednn_md_free(const_dnnl_memory_desc_t md);

#endif
