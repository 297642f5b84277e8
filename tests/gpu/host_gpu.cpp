/* SPDX-License-Identifier: BSD-3-Clause */
#include "host_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <deque>
#include <map>
#include <vector>

#include "emulate.h"

#define GUARD_BYTES 256
#define GUARD       0xa5

// An event counts its records that have not been played.
struct gf_gpu_event {
	size_t waiting;
	gf_gpu_stream *stream;
};

struct operation {
	std::function<void()> call;
	gf_gpu_event *records;
};

struct gf_gpu_graph {
	std::vector<operation> operations;
};

struct gf_gpu_stream {
	std::deque<operation> operations;
	gf_gpu_graph *capture;
};

namespace
{

gf_gpu gpu;
gf_gpu_stream main_stream;
struct host_gpu_counts counts;
std::map<char *, size_t> memory;
size_t free_now = (size_t)1 << 40;

void no_capture(const char *what)
{
	if (main_stream.capture)
		host_gpu_refuse(what);
}

void run_one(gf_gpu_stream *s)
{
	const operation first = s->operations.front();

	s->operations.pop_front();
	if (first.records)
		first.records->waiting--;
	else
		first.call();
}

void enqueue(gf_gpu_stream *s, const operation &o)
{
	if (!s)
		host_gpu_refuse("the default stream is used");
	counts.enqueued++;
	counts.elsewhere += s != &main_stream;
	if (s->capture) {
		s->capture->operations.push_back(o);
		return;
	}
	if (o.records) {
		o.records->waiting++;
		o.records->stream = s;
	}
	s->operations.push_back(o);
}

void check_guards()
{
	for (const auto &block : memory)
		for (size_t i = 0; i < GUARD_BYTES; i++)
			if ((unsigned char)block.first[block.second + i] !=
			    GUARD)
				host_gpu_refuse("written behind an end");
}

char *allocate(size_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, 256, bytes + GUARD_BYTES))
		abort();
	memset(p, 0xff, bytes);
	memset((char *)p + bytes, GUARD, GUARD_BYTES);
	return (char *)p;
}

int gpu_alloc(gf_gpu *, size_t bytes, void **p, gf_error *err)
{
	no_capture("memory is allocated in a capture");
	counts.allocations++;
	if (bytes > free_now)
		return gf_error_set(err, -ENOMEM, "no memory for %zu bytes",
				    bytes);
	*p = allocate(bytes);
	memory[(char *)*p] = bytes;
	return 0;
}

void gpu_free(gf_gpu *, void *p)
{
	no_capture("memory is freed in a capture");
	counts.allocations++;
	check_guards();
	if (p && !memory.erase((char *)p))
		host_gpu_refuse("what was not allocated is freed");
	free(p);
}

int gpu_host_alloc(gf_gpu *, size_t bytes, void **p, gf_error *)
{
	counts.allocations++;
	*p = calloc(1, bytes + 1);
	return 0;
}

void gpu_host_free(gf_gpu *, void *p)
{
	free(p);
}

int gpu_free_bytes(gf_gpu *, size_t *bytes, gf_error *)
{
	*bytes = free_now;
	return 0;
}

int stream_new(gf_gpu *, bool, gf_gpu_stream **s, gf_error *)
{
	*s = new gf_gpu_stream();
	return 0;
}

void stream_free(gf_gpu *, gf_gpu_stream *s)
{
	delete s;
}

int stream_sync(gf_gpu *, gf_gpu_stream *s, gf_error *)
{
	no_capture("the host waits in a capture");
	counts.waits++;
	while (!s->operations.empty())
		run_one(s);
	check_guards();
	return 0;
}

int event_new(gf_gpu *, bool, gf_gpu_event **e, gf_error *)
{
	*e = new gf_gpu_event();
	return 0;
}

void event_free(gf_gpu *, gf_gpu_event *e)
{
	delete e;
}

// A graph that records an event does so when it is launched.
int record(gf_gpu *, gf_gpu_event *e, gf_gpu_stream *s, gf_error *)
{
	enqueue(s, operation{nullptr, e});
	return 0;
}

int query(gf_gpu *, gf_gpu_event *e, gf_error *)
{
	return e->waiting == 0;
}

int event_sync(gf_gpu *, gf_gpu_event *e, gf_error *)
{
	no_capture("the host waits in a capture");
	counts.waits++;
	while (e->waiting > 0)
		run_one(e->stream);
	return 0;
}

int copy(gf_gpu *, gf_gpu_stream *s, void *to, const void *from, size_t bytes,
	 gf_gpu_copy kind, gf_error *)
{
	if ((kind != GF_GPU_TO_HOST && !host_gpu_has(to, bytes)) ||
	    (kind != GF_GPU_TO_DEVICE && !host_gpu_has(from, bytes)))
		host_gpu_refuse("a copy outside the device's memory");
	host_gpu_enqueue(s, [=] { memmove(to, from, bytes); });
	return 0;
}

int zero(gf_gpu *, gf_gpu_stream *s, void *p, size_t bytes, gf_error *)
{
	if (!host_gpu_has(p, bytes))
		host_gpu_refuse("zeros outside the device's memory");
	host_gpu_enqueue(s, [=] { memset(p, 0, bytes); });
	return 0;
}

int capture_begin(gf_gpu *, gf_gpu_stream *s, gf_error *)
{
	s->capture = new gf_gpu_graph();
	return 0;
}

int capture_end(gf_gpu *, gf_gpu_stream *s, gf_gpu_graph **graph, gf_error *)
{
	*graph = s->capture;
	s->capture = NULL;
	return 0;
}

int graph_launch(gf_gpu *, gf_gpu_stream *s, gf_gpu_graph *graph, gf_error *)
{
	for (const operation &o : graph->operations)
		enqueue(s, o);
	return 0;
}

void graph_free(gf_gpu *, gf_gpu_graph *graph)
{
	delete graph;
}

int check(gf_gpu *, gf_error *)
{
	return 0;
}

gf_gpu_ops make_ops()
{
	gf_gpu_ops o = {};

	o.name = "host";
	o.alloc = gpu_alloc;
	o.free = gpu_free;
	o.host_alloc = gpu_host_alloc;
	o.host_free = gpu_host_free;
	o.free_bytes = gpu_free_bytes;
	o.stream_new = stream_new;
	o.stream_free = stream_free;
	o.stream_sync = stream_sync;
	o.event_new = event_new;
	o.event_free = event_free;
	o.record = record;
	o.query = query;
	o.event_sync = event_sync;
	o.copy = copy;
	o.zero = zero;
	o.capture_begin = capture_begin;
	o.capture_end = capture_end;
	o.graph_launch = graph_launch;
	o.graph_free = graph_free;
	o.check = check;
	return o;
}

const gf_gpu_ops ops = make_ops();

} // namespace

void host_gpu_enqueue(gf_gpu_stream *s, std::function<void()> call)
{
	enqueue(s, operation{call, nullptr});
}

struct gf_gpu *host_gpu(void)
{
	gpu.ops = &ops;
	gpu.kernels = &gf_gpu_kernels_cuda;
	emulate_later = host_gpu_enqueue;
	return &gpu;
}

struct gf_gpu_stream *host_gpu_stream(void)
{
	return &main_stream;
}

struct host_gpu_counts host_gpu_counts(void)
{
	return counts;
}

void host_gpu_set_free(size_t bytes)
{
	free_now = bytes;
}

bool host_gpu_has(const void *p, size_t bytes)
{
	auto after = memory.upper_bound((char *)p);

	if (after == memory.begin())
		return false;
	--after;
	return (const char *)p + bytes <= after->first + after->second;
}

void host_gpu_refuse(const char *what)
{
	printf("host GPU: %s\n", what);
	abort();
}
