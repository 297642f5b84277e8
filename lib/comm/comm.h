/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_COMM_H
#define GF_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * A transport: tagged point-to-point messages between ranks, and the few
 * collectives that start-up and agreement need.
 *
 * THREADS. A communicator is used by one thread at a time; which one may
 * change (MPI_THREAD_SERIALIZED). While an engine (rt/engine.h) runs, that is
 * its thread.
 *
 * TAGS. 62-bit: (channel << 32 | match); the transport maps them to its own.
 * A receive meets the send with the same (source, tag). Sizes must be equal;
 * a message of another size is an error at the receiver, never a truncation.
 */
struct gf_comm;
struct gf_request; /* opaque; owned by the transport */

struct gf_comm_ops {
	const char *name;
	int (*isend)(struct gf_comm *c, int peer, uint64_t tag,
		     const void *data, size_t size_bytes,
		     struct gf_request **request, struct gf_error *err);
	int (*irecv)(struct gf_comm *c, int peer, uint64_t tag, void *data,
		     size_t size_bytes, struct gf_request **request,
		     struct gf_error *err);
	/* 1 done (the request is freed), 0 not yet, negative errno failed.
	 * Also drives progress. */
	int (*test)(struct gf_comm *c, struct gf_request *request,
		    struct gf_error *err);
	/* Abandons a request that will not be waited for. */
	void (*cancel)(struct gf_comm *c, struct gf_request *request);

	/* Blocking, all ranks. Sizes equal everywhere. */
	int (*barrier)(struct gf_comm *c, struct gf_error *err);
	int (*bcast)(struct gf_comm *c, int root, void *data,
		     size_t size_bytes, struct gf_error *err);
	/* recv holds ranks * size_bytes, in rank order. */
	int (*allgather)(struct gf_comm *c, const void *send,
			 size_t size_bytes, void *recv, struct gf_error *err);
	/* The library's own sum, in place, non-blocking (MPI_Iallreduce).
	 * (optional: then `library` is not available) */
	int (*iallreduce_f32)(struct gf_comm *c, float *data,
			      size_t count_elems, struct gf_request **request,
			      struct gf_error *err);
	/* Ends the whole job with that status; does not return. */
	void (*abort)(struct gf_comm *c, int status);
	/* Page-aligned memory the transport likes; -ENOMEM. */
	int (*buffer_alloc)(struct gf_comm *c, size_t size_bytes, void **data,
			    struct gf_error *err);
	void (*buffer_free)(struct gf_comm *c, void *data);
	void (*close)(struct gf_comm *c);
};

struct gf_comm {
	const struct gf_comm_ops *ops;
	int rank, ranks;
	int local_rank, local_ranks; /* on this host */
	void *priv;
};

/* Thin wrappers: gf_comm_barrier(c, err) and so on, see comm.c. */
int gf_comm_barrier(struct gf_comm *c, struct gf_error *err);
int gf_comm_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes,
		  struct gf_error *err);
int gf_comm_allgather(struct gf_comm *c, const void *send, size_t size_bytes,
		      void *recv, struct gf_error *err);
/* A text of any length from root to all; *text is allocated on the others. */
int gf_comm_bcast_text(struct gf_comm *c, int root, char **text,
		       size_t *length, struct gf_error *err);
/* Variable-size gather: on root *all is one allocation, lengths per rank. */
int gf_comm_gather_text(struct gf_comm *c, int root, const char *text,
			size_t length, char **all, size_t *lengths,
			struct gf_error *err);
/* Agreement before acting: 0 if rc is 0 everywhere; else every rank returns
 * the failing rank's rc and its text, prefixed "rank N". */
int gf_comm_agree(struct gf_comm *c, int rc, struct gf_error *err);
void gf_comm_close(struct gf_comm *c);

/* Threads of one process as ranks; fills comms[0..ranks-1]. For tests. */
int gf_comm_local_new(int ranks, struct gf_comm **comms, struct gf_error *err);
/* MPI_COMM_WORLD; initialises MPI. Singleton start (no mpirun) is one rank. */
int gf_comm_mpi_open(struct gf_comm **comm, struct gf_error *err);

#endif
