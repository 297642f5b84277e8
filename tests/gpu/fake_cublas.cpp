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

cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t ta,
			cublasOperation_t tb, int m, int n, int k,
			const void *alpha, const void *A, cudaDataType at_,
			int lda, long long sa, const void *B, cudaDataType bt,
			int ldb, long long sb, const void *beta, void *C,
			cudaDataType ct, int ldc, long long sc, int count,
			cublasComputeType_t compute, cublasGemmAlgo_t)
{
	const blas_handle *h = of<blas_handle>(handle);
	const matrix a = {A, type_of(at_), ta == CUBLAS_OP_T, (size_t)lda,
			  (size_t)sa};
	const matrix b = {B, type_of(bt), tb == CUBLAS_OP_T, (size_t)ldb,
			  (size_t)sb};
	const matrix c = {C, type_of(ct), false, (size_t)ldc, (size_t)sc};
	const float by = *(const float *)alpha, keep = *(const float *)beta;

	if (fails("cublasGemmStridedBatchedEx"))
		return CUBLAS_STATUS_EXECUTION_FAILED;
	want(h->has_work, "a product without a workspace of ours");
	want(m > 0 && n > 0 && k > 0 && count > 0, "a product of nothing");
	want(a.t == b.t && (c.t == a.t || c.t == F32),
	     "types that are not multiplied");
	want(compute == CUBLAS_COMPUTE_32F, "sums that are not f32");
	want(A != C && B != C, "a product in place");
	a.check(m, k, count);
	b.check(k, n, count);
	c.check(m, n, count);
	host_gpu_enqueue(h->stream, [=] {
		for (size_t i = 0; i < (size_t)count; i++)
			for (int x = 0; x < m * n; x++) {
				double sum = 0;

				for (int y = 0; y < k; y++)
					sum += (double)a.get(i, x % m, y) *
					       b.get(i, y, x / m);
				blend(C, c.t,
				      i * c.step + (size_t)(x / m) * c.lead +
					      (size_t)(x % m),
				      by, sum, keep);
			}
	});
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
	{NULL, NULL},
};
