/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cuda: streams, events and memory of a GPU, for code that needs no more of it. */
#ifndef GF_CUDA_GPU_H
#define GF_CUDA_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "gf_gpu_kernels.h"

/*
 * A device in use, and the few calls that the runtime makes on one. CUDA's runtime library is
 * linked statically and looks for the driver when it is first used: a program with this in it runs
 * on machines that have neither.
 *
 * Streams run what is enqueued on them in order; streams are ordered among each other by events
 * alone (there is no default stream here). Enqueueing never blocks; NCCL's operations do for a
 * moment (cuda/lanes/lane.h).
 *
 * A GRAPH is what a stream was given between capture_begin and capture_end, kept instead of done;
 * graph_launch enqueues all of it at once. Addresses and numbers are those of the capture. During a
 * capture the stream takes kernels, copies, zero, record and wait; the capturing thread must not
 * allocate or wait.
 *
 * THREADS. Any thread may call; a stream is one thread's at a time.
 */
struct gf_gpu_event; /* opaque */
struct gf_gpu_graph; /* opaque */
struct gf_gpu_hold;  /* opaque */

enum gf_gpu_copy { GF_GPU_TO_DEVICE, GF_GPU_TO_HOST, GF_GPU_WITHIN };

struct gf_gpu {
	const struct gf_gpu_ops *ops;
	const struct gf_gpu_kernels *kernels;
	int index;           /* among those visible to this process */
	char name[96];       /* as its maker calls it */
	char pci[16];        /* 0000:17:00.0 */
	int major, minor;    /* compute capability */
	size_t memory_bytes; /* all of it */
};

struct gf_gpu_ops {
	const char *name; /* cuda */
	/* Device memory, uninitialised; -ENOMEM. free takes NULL. */
	int (*alloc)(struct gf_gpu *g, size_t size_bytes, void **p, struct gf_error *err);
	void (*free)(struct gf_gpu *g, void *p);
	/* Host memory that the device copies from and to by itself. */
	int (*host_alloc)(struct gf_gpu *g, size_t size_bytes, void **p, struct gf_error *err);
	void (*host_free)(struct gf_gpu *g, void *p);
	/* Makes memory of the host that already is, such of it, in whole pages. Unpin before it is
	 * freed. */
	int (*host_pin)(struct gf_gpu *g, void *p, size_t size_bytes, struct gf_error *err);
	void (*host_unpin)(struct gf_gpu *g, void *p);
	int (*free_bytes)(struct gf_gpu *g, size_t *bytes, struct gf_error *err);

	/* urgent: its work goes before that of other streams */
	int (*stream_new)(struct gf_gpu *g, bool urgent, struct gf_gpu_stream **s,
			  struct gf_error *err);
	void (*stream_free)(struct gf_gpu *g, struct gf_gpu_stream *s);
	/* Blocks. Not inside a step. */
	int (*stream_sync)(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_error *err);
	/* timed: event_s works with it */
	int (*event_new)(struct gf_gpu *g, bool timed, struct gf_gpu_event **e,
			 struct gf_error *err);
	/* NULL is allowed, as in stream_free */
	void (*event_free)(struct gf_gpu *g, struct gf_gpu_event *e);
	int (*record)(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_gpu_stream *s,
		      struct gf_error *err);
	/* Work enqueued on s from now on waits for the event's latest record; it does not wait if
	 * there was none. */
	int (*wait)(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_event *e,
		    struct gf_error *err);
	/* 1 it has happened, 0 not yet, or a negative errno */
	int (*query)(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_error *err);
	/* Work enqueued on s from now on waits for the release: a clock that starts after it counts
	 * nothing of what the host does before. Ends by itself after a second, as a launch may wait
	 * for room in a queue that is held. Not in a capture. */
	int (*hold)(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_hold **h,
		    struct gf_error *err);
	/* Exactly once; NULL is allowed. */
	void (*release)(struct gf_gpu *g, struct gf_gpu_hold *h);
	/* Blocks until it has happened; at once if never recorded. */
	int (*event_sync)(struct gf_gpu *g, struct gf_gpu_event *e, struct gf_error *err);
	/* From one timed event that has happened to another. */
	int (*event_s)(struct gf_gpu *g, struct gf_gpu_event *from, struct gf_gpu_event *to,
		       double *seconds, struct gf_error *err);
	int (*copy)(struct gf_gpu *g, struct gf_gpu_stream *s, void *to, const void *from,
		    size_t size_bytes, enum gf_gpu_copy kind, struct gf_error *err);
	int (*zero)(struct gf_gpu *g, struct gf_gpu_stream *s, void *p, size_t size_bytes,
		    struct gf_error *err);
	int (*capture_begin)(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_error *err);
	/* The capture ends also if this fails. Events that it recorded are recorded by each launch,
	 * for anybody outside. */
	int (*capture_end)(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph **graph,
			   struct gf_error *err);
	int (*graph_launch)(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph *graph,
			    struct gf_error *err);
	/* NULL is allowed. */
	void (*graph_free)(struct gf_gpu *g, struct gf_gpu_graph *graph);
	/* Has a kernel failed, or could one not be launched? */
	int (*check)(struct gf_gpu *g, struct gf_error *err);
	void (*close)(struct gf_gpu *g);
};

/* How many devices this process sees; 0 also without a driver or without CUDA in this build: then
 * *why (optional) says which. */
int gf_gpu_count(struct gf_error *why);
/* -ENOTSUP: there is no such device, or none at all. */
int gf_gpu_open(int index, struct gf_gpu **gpu, struct gf_error *err);
/* NULL is allowed. */
void gf_gpu_close(struct gf_gpu *gpu);

struct gf_gpu;
struct gf_gpu_stream;
struct gf_nccl_ops;
struct gf_nccl_tuning;

/*
 * Where gradients are made, and how they leave. Zeros: on the host. All pointers are borrowed.
 */
struct gf_place {
	struct gf_gpu *gpu;             /* that makes them; NULL: the host does */
	struct gf_gpu_stream *stream;   /* on which it does */
	const struct gf_nccl_ops *nccl; /* from GPU to GPU; NULL: by the host */
	/* The lanes' communicators are told that; NULL: nothing. */
	struct gf_nccl_tuning *told;
	bool graphs; /* messages become graphs (runtime/engine/engine.h) */
	/* With nccl: the gradients of as many steps as are under way, each `stride` elements after
	 * the one before, and the parameters. */
	float *grads, *params;
	size_t stride;
};

#endif
