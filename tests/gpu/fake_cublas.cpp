/* SPDX-License-Identifier: BSD-3-Clause */
// Products of matrices (fake_math.h).
#include <string.h>

#include <cublas_v2.h>

#include "fake_math.h"

using namespace fake;

namespace
{

struct blas_handle {
	gf_gpu_stream *stream;
	bool has_work;
};

cublasStatus_t blas_create(cublasHandle_t *h)
{
	if (fails("cublasCreate_v2"))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	*h = make_as<blas_handle, cublasHandle_t>();
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_destroy(cublasHandle_t h)
{
	destroy<blas_handle>(h);
	return CUBLAS_STATUS_SUCCESS;
}

// Takes the workspace away, as cuBLAS' does.
cublasStatus_t blas_stream(cublasHandle_t h, cudaStream_t s)
{
	set_stream<blas_handle>(h, s);
	of<blas_handle>(h)->has_work = false;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t blas_work(cublasHandle_t h, void *work, size_t bytes)
{
	want(work && (uintptr_t)work % 256 == 0 && host_gpu_has(work, bytes),
	     "a workspace outside the device's memory, or not aligned");
	of<blas_handle>(h)->has_work = true;
	return CUBLAS_STATUS_SUCCESS;
}

const char *blas_error(cublasStatus_t)
{
	return "the GPU program failed to execute";
}

type type_of(cudaDataType_t t)
{
	want(t == CUDA_R_32F || t == CUDA_R_16F || t == CUDA_R_16BF,
	     "a type that products do not have");
	return t == CUDA_R_32F ? F32 : t == CUDA_R_16F ? F16 : BF16;
}

// Column-major.
struct matrix {
	const void *p;
	type t;
	bool turned;
	size_t lead, step;

	float get(size_t batch, int row, int column) const
	{
		const size_t r = (size_t)(turned ? column : row);
		const size_t c = (size_t)(turned ? row : column);

		return at(p, t, batch * step + c * lead + r);
	}
	// rows and columns as they lie
	void check(int rows, int columns, int count) const
	{
		want(lead >= (size_t)(turned ? columns : rows),
		     "a leading dimension below the rows");
		want(p && (uintptr_t)p % size_of(t) == 0 &&
			     host_gpu_has(
				     p,
				     ((size_t)(count - 1) * step +
				      (size_t)((turned ? rows : columns) - 1) *
					      lead +
				      (size_t)(turned ? columns : rows)) *
					     size_of(t)),
		     "a matrix outside the device's memory");
	}
};

// All of the products; `pointers` gives a matrix of its own to each.
struct products {
	matrix a, b, c;
	int m, n, k, count;
	float by, keep;
	const void *const *pointers[3];

	void one(matrix x, matrix y, matrix z, size_t i) const
	{
		for (int at = 0; at < m * n; at++) {
			double sum = 0;

			for (int w = 0; w < k; w++)
				sum += (double)x.get(i, at % m, w) *
				       y.get(i, w, at / m);
			blend(const_cast<void *>(z.p), z.t,
			      i * z.step + (size_t)(at / m) * z.lead +
				      (size_t)(at % m),
			      by, sum, keep);
		}
	}
	static matrix of(matrix m, const void *const *from, size_t i)
	{
		m.p = from[i];
		want(m.t == F32 ||
			     ((uintptr_t)m.p % 16 == 0 && m.lead % 8 == 0),
		     "a matrix that is not aligned to 16 bytes");
		return m;
	}
	void all() const
	{
		for (size_t i = 0; i < (size_t)count; i++) {
			if (!pointers[0]) {
				one(a, b, c, i);
				continue;
			}
			const matrix x = of(a, pointers[0], i);
			const matrix y = of(b, pointers[1], i);
			const matrix z = of(c, pointers[2], i);

			x.check(m, k, 1);
			y.check(k, n, 1);
			z.check(m, n, 1);
			one(x, y, z, 0);
		}
	}
};

void check(const blas_handle *h, const products &p, cublasComputeType_t compute)
{
	want(h->has_work, "a product without a workspace of ours");
	want(p.m > 0 && p.n > 0 && p.k > 0 && p.count > 0,
	     "a product of nothing");
	want(p.a.t == p.b.t && (p.c.t == p.a.t || p.c.t == F32),
	     "types that are not multiplied");
	want(compute == CUBLAS_COMPUTE_32F, "sums that are not f32");
}

cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t ta,
			cublasOperation_t tb, int m, int n, int k,
			const void *alpha, const void *A, cudaDataType at_,
			int lda, long long sa, const void *B, cudaDataType bt,
			int ldb, long long sb, const void *beta, void *C,
			cudaDataType ct, int ldc, long long sc, int count,
			cublasComputeType_t compute, cublasGemmAlgo_t)
{
	const blas_handle *h = of<blas_handle>(handle);
	const products p = {
		{A, type_of(at_), ta == CUBLAS_OP_T, (size_t)lda, (size_t)sa},
		{B, type_of(bt), tb == CUBLAS_OP_T, (size_t)ldb, (size_t)sb},
		{C, type_of(ct), false, (size_t)ldc, (size_t)sc},
		m,
		n,
		k,
		count,
		*(const float *)alpha,
		*(const float *)beta,
		{}};

	if (fails("cublasGemmStridedBatchedEx"))
		return CUBLAS_STATUS_EXECUTION_FAILED;
	check(h, p, compute);
	want(A != C && B != C, "a product in place");
	p.a.check(m, k, count);
	p.b.check(k, n, count);
	p.c.check(m, n, count);
	host_gpu_enqueue(h->stream, [=] { p.all(); });
	return CUBLAS_STATUS_SUCCESS;
}

// The pointers are read when the products are made.
cublasStatus_t
multiply_each(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
	      int m, int n, int k, const void *alpha, const void *const A[],
	      cudaDataType at_, int lda, const void *const B[], cudaDataType bt,
	      int ldb, const void *beta, void *const C[], cudaDataType ct,
	      int ldc, int count, cublasComputeType_t compute, cublasGemmAlgo_t)
{
	const blas_handle *h = of<blas_handle>(handle);
	const products p = {
		{NULL, type_of(at_), ta == CUBLAS_OP_T, (size_t)lda, 0},
		{NULL, type_of(bt), tb == CUBLAS_OP_T, (size_t)ldb, 0},
		{NULL, type_of(ct), false, (size_t)ldc, 0},
		m,
		n,
		k,
		count,
		*(const float *)alpha,
		*(const float *)beta,
		{A, B, C}};

	if (fails("cublasGemmBatchedEx"))
		return CUBLAS_STATUS_EXECUTION_FAILED;
	check(h, p, compute);
	want(host_gpu_has(A, (size_t)count * sizeof(*A)) &&
		     host_gpu_has(B, (size_t)count * sizeof(*B)) &&
		     host_gpu_has(C, (size_t)count * sizeof(*C)),
	     "pointers outside the device's memory");
	host_gpu_enqueue(h->stream, [=] { p.all(); });
	return CUBLAS_STATUS_SUCCESS;
}

} // namespace

const struct entry fake::cublas_entries[] = {
	ENTRY(cublasCreate_v2, blas_create),
	ENTRY(cublasDestroy_v2, blas_destroy),
	ENTRY(cublasSetStream_v2, blas_stream),
	ENTRY(cublasSetWorkspace_v2, blas_work),
	ENTRY(cublasGetStatusString, blas_error),
	// overloaded in its header
	{"cublasGemmStridedBatchedEx", (void *)multiply},
	{"cublasGemmBatchedEx", (void *)multiply_each},
	{NULL, NULL},
};
