/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TESTS_GPU_FAKE_PARTS_H
#define GF_TESTS_GPU_FAKE_PARTS_H

#include <pthread.h>
#include <stdint.h>

#include "base/rng.h"
#include "fake.h"

/* What the fake's files share: fake.c has the queues and plays them, fake_gpu.c is the device's
 * table, fake_kernels.c its kernels, fake_nccl.c is NCCL. Everything is under the world's lock. */
#define RANKS_MAX   16
#define STREAMS_MAX 512
#define COMMS_MAX   512
#define ITEMS_MAX   64

enum kind { CALL, RECORD, WAIT, HOLD, NCCL };
enum what { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, SEND, RECV };

struct fake_item {
	enum what what;
	struct gf_nccl_comm *comm;
	void *data;
	size_t count; /* elements, of a part where there are parts; or bytes */
	int peer;
	uint64_t index; /* among those of the communicator, or to the peer */
	bool captured;  /* a graph's */
	bool ended;
};

struct fake_operation {
	enum kind kind;
	void (*call)(struct fake_operation *op);
	void (*run)(void *ctx);
	const atomic_bool *held;
	void *a;
	const void *b;
	size_t n, m;
	size_t own_bytes; /* of a, which is the operation's own; else 0 */
	double takes_s;   /* on the world's clock */
	double from_s;    /* no earlier, since it was enqueued then */
	struct gf_gpu_hold *hold;
	struct gf_gpu_event *event;
	uint64_t count;
	struct fake_item items[ITEMS_MAX];
	size_t nitems;
	bool begun;
	struct fake_operation *next;
};

struct gf_gpu_graph {
	struct fake_operation *first, **last;
};

struct gf_gpu_stream {
	struct fake_world *world;
	int rank;
	bool used;
	struct gf_gpu_graph *capture; /* what it is given goes there */
	double at_s;                  /* the world's clock */
	struct fake_operation *first, **last;
};

struct gf_gpu_hold {
	struct fake_device *device;
	atomic_bool held;
	double released_s;
};

struct gf_gpu_event {
	struct fake_world *world;
	uint64_t recorded, happened;
	double at_s;
};

/* All that call comm_new with one id, or comm_split for the n-th time on one parent. */
struct meeting {
	uint64_t id;
	int ranks, come;
	int color[RANKS_MAX], key[RANKS_MAX];
	struct gf_nccl_comm *member[RANKS_MAX];
};

struct gf_nccl_comm {
	struct fake_world *world;
	struct meeting *meeting;
	int rank, place, color, ranks; /* of the world; of the meeting */
	int me;                        /* rank in the communicator */
	struct gf_nccl_comm *peers[RANKS_MAX];
	uint64_t splits, calls, sent[RANKS_MAX], received[RANKS_MAX];
	bool ready, aborted, exists;
	struct gf_nccl_tuning told; /* of `words` */
	char words[2][32];
	const char *failure; /* that its state will tell */
	size_t graphs;       /* operations of it that graphs hold */
	/* what a split makes, and where it is put when it is ready */
	struct gf_nccl_comm *child, **child_at;
	uint64_t busy; /* looks at its state until it is ready again */
};

struct fake_memory {
	char *at;
	size_t size_bytes;
	bool freed;
};

struct fake_device {
	struct gf_gpu gpu;
	struct fake_world *world;
	int begun;
	size_t calls, waited; /* of NCCL; at the host's last wait */
	double seen_s;        /* the world's clock, as its host has seen it */
	size_t holds;         /* that are not released */
	bool capturing;
};

struct fake_world {
	pthread_mutex_t lock;
	pthread_t thread;
	bool quit;
	int ranks, slots;
	struct gf_rng rng;
	struct fake_faults faults;
	struct fake_device devices[RANKS_MAX];
	struct gf_gpu_stream streams[STREAMS_MAX];
	struct meeting *meetings[COMMS_MAX];
	struct gf_nccl_comm *comms[COMMS_MAX];
	size_t nstreams, nmeetings, ncomms;
	/* Given out; a queue may still name it when it is freed. */
	struct fake_memory *memory;
	size_t nmemory, memory_capacity;
	uint64_t ids;
	struct fake_counts counts;      /* but for comms and waiting */
	struct gf_gpu_ops plain;        /* of devices that capture nothing */
	const struct fake_costs *costs; /* NULL: the real clock */
	char complaint[256];
};

void fake_complain(struct fake_world *w, const char *what);
/* Zeroed, aligned as CUDA's; lives as long as the world. */
void *fake_remember(struct fake_world *w, size_t size_bytes);
/* The device becomes this thread's, as it does in most calls of lib/cuda. */
struct fake_device *fake_use(struct gf_gpu *g);
/* Is it this thread's? Kernels and new communicators are for that one. */
bool fake_uses(const struct fake_device *d);

/* Complains if the device is in a capture, where this may not be done. */
void fake_not_captured(struct fake_device *d, const char *what);
/* The host has seen that it is so late: what it enqueues is not earlier. */
void fake_seen(struct fake_device *d, double at_s);
void fake_push(struct gf_gpu_stream *s, struct fake_operation *op);
/* The host does so, which takes it a moment. */
void fake_host_enqueues(const struct gf_gpu_stream *s);
/* Complains: what it waits for may never come. */
void fake_host_waits(struct fake_device *d);
/* A new one at the end of the stream. */
struct fake_operation *fake_op(struct gf_gpu_stream *s, enum kind kind);
/* The first is done. */
void fake_pop(struct gf_gpu_stream *s);
/* Takes the lock itself. */
void fake_call(struct gf_gpu_stream *s, void (*call)(struct fake_operation *op), void *a,
	       const void *b, size_t n, size_t m);
/* Under lock: an operation of a graph becomes one that a launch enqueues. */
void fake_number(struct fake_operation *op);
/* True: it has moved. */
bool fake_play_nccl(struct gf_gpu_stream *s, struct fake_operation *op);

/* fake_graph.c */
int fake_capture_begin(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_error *err);
int fake_capture_end(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph **graph,
		     struct gf_error *err);
int fake_graph_launch(struct gf_gpu *g, struct gf_gpu_stream *s, struct gf_gpu_graph *graph,
		      struct gf_error *err);
void fake_graph_free(struct gf_gpu *g, struct gf_gpu_graph *graph);

/* fake_chunks.c */
void fake_chunk_norms_f32(struct gf_gpu_stream *s, float *y, const float *x, size_t n,
			  size_t chunk_elems, double *norms);
void fake_gather_chunks_f32(struct gf_gpu_stream *s, float *to, const float *from, size_t n,
			    size_t chunk_elems, const uint32_t *chunks, size_t nchunks);
void fake_keep_chunks_f32(struct gf_gpu_stream *s, const uint32_t *skip, float *residual,
			  const float *grad, size_t n, size_t chunk_elems, const uint8_t *sent,
			  float decay);
void fake_share_norms(struct gf_gpu_stream *s, const struct gf_gpu_norms *o);

extern const struct gf_gpu_ops fake_gpu_ops;
extern const struct gf_gpu_kernels fake_gpu_kernels;

#endif
