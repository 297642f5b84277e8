/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a message costs the host, enqueued operation by operation and as a
 *graph, and how fast it goes from the begin of a line of memory and from
 *elsewhere: a rank that sends to itself, on one GPU, by the lanes of training.
 *	lane_cost
 * Ends with 77 where there is no GPU or no NCCL. Memory: 130 MiB of the GPU's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "cuda/lanes/lane.h"

#define MOST_ELEMS  ((size_t)16 << 20)
#define MOST_GROUPS 14
#define RUNS        40

static struct gf_lane lane;
static struct gf_error err;
static float *data;
static struct gf_gpu_event *begun, *ended;

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	printf("%s: %s\n", what, err.text);
	exit(1);
}

static void open_lane(void)
{
	unsigned char id[GF_NCCL_ID_BYTES];
	void *memory;

	must(lane.nccl->unique_id(id, &err), "an id");
	must(gf_lane_open(&lane, id, 1, 0, (struct gf_nccl_blocks){0, 32}, &err), "a lane");
	must(gf_lane_meet(&lane, &err), "its ranks");
	must(lane.gpu->ops->alloc(lane.gpu, (MOST_ELEMS + GF_LANE_GRAIN_ELEMS) * sizeof(float),
				  &memory, &err),
	     "memory");
	data = memory;
	must(lane.gpu->ops->event_new(lane.gpu, true, &begun, &err), "event");
	must(lane.gpu->ops->event_new(lane.gpu, true, &ended, &err), "event");
}

static void add(struct gf_lane_program *p, struct gf_lane_step step)
{
	p->steps[p->nsteps++] = step;
}

/* A range goes to the wire, beside what is sent with it. */
static void add_transfer(struct gf_lane_program *p, struct gf_range range)
{
	add(p, (struct gf_lane_step){GF_LANE_SEND, .range = range});
	add(p, (struct gf_lane_step){GF_LANE_RECV, true, .range = range,
				     .wire_at = (p->skew_elems + range.first) * sizeof(float)});
}

/* So many groups; a head apart is what a skewed message's programs have. */
static struct gf_lane_program make(struct gf_lane_step *steps, int groups, size_t elems,
				   size_t skew_elems, bool head_apart)
{
	const size_t head = head_apart ? GF_LANE_GRAIN_ELEMS - skew_elems : 0;
	struct gf_lane_program p = {
		.ranks = 1,
		.contributors = 1,
		.count_elems = elems,
		.skew_elems = skew_elems,
		.wire_bytes = (elems + GF_LANE_GRAIN_ELEMS) * sizeof(float),
		.steps = steps,
	};

	while (groups-- > 0) {
		add(&p, (struct gf_lane_step){GF_LANE_GROUP});
		if (head)
			add_transfer(&p, gf_data(0, head));
		add_transfer(&p, gf_data(head, elems - head));
		add(&p, (struct gf_lane_step){GF_LANE_GROUP_END});
	}
	return p;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void report(const char *name, const struct gf_lane_program *p, bool graph)
{
	const struct gf_gpu_ops *ops = lane.gpu->ops;
	double host_s[RUNS], device_s[RUNS], from_s;
	int i;

	lane.captures = graph;
	must(gf_lane_prepare(&lane, p, &err), "prepare");
	must(gf_lane_reserve(&lane, &err), "reserve");
	for (i = -3; i < RUNS; i++) {
		must(ops->record(lane.gpu, begun, lane.stream, &err), "begin");
		from_s = gf_clock_s();
		must(gf_lane_run(&lane, p, data + p->skew_elems, &err), "run");
		if (i >= 0)
			host_s[i] = gf_clock_s() - from_s;
		must(ops->record(lane.gpu, ended, lane.stream, &err), "end");
		must(ops->stream_sync(lane.gpu, lane.stream, &err), "wait");
		if (i >= 0)
			must(ops->event_s(lane.gpu, begun, ended, &device_s[i], &err), "time");
	}
	must(gf_lane_check(&lane, &err), "check");
	gf_lane_forget(&lane, p);
	qsort(host_s, RUNS, sizeof(*host_s), compare);
	qsort(device_s, RUNS, sizeof(*device_s), compare);
	printf("| %s | %s | %.1f us | %.1f us | %.1f GB/s |\n", name, graph ? "graph" : "enqueued",
	       host_s[RUNS / 2] * 1e6, device_s[RUNS / 2] * 1e6,
	       (double)p->count_elems * sizeof(float) / device_s[RUNS / 2] / 1e9);
}

int main(void)
{
	static const struct {
		const char *name;
		int groups;
		size_t elems, skew_elems;
		bool head_apart;
	} messages[] = {
		{"1 group of 4 KiB", 1, 1024, 0, false},
		{"14 groups of 4 KiB", 14, 1024, 0, false},
		{"64 MiB from a line on", 1, MOST_ELEMS, 0, false},
		{"64 MiB, 4 bytes further", 1, MOST_ELEMS, 1, false},
		{"64 MiB, 4 bytes further, its head apart", 1, MOST_ELEMS, 1, true},
	};
	struct gf_lane_step steps[6 * MOST_GROUPS];
	struct gf_gpu *gpu = NULL;
	size_t i;

	lane.timeout_s = 60;
	if (gf_nccl_load(&lane.nccl, &err) || gf_gpu_open(0, &gpu, &err)) {
		puts(err.text);
		return 77;
	}
	lane.gpu = gpu;
	open_lane();
	puts("| message to itself | | host | device | "
	     "|\n|---|---|---|---|---|");
	for (i = 0; i < GF_ARRAY_LENGTH(messages); i++) {
		const struct gf_lane_program p =
			make(steps, messages[i].groups, messages[i].elems, messages[i].skew_elems,
			     messages[i].head_apart);

		report(messages[i].name, &p, false);
		report(messages[i].name, &p, true);
	}
	lane.gpu->ops->free(gpu, data);
	lane.gpu->ops->event_free(gpu, begun);
	lane.gpu->ops->event_free(gpu, ended);
	gf_lane_close(&lane);
	gf_gpu_close(gpu);
	return 0;
}
