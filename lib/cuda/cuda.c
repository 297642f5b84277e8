/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/backends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "cuda/cuda.h"

int gf_cuda_fail(cudaError_t status, const char *what, struct gf_error *err)
{
	return gf_error_set(err, status == cudaErrorMemoryAllocation ? -ENOMEM : -EIO, "%s: %s",
			    what, cudaGetErrorString(status));
}

int gf_cuda_choose(const struct gf_gpu *g, struct gf_error *err)
{
	cudaError_t status = cudaSetDevice(g->index);

	return status == cudaSuccess ? 0 : gf_cuda_fail(status, "cudaSetDevice", err);
}

static int alloc(struct gf_gpu *g, size_t size_bytes, void **p, struct gf_error *err)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaError_t status;
	void *got;
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	/* a pass that is captured may need more workspace; the stricter modes give the capture up
	 * then */
	(void)cudaThreadExchangeStreamCaptureMode(&mode);
	status = cudaMalloc(&got, size_bytes ? size_bytes : 1);
	(void)cudaThreadExchangeStreamCaptureMode(&mode);
	if (status != cudaSuccess) {
		(void)cudaGetLastError(); /* else the next check sees it */
		return gf_error_set(err, -ENOMEM, "no memory for %zu bytes on GPU %d: %s",
				    size_bytes, g->index, cudaGetErrorString(status));
	}
	*p = got;
	return 0;
}

static void free_device(struct gf_gpu *g, void *p)
{
	(void)g;
	(void)cudaFree(p);
}

static int host_alloc(struct gf_gpu *g, size_t size_bytes, void **p, struct gf_error *err)
{
	cudaError_t status;
	void *got;
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	status = cudaHostAlloc(&got, size_bytes ? size_bytes : 1, cudaHostAllocPortable);
	if (status != cudaSuccess) {
		(void)cudaGetLastError();
		return gf_error_set(err, -ENOMEM, "no pinned host memory for %zu bytes: %s",
				    size_bytes, cudaGetErrorString(status));
	}
	memset(got, 0, size_bytes);
	*p = got;
	return 0;
}

static void host_free(struct gf_gpu *g, void *p)
{
	(void)g;
	(void)cudaFreeHost(p);
}

static int host_pin(struct gf_gpu *g, void *p, size_t size_bytes, struct gf_error *err)
{
	cudaError_t status;
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	status = cudaHostRegister(p, size_bytes ? size_bytes : 1, cudaHostRegisterPortable);
	if (status == cudaSuccess)
		return 0;
	(void)cudaGetLastError();
	return gf_error_set(err, -ENOMEM, "%zu bytes cannot be pinned: %s", size_bytes,
			    cudaGetErrorString(status));
}

static void host_unpin(struct gf_gpu *g, void *p)
{
	(void)g;
	(void)cudaHostUnregister(p);
}

static int free_bytes(struct gf_gpu *g, size_t *bytes, struct gf_error *err)
{
	size_t total;
	int rc = gf_cuda_choose(g, err);

	if (!rc)
		CUDA_TRY(cudaMemGetInfo(bytes, &total));
out:
	return rc;
}

static int check(struct gf_gpu *g, struct gf_error *err)
{
	cudaError_t status = cudaGetLastError();

	return status == cudaSuccess ? 0
				     : gf_error_set(err, -EIO, "GPU %d: %s", g->index,
						    cudaGetErrorString(status));
}

static void close_cuda(struct gf_gpu *g)
{
	free(g);
}

static const struct gf_gpu_ops ops = {
	.name = "cuda",
	.alloc = alloc,
	.free = free_device,
	.host_alloc = host_alloc,
	.host_free = host_free,
	.host_pin = host_pin,
	.host_unpin = host_unpin,
	.free_bytes = free_bytes,
	.stream_new = gf_cuda_stream_new,
	.stream_free = gf_cuda_stream_free,
	.stream_sync = gf_cuda_stream_sync,
	.event_new = gf_cuda_event_new,
	.event_free = gf_cuda_event_free,
	.record = gf_cuda_record,
	.wait = gf_cuda_wait,
	.hold = gf_cuda_hold,
	.release = gf_cuda_release,
	.query = gf_cuda_query,
	.event_sync = gf_cuda_event_sync,
	.event_s = gf_cuda_event_s,
	.copy = gf_cuda_copy,
	.zero = gf_cuda_zero,
	.capture_begin = gf_cuda_capture_begin,
	.capture_end = gf_cuda_capture_end,
	.graph_launch = gf_cuda_graph_launch,
	.graph_free = gf_cuda_graph_free,
	.check = check,
	.close = close_cuda,
};

static int count(struct gf_error *why)
{
	int n = 0, driver = 0;
	cudaError_t status;

	/* else it would be called one that is too old */
	if (cudaDriverGetVersion(&driver) == cudaSuccess && !driver) {
		gf_error_set(why, -ENOTSUP, "no GPU that CUDA can use: there is no driver");
		return 0;
	}
	status = cudaGetDeviceCount(&n);
	if (status != cudaSuccess || n == 0) {
		(void)cudaGetLastError();
		gf_error_set(why, -ENOTSUP, "no GPU that CUDA can use: %s",
			     status == cudaSuccess ? "none is visible"
						   : cudaGetErrorString(status));
		return 0;
	}
	return n;
}

static int describe(struct gf_gpu *g, struct gf_error *err)
{
	struct cudaDeviceProp p;
	int rc = 0;

	CUDA_TRY(cudaGetDeviceProperties(&p, g->index));
	snprintf(g->name, sizeof(g->name), "%.*s", (int)sizeof(g->name) - 1, p.name);
	snprintf(g->pci, sizeof(g->pci), "%04x:%02x:%02x.0", (unsigned)p.pciDomainID & 0xffff,
		 (unsigned)p.pciBusID & 0xff, (unsigned)p.pciDeviceID & 0xff);
	g->major = p.major;
	g->minor = p.minor;
	g->memory_bytes = p.totalGlobalMem;
out:
	return rc;
}

static int open_cuda(int index, struct gf_gpu **gpu, struct gf_error *err)
{
	struct gf_error why = {""};
	const int n = count(&why);
	struct gf_gpu *g;
	int rc;

	if (n == 0)
		return gf_error_set(err, -ENOTSUP, "%s", why.text);
	if (index < 0 || index >= n)
		return gf_error_set(err, -ENOTSUP, "want a GPU below %d, got %d", n, index);
	g = gf_xcalloc(1, sizeof(*g));
	g->ops = &ops;
	g->kernels = &gf_gpu_kernels_cuda;
	g->index = index;
	rc = gf_cuda_choose(g, err);
	rc = rc ? rc : describe(g, err);
	if (rc)
		free(g);
	else
		*gpu = g;
	return rc;
}

const struct gf_gpu_backend gf_gpu_cuda = {count, open_cuda};
