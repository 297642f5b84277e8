/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What NCCL's calls cost the host, by the kind of communicator, and how fast
 * messages to the own rank go: one rank on one GPU.
 *	nccl_cost
 * Ends with 77 where there is no GPU or no NCCL. Memory: 1.2 GiB of the GPU's.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLS(CALL)                                                            \
	CALL(ncclGetVersion)                                                   \
	CALL(ncclGetUniqueId)                                                  \
	CALL(ncclCommInitRankConfig)                                           \
	CALL(ncclCommSplit)                                                    \
	CALL(ncclCommGetAsyncError)                                            \
	CALL(ncclCommAbort)                                                    \
	CALL(ncclGroupStart)                                                   \
	CALL(ncclGroupEnd)                                                     \
	CALL(ncclSend)                                                         \
	CALL(ncclRecv)

#define POINTER(name) __typeof__(name) *name;
static struct {
	CALLS(POINTER)
} nccl;

#define CUDA(call)                                                             \
	do {                                                                   \
		cudaError_t status_ = (call);                                  \
		if (status_ != cudaSuccess)                                    \
			give_up(#call, cudaGetErrorString(status_));           \
	} while (0)

#define NCCL(name, ...)                                                        \
	do {                                                                   \
		ncclResult_t status_ = nccl.name(__VA_ARGS__);                 \
		if (status_ != ncclSuccess && status_ != ncclInProgress)       \
			give_up(#name, "failed");                              \
	} while (0)

#define MOST_BYTES ((size_t)64 << 20)
#define GATE_BYTES ((size_t)1 << 30)
#define GROUPS     14 /* of a ring of eight ranks */
#define LANES      2
#define ROUNDS     50

enum kind { BLOCKING, SPLIT_BLOCKING, NONBLOCKING, KINDS };
static const char *const kinds[] = {
	"blocking", "blocking, split off a non-blocking one", "non-blocking"};

struct lane {
	ncclComm_t comm, parent;
	cudaStream_t stream;
	char *from, *to;
};

static char *gate_memory;
static cudaStream_t gate;
static cudaEvent_t opened, begun, ended[LANES];

static void give_up(const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void settle(ncclComm_t c)
{
	ncclResult_t state;

	do
		NCCL(ncclCommGetAsyncError, c, &state);
	while (state == ncclInProgress);
	if (state != ncclSuccess)
		give_up("a communicator", "failed");
}

static void open_lane(struct lane *l, enum kind kind)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId id;

	*l = (struct lane){0};
	CUDA(cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc((void **)&l->from, MOST_BYTES + 256));
	CUDA(cudaMalloc((void **)&l->to, MOST_BYTES + 256));
	NCCL(ncclGetUniqueId, &id);
	config.blocking = kind == BLOCKING;
	config.maxCTAs = 32 / LANES; /* kernels of all lanes fit at once */
	NCCL(ncclCommInitRankConfig, &l->comm, 1, id, 0, &config);
	settle(l->comm);
	if (kind != SPLIT_BLOCKING)
		return;
	l->parent = l->comm;
	l->comm = NULL;
	config.blocking = 1;
	NCCL(ncclCommSplit, l->parent, 0, 0, &l->comm, &config);
	settle(l->parent);
	settle(l->comm);
}

static void close_lane(struct lane *l)
{
	NCCL(ncclCommAbort, l->comm);
	if (l->parent)
		NCCL(ncclCommAbort, l->parent);
	CUDA(cudaStreamDestroy(l->stream));
	CUDA(cudaFree(l->from));
	CUDA(cudaFree(l->to));
}

static void group(struct lane *l, size_t bytes, size_t offset)
{
	NCCL(ncclGroupStart);
	NCCL(ncclSend, l->from + offset, bytes, ncclUint8, 0, l->comm,
	     l->stream);
	NCCL(ncclRecv, l->to, bytes, ncclUint8, 0, l->comm, l->stream);
	NCCL(ncclGroupEnd);
	settle(l->comm);
}

static void program(struct lane *l, size_t bytes)
{
	for (int i = 0; i < GROUPS; i++)
		group(l, bytes, 0);
}

/* Work that follows on the lanes starts when everything is enqueued. */
static void close_gate(struct lane *lanes, int n)
{
	for (int i = 0; i < 10; i++) /* 3 ms and more */
		CUDA(cudaMemsetAsync(gate_memory, i, GATE_BYTES, gate));
	CUDA(cudaEventRecord(begun, gate));
	CUDA(cudaEventRecord(opened, gate));
	for (int i = 0; i < n; i++)
		CUDA(cudaStreamWaitEvent(lanes[i].stream, opened, 0));
}

static double since_gate_us(struct lane *lanes, int n)
{
	double most = 0;

	for (int i = 0; i < n; i++)
		CUDA(cudaEventRecord(ended[i], lanes[i].stream));
	for (int i = 0; i < n; i++) {
		float ms;

		CUDA(cudaEventSynchronize(ended[i]));
		CUDA(cudaEventElapsedTime(&ms, begun, ended[i]));
		most = ms * 1e3 > most ? ms * 1e3 : most;
	}
	return most;
}

/* The second of two runs of it counts. */
static void report_groups(struct lane *l, const char *kind, size_t bytes,
			  size_t offset)
{
	const int n = bytes > 1 << 21 ? 20 : 200;
	double host_s = 0, all_s = 0;

	for (int warm = 0; warm < 2; warm++) {
		const double from_s = now_s();

		for (int i = 0; i < n; i++)
			group(l, bytes, offset);
		host_s = (now_s() - from_s) / n;
		CUDA(cudaStreamSynchronize(l->stream));
		all_s = (now_s() - from_s) / n;
	}
	printf("| %s | %zu bytes at +%zu | %.1f us | %.1f us | %.1f GB/s |\n",
	       kind, bytes, offset, host_s * 1e6, all_s * 1e6,
	       (double)bytes / all_s / 1e9);
}

/* A message's groups in one graph; NULL: it cannot be captured. */
static cudaGraphExec_t capture(struct lane *l, size_t bytes)
{
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;

	CUDA(cudaStreamBeginCapture(l->stream,
				    cudaStreamCaptureModeThreadLocal));
	program(l, bytes);
	if (cudaStreamEndCapture(l->stream, &graph) != cudaSuccess ||
	    cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess)
		exec = NULL;
	(void)cudaGetLastError();
	if (graph)
		CUDA(cudaGraphDestroy(graph));
	return exec;
}

static void report_programs(struct lane *lanes, int n, const char *kind,
			    size_t bytes, int captured)
{
	cudaGraphExec_t graphs[LANES];
	double host_us = 0, device_us = 0;

	for (int i = 0; i < n && captured; i++) {
		graphs[i] = capture(&lanes[i], bytes);
		if (!graphs[i]) {
			printf("| %s | cannot be captured | | | |\n", kind);
			return;
		}
	}
	for (int r = -3; r < ROUNDS; r++) {
		double from_s, us;

		close_gate(lanes, n);
		from_s = now_s();
		for (int i = 0; i < n; i++) {
			if (captured)
				CUDA(cudaGraphLaunch(graphs[i],
						     lanes[i].stream));
			else
				program(&lanes[i], bytes);
		}
		us = (now_s() - from_s) * 1e6;
		if (r >= 0) {
			host_us += us / ROUNDS;
			device_us += since_gate_us(lanes, n) / ROUNDS;
		} else {
			(void)since_gate_us(lanes, n);
		}
	}
	printf("| %s%s | %d x %d groups of %zu bytes | %.1f us | %.1f us | "
	       "%.1f GB/s |\n",
	       kind, captured ? ", captured" : "", n, GROUPS, bytes, host_us,
	       device_us, n * GROUPS * (double)bytes / device_us / 1e3);
	for (int i = 0; i < n && captured; i++)
		CUDA(cudaGraphExecDestroy(graphs[i]));
}

static void report_kind(enum kind kind)
{
	static const size_t sizes[] = {4096, 1 << 20, MOST_BYTES};
	struct lane lanes[LANES];

	for (int i = 0; i < LANES; i++)
		open_lane(&lanes[i], kind);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		report_groups(&lanes[0], kinds[kind], sizes[i], 0);
	if (kind == BLOCKING)
		for (size_t at = 4; at <= 128; at *= 2)
			report_groups(&lanes[0], kinds[kind], MOST_BYTES, at);
	for (int captured = 0; captured < 2; captured++)
		for (int n = 1; n <= LANES; n++) {
			report_programs(lanes, n, kinds[kind], 4096, captured);
			report_programs(lanes, n, kinds[kind], 1 << 20,
					captured);
		}
	for (int i = 0; i < LANES; i++)
		close_lane(&lanes[i]);
}

#define LOAD(name)                                                             \
	if (!(nccl.name = (__typeof__(name) *)dlsym(library, #name)))          \
		give_up(#name, "NCCL has none");

int main(void)
{
	void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	const char *order = getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
	int devices = 0, version = 0;

	if (cudaGetDeviceCount(&devices) != cudaSuccess || !devices ||
	    !library) {
		puts(library ? "no GPU that CUDA can use" : "no NCCL here");
		return 77;
	}
	CALLS(LOAD)
	setvbuf(stdout, NULL, _IOLBF, 0);
	NCCL(ncclGetVersion, &version);
	CUDA(cudaSetDevice(0));
	CUDA(cudaMalloc((void **)&gate_memory, GATE_BYTES));
	CUDA(cudaStreamCreateWithFlags(&gate, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&opened, cudaEventDisableTiming));
	CUDA(cudaEventCreate(&begun));
	for (int i = 0; i < LANES; i++)
		CUDA(cudaEventCreate(&ended[i]));
	printf("NCCL %d, NCCL_LAUNCH_ORDER_IMPLICIT=%s\n\n", version,
	       order ? order : "");
	puts("| communicator | what goes | host | until its end | rate |\n"
	     "|---|---|---|---|---|");
	for (int kind = 0; kind < KINDS; kind++)
		report_kind((enum kind)kind);
	return 0;
}
