/* SPDX-License-Identifier: BSD-3-Clause */
#include "nn/gpu_math.h"

#include <pthread.h>

#include <cublas_v2.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/library.h"

/* The functions that are loaded: cuBLAS' own names and types, from its header. */
#define CALLS(CALL)                                                                                \
	CALL(Create_v2)                                                                            \
	CALL(Destroy_v2)                                                                           \
	CALL(SetStream_v2)                                                                         \
	CALL(SetWorkspace_v2)                                                                      \
	CALL(GetStatusString)                                                                      \
	CALL(GemmStridedBatchedEx)                                                                 \
	CALL(GemmBatchedEx)

#define POINTER(name) __typeof__(cublas##name) *name;
static struct {
	CALLS(POINTER)
} cublas;

#define SYMBOL(name) {"cublas" #name, offsetof(__typeof__(cublas), name)},
static const struct gf_symbol symbols[] = {CALLS(SYMBOL)};

#define STRING(x) #x
#define NUMBER(x) STRING(x)
#define FILE_NAME "libcublas.so." NUMBER(CUBLAS_VER_MAJOR)

/* Written once, under pthread_once. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct gf_error reason;
static int loaded;

/* cuBLAS of the CUDA release before has the same calls, and may be the only one there: PyTorch
 * brings its own. */
static void load(void)
{
	loaded = gf_library_open(FILE_NAME, symbols, GF_ARRAY_LENGTH(symbols), &cublas, &reason);
	if (loaded &&
	    !gf_library_open("libcublas.so.12", symbols, GF_ARRAY_LENGTH(symbols), &cublas, NULL))
		loaded = 0;
}

struct gf_gpu_blas {
	cublasHandle_t handle;
};

static int check(cublasStatus_t status, const char *what, struct gf_error *err)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return 0;
	return gf_error_set(err, status == CUBLAS_STATUS_ALLOC_FAILED ? -ENOMEM : -EIO, "%s: %s",
			    what, cublas.GetStatusString(status));
}

#define CUBLAS_CHECK(name, ...) check(cublas.name(__VA_ARGS__), "cublas" #name, err)

/* The stream first: setting it takes the workspace away again. With one of its own, a handle on one
 * stream gives the same bits each time. */
int gf_gpu_blas_new(struct gf_gpu_stream *s, void *workspace, struct gf_gpu_blas **blas,
		    struct gf_error *err)
{
	struct gf_gpu_blas *b;
	int rc;

	pthread_once(&once, load);
	if (loaded)
		return gf_error_set(err, loaded, "no cuBLAS here: %s", reason.text);
	b = gf_xcalloc(1, sizeof(*b));
	rc = CUBLAS_CHECK(Create_v2, &b->handle);
	rc = rc ?: CUBLAS_CHECK(SetStream_v2, b->handle, (cudaStream_t)s);
	rc = rc ?: CUBLAS_CHECK(SetWorkspace_v2, b->handle, workspace, GF_GPU_BLAS_BYTES);
	if (rc)
		gf_gpu_blas_free(b);
	else
		*blas = b;
	return rc;
}

void gf_gpu_blas_free(struct gf_gpu_blas *blas)
{
	if (blas && blas->handle)
		(void)cublas.Destroy_v2(blas->handle);
	free(blas);
}

static cudaDataType_t type_of(enum gf_dtype dtype)
{
	return dtype == GF_F16 ? CUDA_R_16F : dtype == GF_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static cublasOperation_t turn(const struct gf_gpu_matrix *x)
{
	return x->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/* cuBLAS counts by columns: there a row-major matrix is its transpose, and
 * c' = b' a'. */
int gf_gpu_multiply(struct gf_gpu_blas *blas, const struct gf_gpu_product *p, struct gf_error *err)
{
	const int m = (int)p->n, n = (int)p->m, k = (int)p->k;
	const int count = p->count ? (int)p->count : 1;
	const cudaDataType_t type = type_of(p->type), c_type = type_of(p->c_type);

	if (p->c.each)
		return CUBLAS_CHECK(GemmBatchedEx, blas->handle, turn(&p->b), turn(&p->a), m, n, k,
				    &p->alpha, (const void *const *)p->b.each, type, (int)p->b.row,
				    (const void *const *)p->a.each, type, (int)p->a.row, &p->beta,
				    p->c.each, c_type, (int)p->c.row, count, CUBLAS_COMPUTE_32F,
				    CUBLAS_GEMM_DEFAULT);
	return CUBLAS_CHECK(GemmStridedBatchedEx, blas->handle, turn(&p->b), turn(&p->a), m, n, k,
			    &p->alpha, p->b.at, type, (int)p->b.row, (long long)p->b.step, p->a.at,
			    type, (int)p->a.row, (long long)p->a.step, &p->beta, p->c.at, c_type,
			    (int)p->c.row, (long long)p->c.step, count, CUBLAS_COMPUTE_32F,
			    CUBLAS_GEMM_DEFAULT);
}
