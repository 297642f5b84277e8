/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_NN_GPU_MATH_H
#define GF_NN_GPU_MATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/error.h"

/*
 * Products of matrices (cuBLAS) and convolutions (cuDNN) on one stream (private to lib/nn). The
 * libraries are loaded when first asked for. Every chosen method gives the same bits each time.
 * Calls enqueue and allocate nothing.
 */
struct gf_gpu_stream;
struct gf_gpu_blas;
struct gf_gpu_dnn;
struct gf_gpu_conv;

/* c{m,n} = alpha * a{m,k} b{k,n} + beta * c, row-major. A transposed matrix lies as {k,m} or {n,k}.
 * `row` is the number of elements from a row to the next row, `step` the number from a matrix to
 * the next of `count` matrices. c has a type of its own; sums are f32. */
struct gf_gpu_matrix {
	void *at;
	size_t row, step;
	bool transposed;
	/* (optional, all three or none) In place of `at` and `step`: pointers to the matrices, on
	 * the device. Those of 16 bits are aligned to 16 bytes, and so are their rows. */
	void *const *each;
};

struct gf_gpu_product {
	enum gf_dtype type, c_type;
	size_t m, n, k, count;
	struct gf_gpu_matrix a, b, c;
	float alpha, beta;
};

/* workspace: GF_GPU_BLAS_BYTES, 256-aligned; borrowed */
#define GF_GPU_BLAS_BYTES ((size_t)32 << 20)
int gf_gpu_blas_new(struct gf_gpu_stream *s, void *workspace, struct gf_gpu_blas **blas,
		    struct gf_error *err);
void gf_gpu_blas_free(struct gf_gpu_blas *blas);
int gf_gpu_multiply(struct gf_gpu_blas *blas, const struct gf_gpu_product *p, struct gf_error *err);

struct gf_gpu_conv_shape {
	enum gf_dtype dtype;
	bool channels_last; /* filters, too: {O, H, W, I/groups} */
	size_t batch, groups;
	size_t in[3], out[3]; /* channels, height, width */
	size_t kernel[2], stride, pad[2];
};

int gf_gpu_dnn_new(struct gf_gpu_stream *s, struct gf_gpu_dnn **dnn, struct gf_error *err);
void gf_gpu_dnn_free(struct gf_gpu_dnn *dnn);

/* Chooses how to compute all three, with a workspace of at most `most` bytes where that is possible
 * at all. */
int gf_gpu_conv_new(struct gf_gpu_dnn *dnn, const struct gf_gpu_conv_shape *shape, size_t most,
		    struct gf_gpu_conv **conv, struct gf_error *err);
void gf_gpu_conv_free(struct gf_gpu_conv *conv);
size_t gf_gpu_conv_work_bytes(const struct gf_gpu_conv *conv);

#endif
