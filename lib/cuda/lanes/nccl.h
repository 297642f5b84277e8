/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_LANES_NCCL_H
#define GF_LANES_NCCL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "gf_gpu_kernels.h"

/*
 * A table of the NCCL calls that the runtime makes. NCCL's library is loaded when the table is
 * first asked for (gf_nccl_load). Tests put another table in its place.
 *
 * Communicators are non-blocking: a call that takes longer returns at once, and `state` tells when
 * the communicator can be used again. The caller waits for that after each call, and aborts when it
 * has waited too long. Operations are sums of f32 and transfers of bytes, enqueued on a stream;
 * between group_begin and group_end they go together. Means are the caller's to make: a schedule
 * by step could not do what ncclAvg does.
 *
 * No memory is registered with NCCL (ncclCommRegister): then all that its functions are given, on
 * every rank, would have to be, and a transfer may go from the messages' memory to another rank's
 * wire.
 */
struct gf_nccl_comm; /* opaque */

#define GF_NCCL_ID_BYTES 128

/* What communicators are told about their all-reduces. */
struct gf_nccl_tuning {
	/* In the words of NCCL's tuners, as nvls_tree; both NULL: nothing, so that the
	 * environment's own hold. */
	const char *algorithm, *protocol;
	int channels; /* 0: as many as NCCL takes */
	/* The table's own: the environment has them, and what it had before. */
	bool holds;
	char *was[2];
};

/* A kernel's, on the device; 0: NCCL's own choice. */
struct gf_nccl_blocks {
	int least, most;
};

struct gf_nccl_ops {
	const char *name; /* nccl */
	int version;      /* 22809 for 2.28.9 */
	int (*unique_id)(unsigned char id[GF_NCCL_ID_BYTES], struct gf_error *err);
	/* Communicators that are made from now on are told that, until gf_nccl_ops.untell: when
	 * `state` of them is no longer 0. One at a time. -EINVAL: the environment has settings that
	 * NCCL puts first. */
	int (*tell)(struct gf_nccl_tuning *told, struct gf_error *err);
	void (*untell)(struct gf_nccl_tuning *told);
	/* The caller's device is in use (lib/cuda). blocks: so many that those of all lanes are
	 * there at once. NCCL writes to *c until `state` of it is no longer 0. */
	int (*comm_new)(const unsigned char id[GF_NCCL_ID_BYTES], int ranks, int rank,
			struct gf_nccl_blocks blocks, struct gf_nccl_comm **c,
			struct gf_error *err);
	/* All ranks of `parent` call; those of one color get together, in the order of key. *c is
	 * NULL until the parent is ready again, or has been aborted, and is NCCL's to write to
	 * until then. */
	int (*comm_split)(struct gf_nccl_comm *parent, int color, int key, struct gf_nccl_comm **c,
			  struct gf_error *err);
	/* 1 ready, 0 still at it, or a negative errno: it has failed */
	int (*state)(struct gf_nccl_comm *c, struct gf_error *err);
	/* Ends what is under way on all streams, and the communicators, as one call for all of a
	 * device: aborted one by one, the first could wait for work of another. NULLs are allowed
	 * among them. */
	void (*abort)(struct gf_nccl_comm *const *comms, size_t n);
	/* When nothing is under way. NULL is allowed. */
	void (*destroy)(struct gf_nccl_comm *c);

	int (*group_begin)(struct gf_error *err);
	int (*group_end)(struct gf_error *err);
	int (*all_reduce)(struct gf_nccl_comm *c, struct gf_gpu_stream *s, float *data,
			  size_t count_elems, struct gf_error *err);
	/* In place: of ranks * part_elems from `data`, rank r's part. */
	int (*reduce_scatter)(struct gf_nccl_comm *c, struct gf_gpu_stream *s, float *data,
			      size_t part_elems, int rank, struct gf_error *err);
	int (*all_gather)(struct gf_nccl_comm *c, struct gf_gpu_stream *s, float *data,
			  size_t part_elems, int rank, struct gf_error *err);
	int (*send)(struct gf_nccl_comm *c, struct gf_gpu_stream *s, const void *data,
		    size_t size_bytes, int peer, struct gf_error *err);
	int (*recv)(struct gf_nccl_comm *c, struct gf_gpu_stream *s, void *data, size_t size_bytes,
		    int peer, struct gf_error *err);
};

/* -ENOTSUP: this build or this machine has none. The table is constant and stays. */
int gf_nccl_load(const struct gf_nccl_ops **ops, struct gf_error *err);

/* NCCL's `tell` and `untell`. NCCL looks at NCCL_ALGO and NCCL_PROTO whenever it makes a
 * communicator, perhaps on a thread of its own: until that is ready, no other thread of the program
 * may change the environment. */
int gf_nccl_tell(struct gf_nccl_tuning *told, struct gf_error *err);
void gf_nccl_untell(struct gf_nccl_tuning *told);
/* A line about NCCL_ALGO and NCCL_PROTO, if the environment has them. */
void gf_nccl_remark(struct gf_text *out);

/* What registry.c asks, where there is NCCL. */
int gf_nccl_open_library(const struct gf_nccl_ops **ops, struct gf_error *err);

#endif
