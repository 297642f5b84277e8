/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/backends.h"

#include <cuda_runtime_api.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"

static int done(cudaError_t status, const char *what, struct gf_error *err)
{
	if (status == cudaSuccess)
		return 0;
	return gf_error_set(err, status == cudaErrorMemoryAllocation ? -ENOMEM : -EIO, "%s: %s",
			    what, cudaGetErrorString(status));
}

#define CUDA_CHECK(name, ...) done(cuda##name(__VA_ARGS__), "cuda" #name, err)

/* A thread's calls go to the device that it chose last. */
static int choose(const struct gf_gpu *g, struct gf_error *err)
{
	return CUDA_CHECK(SetDevice, g->index);
}

/* Any thread may call, and one that has not chosen a device would use GPU 0, with a context of its
 * own there: so each call chooses. */

static int stream_new(struct gf_gpu *g, bool urgent, struct gf_gpu_stream **s, struct gf_error *err)
{
	int least, greatest, rc = choose(g, err);
	cudaStream_t stream;

	rc = rc ?: CUDA_CHECK(DeviceGetStreamPriorityRange, &least, &greatest);
	if (!rc)
		rc = CUDA_CHECK(StreamCreateWithPriority, &stream, cudaStreamNonBlocking,
				urgent ? greatest : least);
	if (!rc)
		*s = (struct gf_gpu_stream *)stream;
	return rc;
}

static void stream_free(struct gf_gpu *g, struct gf_gpu_stream *s)
{
	(void)g;
	if (s)
		(void)cudaStreamDestroy((cudaStream_t)s);
}

static int stream_sync(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_error *err)
{
	return choose(g, err) ?: CUDA_CHECK(StreamSynchronize, (cudaStream_t)s);
}

static int event_new(struct gf_gpu *g, bool timed, struct gf_gpu_event **e, struct gf_error *err)
{
	const unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming;
	cudaEvent_t event;
	int rc = choose(g, err);

	rc = rc ?: CUDA_CHECK(EventCreateWithFlags, &event, flags);
	if (!rc)
		*e = (struct gf_gpu_event *)event;
	return rc;
}

static void event_free(struct gf_gpu *g, struct gf_gpu_event *e)
{
	(void)g;
	if (e)
		(void)cudaEventDestroy((cudaEvent_t)e);
}

/* In a capture an event is meant for others than the graph itself. */
static int record(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_gpu_stream *s,
		  struct gf_error *err)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	unsigned flags = cudaEventRecordDefault;
	int rc = choose(g, err);

	rc = rc ?: CUDA_CHECK(StreamIsCapturing, (cudaStream_t)s, &status);
	if (status == cudaStreamCaptureStatusActive)
		flags = cudaEventRecordExternal;
	return rc ?: CUDA_CHECK(EventRecordWithFlags, (cudaEvent_t)e, (cudaStream_t)s, flags);
}

static int wait(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_event *e,
		struct gf_error *err)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	unsigned flags = cudaEventWaitDefault;
	int rc = choose(g, err);

	rc = rc ?: CUDA_CHECK(StreamIsCapturing, (cudaStream_t)s, &status);
	if (status == cudaStreamCaptureStatusActive)
		flags = cudaEventWaitExternal;
	return rc ?: CUDA_CHECK(StreamWaitEvent, (cudaStream_t)s, (cudaEvent_t)e, flags);
}

static const double hold_most_s = 1;

/* The host's and the stream's: the last of the two to let go frees it. */
struct gf_gpu_hold {
	atomic_int holders;
};

static void let_go(struct gf_gpu_hold *h)
{
	if (atomic_fetch_sub(&h->holders, 1) == 1)
		free(h);
}

/* On a thread of CUDA's. */
static void CUDART_CB stand(void *hold)
{
	struct gf_gpu_hold *h = hold;
	const double since_s = gf_clock_s();

	while (atomic_load(&h->holders) == 2 && gf_clock_s() - since_s < hold_most_s)
		sched_yield();
	let_go(h);
}

static int hold(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_hold **hold,
		struct gf_error *err)
{
	struct gf_gpu_hold *h;
	int rc = choose(g, err);

	if (rc)
		return rc;
	h = gf_xcalloc(1, sizeof(*h));
	atomic_init(&h->holders, 2);
	rc = CUDA_CHECK(LaunchHostFunc, (cudaStream_t)s, stand, h);
	if (rc)
		free(h);
	else
		*hold = h;
	return rc;
}

static void release(struct gf_gpu *g, struct gf_gpu_hold *h)
{
	(void)g;
	if (h)
		let_go(h);
}

static int query(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_error *err)
{
	int rc = choose(g, err);
	cudaError_t status;

	if (rc)
		return rc;
	status = cudaEventQuery((cudaEvent_t)e);
	if (status == cudaErrorNotReady)
		return 0;
	return done(status, "cudaEventQuery", err) ?: 1;
}

static int event_sync(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_error *err)
{
	return choose(g, err) ?: CUDA_CHECK(EventSynchronize, (cudaEvent_t)e);
}

static int event_s(struct gf_gpu *g, struct gf_gpu_event *from, struct gf_gpu_event *to,
		   double *seconds, struct gf_error *err)
{
	float ms;
	int rc = CUDA_CHECK(EventElapsedTime, &ms, (cudaEvent_t)from, (cudaEvent_t)to);

	(void)g;
	if (!rc)
		*seconds = (double)ms * 1e-3;
	return rc;
}

static int copy(struct gf_gpu *g, struct gf_gpu_stream *s, void *to, const void *from,
		size_t size_bytes, enum gf_gpu_copy kind, struct gf_error *err)
{
	static const enum cudaMemcpyKind kinds[] = {
		[GF_GPU_TO_DEVICE] = cudaMemcpyHostToDevice,
		[GF_GPU_TO_HOST] = cudaMemcpyDeviceToHost,
		[GF_GPU_WITHIN] = cudaMemcpyDeviceToDevice,
	};
	int rc = choose(g, err);

	return rc ?: CUDA_CHECK(MemcpyAsync, to, from, size_bytes, kinds[kind], (cudaStream_t)s);
}

static int zero(struct gf_gpu *g, struct gf_gpu_stream *s, void *p, size_t size_bytes,
		struct gf_error *err)
{
	return choose(g, err) ?: CUDA_CHECK(MemsetAsync, p, 0, size_bytes, (cudaStream_t)s);
}

/* Other threads may allocate meanwhile: only this one's calls are watched. */
static int capture_begin(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_error *err)
{
	const enum cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;

	return choose(g, err) ?: CUDA_CHECK(StreamBeginCapture, (cudaStream_t)s, mode);
}

static int capture_end(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph **graph,
		       struct gf_error *err)
{
	cudaGraph_t captured = NULL;
	cudaGraphExec_t exec;
	int rc = choose(g, err);

	rc = rc ?: CUDA_CHECK(StreamEndCapture, (cudaStream_t)s, &captured);
	rc = rc ?: CUDA_CHECK(GraphInstantiate, &exec, captured, 0);
	if (!rc)
		*graph = (struct gf_gpu_graph *)exec;
	if (captured)
		(void)cudaGraphDestroy(captured);
	return rc;
}

static int graph_launch(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph *graph,
			struct gf_error *err)
{
	return choose(g, err) ?: CUDA_CHECK(GraphLaunch, (cudaGraphExec_t)graph, (cudaStream_t)s);
}

static void graph_free(struct gf_gpu *g, struct gf_gpu_graph *graph)
{
	(void)g;
	if (graph)
		(void)cudaGraphExecDestroy((cudaGraphExec_t)graph);
}

static int alloc(struct gf_gpu *g, size_t size_bytes, void **p, struct gf_error *err)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaError_t status;
	void *got;
	int rc = choose(g, err);

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
	int rc = choose(g, err);

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
	int rc = choose(g, err);

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

	return choose(g, err) ?: CUDA_CHECK(MemGetInfo, bytes, &total);
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
	.stream_new = stream_new,
	.stream_free = stream_free,
	.stream_sync = stream_sync,
	.event_new = event_new,
	.event_free = event_free,
	.record = record,
	.wait = wait,
	.hold = hold,
	.release = release,
	.query = query,
	.event_sync = event_sync,
	.event_s = event_s,
	.copy = copy,
	.zero = zero,
	.capture_begin = capture_begin,
	.capture_end = capture_end,
	.graph_launch = graph_launch,
	.graph_free = graph_free,
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
	int rc = CUDA_CHECK(GetDeviceProperties, &p, g->index);

	if (rc)
		return rc;
	snprintf(g->name, sizeof(g->name), "%.*s", (int)sizeof(g->name) - 1, p.name);
	snprintf(g->pci, sizeof(g->pci), "%04x:%02x:%02x.0", (unsigned)p.pciDomainID & 0xffff,
		 (unsigned)p.pciBusID & 0xff, (unsigned)p.pciDeviceID & 0xff);
	g->major = p.major;
	g->minor = p.minor;
	g->memory_bytes = p.totalGlobalMem;
	return 0;
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
	rc = choose(g, err);
	rc = rc ?: describe(g, err);
	if (rc)
		free(g);
	else
		*gpu = g;
	return rc;
}

const struct gf_gpu_backend gf_gpu_cuda = {count, open_cuda};
