/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda/cuda.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"

/* Any thread may call, and one that has not chosen a device would use GPU 0, with a context of its
 * own there: so each call chooses. */

int gf_cuda_stream_new(struct gf_gpu *g, bool urgent, struct gf_gpu_stream **s,
		       struct gf_error *err)
{
	int least, greatest, rc = gf_cuda_choose(g, err);
	cudaStream_t stream;

	if (rc)
		return rc;
	CUDA_TRY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CUDA_TRY(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
					      urgent ? greatest : least));
	*s = (struct gf_gpu_stream *)stream;
out:
	return rc;
}

void gf_cuda_stream_free(struct gf_gpu *g, struct gf_gpu_stream *s)
{
	(void)g;
	if (s)
		(void)cudaStreamDestroy((cudaStream_t)s);
}

int gf_cuda_stream_sync(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_error *err)
{
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaStreamSynchronize((cudaStream_t)s));
out:
	return rc;
}

int gf_cuda_event_new(struct gf_gpu *g, bool timed, struct gf_gpu_event **e, struct gf_error *err)
{
	cudaEvent_t event;
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaEventCreateWithFlags(&event,
					  timed ? cudaEventDefault : cudaEventDisableTiming));
	*e = (struct gf_gpu_event *)event;
out:
	return rc;
}

void gf_cuda_event_free(struct gf_gpu *g, struct gf_gpu_event *e)
{
	(void)g;
	if (e)
		(void)cudaEventDestroy((cudaEvent_t)e);
}

/* In a capture an event is meant for others than the graph itself. */
int gf_cuda_record(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_gpu_stream *s,
		   struct gf_error *err)
{
	enum cudaStreamCaptureStatus status;
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaStreamIsCapturing((cudaStream_t)s, &status));
	CUDA_TRY(cudaEventRecordWithFlags((cudaEvent_t)e, (cudaStream_t)s,
					  status == cudaStreamCaptureStatusActive
						  ? cudaEventRecordExternal
						  : cudaEventRecordDefault));
out:
	return rc;
}

int gf_cuda_wait(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_event *e,
		 struct gf_error *err)
{
	enum cudaStreamCaptureStatus status;
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaStreamIsCapturing((cudaStream_t)s, &status));
	CUDA_TRY(cudaStreamWaitEvent((cudaStream_t)s, (cudaEvent_t)e,
				     status == cudaStreamCaptureStatusActive
					     ? cudaEventWaitExternal
					     : cudaEventWaitDefault));
out:
	return rc;
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

int gf_cuda_hold(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_hold **hold,
		 struct gf_error *err)
{
	struct gf_gpu_hold *h = NULL;
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	h = gf_xcalloc(1, sizeof(*h));
	atomic_init(&h->holders, 2);
	CUDA_TRY(cudaLaunchHostFunc((cudaStream_t)s, stand, h));
	*hold = h;
	return 0;
out:
	free(h);
	return rc;
}

void gf_cuda_release(struct gf_gpu *g, struct gf_gpu_hold *h)
{
	(void)g;
	if (h)
		let_go(h);
}

int gf_cuda_query(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_error *err)
{
	int rc = gf_cuda_choose(g, err);
	cudaError_t status;

	if (rc)
		return rc;
	status = cudaEventQuery((cudaEvent_t)e);
	if (status == cudaErrorNotReady)
		return 0;
	return status == cudaSuccess ? 1 : gf_cuda_fail(status, "cudaEventQuery", err);
}

int gf_cuda_event_sync(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_error *err)
{
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaEventSynchronize((cudaEvent_t)e));
out:
	return rc;
}

int gf_cuda_event_s(struct gf_gpu *g, struct gf_gpu_event *from, struct gf_gpu_event *to,
		    double *seconds, struct gf_error *err)
{
	float ms;
	int rc = 0;

	(void)g;
	CUDA_TRY(cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to));
	*seconds = (double)ms * 1e-3;
out:
	return rc;
}

int gf_cuda_copy(struct gf_gpu *g, struct gf_gpu_stream *s, void *to, const void *from,
		 size_t size_bytes, enum gf_gpu_copy kind, struct gf_error *err)
{
	static const enum cudaMemcpyKind kinds[] = {
		[GF_GPU_TO_DEVICE] = cudaMemcpyHostToDevice,
		[GF_GPU_TO_HOST] = cudaMemcpyDeviceToHost,
		[GF_GPU_WITHIN] = cudaMemcpyDeviceToDevice,
	};
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaMemcpyAsync(to, from, size_bytes, kinds[kind], (cudaStream_t)s));
out:
	return rc;
}

int gf_cuda_zero(struct gf_gpu *g, struct gf_gpu_stream *s, void *p, size_t size_bytes,
		 struct gf_error *err)
{
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaMemsetAsync(p, 0, size_bytes, (cudaStream_t)s));
out:
	return rc;
}

/* Other threads may allocate meanwhile: only this one's calls are watched. */
int gf_cuda_capture_begin(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_error *err)
{
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaStreamBeginCapture((cudaStream_t)s, cudaStreamCaptureModeThreadLocal));
out:
	return rc;
}

int gf_cuda_capture_end(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph **graph,
			struct gf_error *err)
{
	cudaGraph_t captured = NULL;
	cudaGraphExec_t exec;
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaStreamEndCapture((cudaStream_t)s, &captured));
	CUDA_TRY(cudaGraphInstantiate(&exec, captured, 0));
	*graph = (struct gf_gpu_graph *)exec;
out:
	if (captured)
		(void)cudaGraphDestroy(captured);
	return rc;
}

int gf_cuda_graph_launch(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph *graph,
			 struct gf_error *err)
{
	int rc = gf_cuda_choose(g, err);

	if (rc)
		return rc;
	CUDA_TRY(cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)s));
out:
	return rc;
}

void gf_cuda_graph_free(struct gf_gpu *g, struct gf_gpu_graph *graph)
{
	(void)g;
	if (graph)
		(void)cudaGraphExecDestroy((cudaGraphExec_t)graph);
}
