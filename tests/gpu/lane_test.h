/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_LANE_TEST_H
#define GF_TESTS_GPU_LANE_TEST_H

#include <errno.h>

#include "../unit/test.h"
#include "base/array.h"
#include "base/heap.h"
#include "collectives/codecs/codec.h"
#include "collectives/codecs/encode.h"
#include "collectives/algorithm.h"
#include "transport/comm.h"
#include "cuda/lanes/lane.h"
#include "runtime/exec/exec.h"

/*
 * Messages between GPUs by programs, against the host's executor on the same schedules:
 * tests/unit/test_device_lane.c on fakes, any number of ranks; test_gpu_nccl.c on what GPUs there
 * are, by NCCL. Each rank calls, on a thread of its own.
 */
struct lane_test {
	struct gf_comm *comm; /* between the hosts' threads */
	struct gf_lane lane;
	void *data; /* on the device */
	struct gf_error err;
};

#define LANE_TEST_MOST 9000
static const struct {
	size_t count_elems, skew_elems;
} lane_test_sizes[] = {{1, 0},    {5, 0},     {1000, 0}, {LANE_TEST_MOST, 0}, {5, 31}, {40, 10},
		       {1000, 1}, {2000, 31}, {8900, 4}};
/* The longest, skew and all: whole grains. */
#define LANE_TEST_ROOM 9088
static const char *const lane_test_codecs[] = {"f32", "f16", "bf16", "trunc16", "q8"};

/* Gives up the rank: the others would wait for ever. */
static inline void lane_test_must(struct lane_test *t, int rc, const char *what)
{
	if (!rc)
		return;
	printf("rank %d: %s: %s\n", t->comm->rank, what, t->err.text);
	exit(1);
}

static inline void lane_test_open(struct lane_test *t, struct gf_comm *comm, struct gf_gpu *gpu,
				  const struct gf_nccl_ops *nccl)
{
	unsigned char id[GF_NCCL_ID_BYTES] = {0};

	*t = (struct lane_test){.comm = comm};
	t->lane = (struct gf_lane){.gpu = gpu, .nccl = nccl, .timeout_s = TEST_PATIENCE_S};
	if (comm->rank == 0)
		lane_test_must(t, nccl->unique_id(id, &t->err), "an id");
	lane_test_must(t, gf_comm_bcast(comm, 0, id, sizeof(id), &t->err), "its way");
	lane_test_must(t,
		       gf_lane_open(&t->lane, id, comm->ranks, comm->rank,
				    (struct gf_nccl_blocks){0, 8}, &t->err),
		       "a lane");
	lane_test_must(t, gf_lane_meet(&t->lane, &t->err), "meet");
	lane_test_must(t,
		       gpu->ops->alloc(gpu, 2 * LANE_TEST_ROOM * sizeof(float), &t->data, &t->err),
		       "memory");
}

static inline void lane_test_close(struct lane_test *t)
{
	struct gf_gpu *gpu = t->lane.gpu;

	gf_lane_close(&t->lane);
	gpu->ops->free(gpu, t->data);
}

/* Small integers: their sums are exact, in whatever order. */
static inline float lane_test_value(int rank, size_t i)
{
	return (float)((i * 7 + (size_t)rank * 13) % 61) - 30;
}

/* What p, which is prepared, makes of `values` at some place on the device. */
static inline void lane_test_once(struct lane_test *t, const struct gf_lane_program *p, float *data,
				  float *values)
{
	struct gf_lane *l = &t->lane;
	const struct gf_gpu_ops *ops = l->gpu->ops;
	const size_t bytes = p->count_elems * sizeof(float);
	struct gf_error *err = &t->err;

	lane_test_must(t, ops->copy(l->gpu, l->stream, data, values, bytes, GF_GPU_TO_DEVICE, err),
		       "up");
	lane_test_must(t, gf_lane_run(l, p, data, err), "run");
	lane_test_must(t, ops->copy(l->gpu, l->stream, values, data, bytes, GF_GPU_TO_HOST, err),
		       "down");
	lane_test_must(t, ops->stream_sync(l->gpu, l->stream, err), "end");
	lane_test_must(t, gf_lane_check(l, err), "check");
}

static inline void lane_test_prepare(struct lane_test *t, const struct gf_lane_program *p)
{
	lane_test_must(t, gf_lane_prepare(&t->lane, p, &t->err), "prepare");
	lane_test_must(t, gf_lane_reserve(&t->lane, &t->err), "reserve");
}

/* What p makes of `values`, skewed as p is: enqueued, captured and launched again, and elsewhere,
 * to the same bits. */
static inline void lane_test_run(struct lane_test *t, const struct gf_lane_program *p,
				 float *values)
{
	const size_t n = p->count_elems;
	float *data = (float *)t->data + p->skew_elems;
	float *more = gf_xcalloc(n + 1, sizeof(*more));
	size_t i;

	lane_test_prepare(t, p);
	for (i = t->lane.captures ? 4 : 0; i > 0; i--) {
		memcpy(more, values, n * sizeof(*more));
		lane_test_once(t, p, data + i / 4 * LANE_TEST_ROOM, more);
	}
	lane_test_once(t, p, data, values);
	for (i = 0; i < n && t->lane.captures; i++)
		if (memcmp(&more[i], &values[i], sizeof(*more)))
			break;
	EXPECT(!t->lane.captures || i == n, "element %zu is %g again, not %g", i, (double)values[i],
	       (double)more[i]);
	gf_lane_forget(&t->lane, p);
	free(more);
}

/* What the host makes of them, by the same steps. */
static inline void lane_test_host(struct lane_test *t, const struct gf_algorithm *a,
				  struct gf_coll_args *args, const char *codec, float *values)
{
	struct gf_exec *exec = gf_exec_new(t->comm);
	struct gf_exec_config config = {.count_elems = args->count_elems};
	struct gf_exec_run *run = NULL;
	struct gf_schedule s;

	lane_test_must(t, gf_element_coded(codec, GF_OP_SUM, &config.element, &t->err), "element");
	args->lossy = gf_element_lossy(&config.element);
	args->grain_elems = args->lossy ? 0 : GF_LANE_GRAIN_ELEMS;
	lane_test_must(t, gf_algorithm_schedule(a, args, t->comm->rank, &s, &t->err), "schedule");
	config.schedule = &s;
	lane_test_must(t, gf_exec_run_new(exec, &config, &run, &t->err), "run");
	lane_test_must(t, gf_exec_start(run, values, &t->err), "start");
	lane_test_must(t, gf_exec_wait(exec, run, 60, &t->err), "wait");
	gf_exec_run_free(run);
	gf_exec_free(exec);
	gf_schedule_release(&s);
}

static inline size_t lane_test_differs(const float *a, const float *b, size_t n)
{
	size_t i = 0;

	while (i < n && memcmp(&a[i], &b[i], sizeof(*a)) == 0)
		i++;
	return i;
}

/* By the host where there are steps; else they are exact anyway. */
static inline void lane_test_one(struct lane_test *t, const struct gf_algorithm *a,
				 struct gf_coll_args *args, const char *codec)
{
	const size_t n = args->count_elems;
	float *got = gf_xcalloc(n + 1, sizeof(*got));
	float *want = gf_xcalloc(n + 1, sizeof(*want));
	struct gf_lane_program p;
	size_t i, at;
	int r;

	for (i = 0; i < n; i++)
		got[i] = want[i] = lane_test_value(t->comm->rank, i);
	lane_test_must(
		t, gf_lane_program_new(a, args, t->comm->rank, gf_codec_find(codec), &p, &t->err),
		a->name);
	lane_test_run(t, &p, got);
	if (a->build)
		lane_test_host(t, a, args, codec, want);
	else
		for (i = 0; i < n; i++)
			for (r = 0, want[i] = 0; r < t->comm->ranks; r++)
				want[i] += lane_test_value(r, i);
	at = lane_test_differs(want, got, n);
	EXPECT(at == n,
	       "%s, %s, rank %d of %d, %zu elements at %zu, %zu factors: element %zu is %g, the "
	       "host's %g",
	       a->name, codec, t->comm->rank, t->comm->ranks, n, args->skew_elems, args->nfactors,
	       at, (double)got[at], (double)want[at]);
	gf_lane_program_release(&p);
	free(got);
	free(want);
}

static inline void lane_test_algorithms(struct lane_test *t)
{
	struct gf_coll_args args = {.ranks = t->comm->ranks, .elem_bytes = 4};
	size_t a, c, n;

	for (a = 0; gf_algorithms[a]; a++)
		for (c = 0; c < GF_ARRAY_LENGTH(lane_test_codecs); c++)
			for (n = 0; n < GF_ARRAY_LENGTH(lane_test_sizes); n++) {
				const struct gf_algorithm *it = gf_algorithms[a];

				args.count_elems = lane_test_sizes[n].count_elems;
				args.skew_elems = lane_test_sizes[n].skew_elems;
				args.grain_elems = 0;
				args.lossy = false;
				if (!test_tries(a + c + n, 2) || (c && !it->build) ||
				    (it->applicable && it->applicable(&args, NULL)))
					continue;
				lane_test_one(t, it, &args, lane_test_codecs[c]);
			}
}

/* Level by level: stages on communicators of their own, or steps under a codec. */
static inline void lane_test_stages(struct lane_test *t)
{
	const int ranks = t->comm->ranks;
	int factors[2] = {1, ranks};
	struct gf_coll_args args = {
		.ranks = ranks, .elem_bytes = 4, .factors = factors, .nfactors = 2};
	size_t c, n;

	for (factors[0] = 1; factors[0] <= ranks; factors[0]++) {
		if (ranks % factors[0])
			continue;
		factors[1] = ranks / factors[0];
		for (n = 0; n < GF_ARRAY_LENGTH(lane_test_sizes); n++)
			for (c = 0; c < GF_ARRAY_LENGTH(lane_test_codecs); c++) {
				args.count_elems = lane_test_sizes[n].count_elems;
				args.skew_elems = lane_test_sizes[n].skew_elems;
				args.grain_elems = 0;
				args.lossy = false;
				lane_test_one(t, gf_algorithm_find("blueconnect"), &args,
					      lane_test_codecs[c]);
			}
	}
}

/* A rank that sends to itself: kernels, places on the wire and NCCL's transfers where there is one
 * GPU. It ends with x + decode(encode(x)). */
static inline void lane_test_itself(struct lane_test *t, const char *name)
{
	const struct gf_codec *c = strcmp(name, "f32") ? gf_codec_find(name) : NULL;
	const size_t n = LANE_TEST_MOST;
	const struct gf_range all = gf_data(0, n);
	const size_t second = (n * sizeof(float) + 255) / 256 * 256;
	const int me = t->comm->rank;
	struct gf_lane_step steps[] = {
		{GF_LANE_ENCODE, .range = all},
		{GF_LANE_GROUP},
		{GF_LANE_SEND, c != NULL, me, .range = all},
		{GF_LANE_RECV, true, me, .range = all, .wire_at = second},
		{GF_LANE_GROUP_END},
		{GF_LANE_REDUCE_WIRE, .range = all, .wire_at = second},
	};
	const size_t first = c ? 0 : 1;
	const struct gf_lane_program p = {
		.rank = me,
		.ranks = t->comm->ranks,
		.count_elems = n,
		.wire_bytes = 2 * second,
		.codec = c,
		.steps = steps + first,
		.nsteps = GF_ARRAY_LENGTH(steps) - first,
	};
	float *got = gf_xcalloc(n, sizeof(*got));
	float *want = gf_xcalloc(n, sizeof(*want));
	float *x = gf_xcalloc(n, sizeof(*x));
	size_t i, at;

	for (i = 0; i < n; i++)
		got[i] = want[i] = x[i] = lane_test_value(me, i) / 7;
	if (c)
		gf_codec_round(c, x, n);
	for (i = 0; i < n; i++)
		want[i] += x[i];
	lane_test_run(t, &p, got);
	at = lane_test_differs(want, got, n);
	EXPECT(at == n, "%s to itself, rank %d: element %zu is %g, want %g", name, me, at,
	       (double)got[at], (double)want[at]);
	free(got);
	free(want);
	free(x);
}

/* NCCL's own, on a team of all ranks: each has its part, then all have all. */
static inline void lane_test_collectives(struct lane_test *t)
{
	const int ranks = t->comm->ranks;
	const size_t n = LANE_TEST_MOST / (size_t)ranks * (size_t)ranks;
	struct gf_group all = {0, 1, ranks, t->comm->rank};
	struct gf_lane_step steps[] = {
		{GF_LANE_REDUCE_SCATTER, .range = gf_data(0, n)},
		{GF_LANE_ALL_GATHER, .range = gf_data(0, n)},
		{GF_LANE_ALL_REDUCE, .range = gf_data(0, n / 2)},
	};
	const struct gf_lane_program p = {.rank = t->comm->rank,
					  .ranks = ranks,
					  .count_elems = n,
					  .steps = steps,
					  .nsteps = GF_ARRAY_LENGTH(steps),
					  .teams = &all,
					  .nteams = 1};
	float *got = gf_xcalloc(n, sizeof(*got));
	float *want = gf_xcalloc(n, sizeof(*want));
	size_t i, at;
	int r;

	for (i = 0; i < n; i++) {
		got[i] = lane_test_value(t->comm->rank, i);
		for (r = 0; r < ranks; r++)
			want[i] += lane_test_value(r, i);
		want[i] *= i < n / 2 ? (float)ranks : 1;
	}
	lane_test_run(t, &p, got);
	at = lane_test_differs(want, got, n);
	EXPECT(at == n, "collectives, rank %d: element %zu is %g, want %g", t->comm->rank, at,
	       (double)got[at], (double)want[at]);
	free(got);
	free(want);
}

/* A program that is captured, and another one then, for which the lane's memory grows and moves:
 * the graph is not launched any more. */
static inline void lane_test_grows(struct lane_test *t)
{
	struct gf_coll_args args = {.ranks = t->comm->ranks, .elem_bytes = 4};
	const struct gf_algorithm *ring = gf_algorithm_find("ring");
	struct gf_lane_program p[2];
	float x[2][LANE_TEST_MOST] = {{0}};
	size_t run, k;

	for (k = 0; k < 2; k++) {
		args.count_elems = k ? LANE_TEST_MOST : 100;
		lane_test_must(
			t, gf_lane_program_new(ring, &args, t->comm->rank, NULL, &p[k], &t->err),
			"ring");
		lane_test_prepare(t, &p[k]);
		for (run = 0; run < 3; run++) {
			x[0][7] = x[1][7] = 1;
			lane_test_once(t, &p[0], t->data, x[0]);
			EXPECT(x[0][7] == (float)t->comm->ranks, "%zu, %zu: sum is %g", k, run,
			       (double)x[0][7]);
			if (k)
				lane_test_once(t, &p[1], t->data, x[1]);
		}
	}
	EXPECT(x[1][7] == (float)t->comm->ranks, "sum is %g", (double)x[1][7]);
	for (k = 0; k < 2; k++) {
		gf_lane_forget(&t->lane, &p[k]);
		gf_lane_program_release(&p[k]);
	}
}

static inline void lane_test_all(struct gf_comm *comm, struct gf_gpu *gpu,
				 const struct gf_nccl_ops *nccl)
{
	struct lane_test t;
	size_t i, c;

	lane_test_open(&t, comm, gpu, nccl);
	for (i = 0; i < 2; i++) {
		t.lane.captures = i;
		lane_test_collectives(&t);
		for (c = 0; c < GF_ARRAY_LENGTH(lane_test_codecs); c++)
			lane_test_itself(&t, lane_test_codecs[c]);
		lane_test_grows(&t);
		lane_test_algorithms(&t);
		lane_test_stages(&t);
	}
	lane_test_close(&t);
}

#endif
