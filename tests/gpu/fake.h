/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_FAKE_H
#define GF_TESTS_GPU_FAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/lanes/nccl.h"
#include "cuda/gpu.h"

/*
 * GPUs and NCCL in one process, for tests of the runtime. Enqueued work is kept in queues, one per
 * stream. A thread of its own plays all devices: it picks a stream of some rank at random and does
 * the first piece of work there, if it may. So work happens in any order that streams and events
 * allow, and a missing event goes wrong sooner or later.
 *
 * A stream that is captured keeps what it is given in a graph, whose launch enqueues copies of it;
 * meanwhile its device may not allocate or wait.
 *
 * NCCL's operations begin when they are first in their streams, at most `slots` at once on a GPU,
 * and end when those of all members have begun: enqueued in another order on one rank than on the
 * others, they never end. Calls of one communicator must agree in kind and size. Like a
 * non-blocking communicator it may be busy for a while after each, and is not to be called then;
 * the result of a split is handed out when the parent is ready again, or given up.
 */
struct fake_world;

struct fake_faults {
	int hangs;    /* 1 + the rank whose NCCL begins nothing any more */
	int fails;    /* 1 + the rank whose NCCL calls fail */
	int breaks;   /* 1 + the rank whose communicators report an error */
	size_t after; /* NCCL calls of that rank before it does */
	int absent;   /* 1 + the rank that does not come when others meet */
	bool one_gpu; /* all ranks say that they use the same */
	bool no_graphs;
	bool no_pins; /* memory that the host has cannot be pinned */
};

/*
 * What operations take on a clock of the world's own. With it events tell that clock: each stream's
 * moves on by what is done there, and a stream that waits for an event is not earlier. So costs are
 * known, and can be looked for.
 */
struct fake_cost {
	double start_s, per_byte_s;
};
#define FAKE_NO_CALL -1.0 /* the call fails, as NCCL says a little later */
#define FAKE_NO_COMM -2.0 /* no communicator comes into being */
struct fake_costs {
	struct fake_cost to_device, to_host, within, nccl;
	/* Of NCCL's all-reduce by what its communicator was told, instead of `nccl`, or one of the
	 * two below; NULL: what it is told is ignored. algorithm and protocol NULL and channels 0:
	 * told nothing. */
	double (*told_s)(const struct gf_nccl_tuning *told, size_t bytes);
	double kernel_s; /* of the test's own */
	/* That the host needs to enqueue anything; no work begins earlier. */
	double enqueue_s;
	/* How many times as long they take when NCCL's operations were enqueued since the host last
	 * waited for a stream; 0: once. */
	double beside_nccl;
};
void fake_world_costs(struct fake_world *w, const struct fake_costs *costs);

struct fake_world *fake_world_new(int ranks, int slots, unsigned seed,
				  const struct fake_faults *faults);
/* Returns a complaint about what was asked of it, or about communicators and pinned memory that are
 * left, or NULL; borrowed. */
const char *fake_world_complaint(struct fake_world *w);

struct fake_counts {
	size_t comms;   /* communicators that exist */
	size_t waiting; /* operations that have not ended */
	size_t pinned;  /* ranges of host memory */
	size_t syncs;   /* times that a whole stream was waited for */
	/* Transfers of 128 bytes and more that began elsewhere than at a multiple of as many: NCCL
	 * moves them slowly. */
	size_t misaligned;
	size_t launches;        /* of graphs */
	uint64_t to_host_bytes; /* copied by the devices */
	uint64_t alloc_bytes;   /* of devices, and pinned for them */
};
struct fake_counts fake_world_counts(struct fake_world *w);
void fake_world_free(struct fake_world *w);

struct gf_gpu *fake_gpu(struct fake_world *w, int rank);
const struct gf_nccl_ops *fake_nccl(void);
/* This thread's NCCL calls are those of that rank. */
void fake_be(struct fake_world *w, int rank);
/* A kernel of the test's, which runs once: no graph may hold it. */
void fake_enqueue(struct gf_gpu_stream *s, void (*run)(void *ctx), void *ctx);
/* One that may run again, on a copy of what lies at ctx. */
void fake_enqueue_copy(struct gf_gpu_stream *s, void (*run)(void *ctx), const void *ctx,
		       size_t size_bytes);
/* The stream stands still there while *held. */
void fake_hold(struct gf_gpu_stream *s, const atomic_bool *held);

#endif
