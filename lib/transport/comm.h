/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport: moves bytes between ranks, by MPI, UCX or shared memory, and lets ranks find
 * each other. */
#ifndef GF_TRANSPORT_COMM_H
#define GF_TRANSPORT_COMM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "transport/message_element.h"

/*
 * A transport: tagged point-to-point messages between ranks. The few collectives that start-up and
 * agreement need are made of them.
 *
 * THREADS. A communicator is used by one thread at a time; which one may change
 * (MPI_THREAD_SERIALIZED). While an engine (runtime/engine/engine.h) runs, that is its thread, or
 * in its place the thread that waits for messages. Others may look at `broken`.
 *
 * TAGS. 62-bit: (channel << 32 | match); the transport maps them to its own.
 * A receive meets the send with the same (source, tag), in the order in which both were posted.
 * Sizes must be equal; a message of another size is an error at the receiver that names both sizes,
 * never a truncation.
 *
 * WAITING. A function that blocks calls on_wait again and again. If on_wait returns something other
 * than 0, the function gives up and returns that. So a watchdog and the answers to other ranks'
 * questions (transport/watch.h) also work inside a barrier.
 *
 * FAILURE. After a timeout or a transport error some rank may never come back, and no collective
 * call is possible any more: the code that finds out sets `broken`. gf_comm_close then leaves the
 * job as it is; an exit with a status other than 0, or gf_comm_abort, ends the job.
 */
struct gf_comm;
struct gf_join;
struct gf_comm_request; /* opaque; owned by the transport */
struct gf_comm_team;    /* likewise */
struct gf_left;

/* A library's blocking all-reduce of all ranks (MPI_Allreduce), told how to go, or only its first
 * half, which scatters, or its second, which gathers: of equal parts in the order of ranks, each in
 * its place. It neither gives up nor answers other ranks: whoever calls sets a deadline for the
 * process. An average is left as the sum. */
struct gf_comm_told {
	int (*run)(struct gf_comm_told *t, bool scatters, bool gathers, void *data,
		   size_t count_elems, const struct gf_element *element, struct gf_error *err);
	void (*free)(struct gf_comm_told *t);
};

struct gf_comm_ops {
	const char *name;
	int (*isend)(struct gf_comm *c, int peer, uint64_t tag, const void *data, size_t size_bytes,
		     struct gf_comm_request **request, struct gf_error *err);
	int (*irecv)(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		     struct gf_comm_request **request, struct gf_error *err);
	/* Can the transport reduce that peer's data as it arrives, with no buffer between? If so,
	 * irecv_reduce does this: count_elems at data become the reduction of themselves and of the
	 * arriving elements. The element is borrowed until the request ends; a codec in it is not
	 * looked at. (optional, both) */
	bool (*reduces_from)(struct gf_comm *c, int peer);
	int (*irecv_reduce)(struct gf_comm *c, int peer, uint64_t tag, void *data,
			    size_t count_elems, const struct gf_element *element,
			    struct gf_comm_request **request, struct gf_error *err);
	/* A shortcut for a sum that goes back to the rank that sent a part of it: the receiver
	 * writes the sum there as it is made, so that the sum need not travel. isend_lent is isend,
	 * and lets the receiver write to that memory until a message of that size comes back to it.
	 * irecv_reduce_back is irecv_reduce, and also writes the result to the sender's memory if
	 * that was lent. isend_back is the isend of that result to that peer. Each of the three
	 * also meets the plain kind. (optional, all or none) */
	int (*isend_lent)(struct gf_comm *c, int peer, uint64_t tag, const void *data,
			  size_t size_bytes, struct gf_comm_request **request,
			  struct gf_error *err);
	int (*irecv_reduce_back)(struct gf_comm *c, int peer, uint64_t tag, void *data,
				 size_t count_elems, const struct gf_element *element,
				 struct gf_comm_request **request, struct gf_error *err);
	int (*isend_back)(struct gf_comm *c, int peer, uint64_t tag, const void *data,
			  size_t size_bytes, struct gf_comm_request **request,
			  struct gf_error *err);
	/* 1 done (the request is freed), 0 not yet, negative errno failed (the request is freed).
	 * Asked again and again, it drives progress. */
	int (*test)(struct gf_comm *c, struct gf_comm_request *request, struct gf_error *err);
	/* Would test end the request, or move it on? Drives no progress, so that many can be asked
	 * about; false if the answer is not known. (optional: never known) */
	bool (*is_ripe)(const struct gf_comm *c, const struct gf_comm_request *r);
	/* Drives progress once, for all requests for which test returned 0. false: test would
	 * return 0 again. (optional: then ask test) */
	bool (*poll)(struct gf_comm *c);
	/* Sleeps until there may be something for poll, at most that long. Not beside compute that
	 * may want a sleep to be precise. (optional: a sleep of that length) */
	void (*rest)(struct gf_comm *c, double most_s);
	/* Abandons a request that will not be waited for. Its memory may be touched for as long as
	 * the communicator is used. */
	void (*cancel)(struct gf_comm *c, struct gf_comm_request *request);
	/* Of a broken communicator: gives up all messages under way, so that their memory is not
	 * touched any more. Only cancel, buffer_free and close are called after it. (optional:
	 * memory of messages under way stays in use) */
	void (*sever)(struct gf_comm *c);
	/* 1: a message with that tag waits to be received from *peer; 0 none. (optional: without it
	 * no rank can be asked whether it is alive) */
	int (*probe)(struct gf_comm *c, uint64_t tag, int *peer, struct gf_error *err);

	/* Is it known that the rank's process has ended? Also of a communicator that is broken.
	 * (optional: it is never known) */
	bool (*is_gone)(struct gf_comm *c, int rank);

	/* The communicator below, over which all ranks meet while this one's messages go on; this
	 * one is broken then if that is. (optional: they meet over this one) */
	struct gf_comm *(*lend)(struct gf_comm *c);
	/* The library's own reduction, in place, non-blocking (MPI_Iallreduce); all ranks call it
	 * in the same order. An average is left as the sum. -ENOTSUP: not of such elements; the
	 * same on every rank. (optional: then `library` is not available) */
	int (*iallreduce)(struct gf_comm *c, void *data, size_t count_elems,
			  const struct gf_element *element, struct gf_comm_request **request,
			  struct gf_error *err);
	/* The library's own blocking reduction by that number of an algorithm and size of segments,
	 * in its own counting; 0 and 0: as it is. The caller frees it before the communicator is
	 * closed. Collective. -ENOTSUP: it has no such algorithm, or would not do it. (optional) */
	int (*tell)(struct gf_comm *c, int algorithm, size_t segment_bytes,
		    struct gf_comm_told **told, struct gf_error *err);
	/* Collectives of a team of ranks: `size` of them, first, first + stride, ... The members
	 * prepare a team together, once per channel, before its first collective; it lives as long
	 * as the communicator. All members start the collectives of a team in the same order. Parts
	 * are cut as gf_range_part cuts count_elems into `size`, and part i is that of the i-th
	 * member. iteam begins a collective. One that gathers collects what lies in each part's own
	 * place. The other one is a reduce-scatter: the caller's own part of the sum lies at the
	 * beginning of data at the end, the rest is undefined, and an average is left as the sum.
	 * -ENOTSUP: the transport cannot reduce elements of that kind, or that many. (optional,
	 * both) */
	int (*team)(struct gf_comm *c, uint32_t channel, int first, int stride, int size,
		    struct gf_comm_team **team, struct gf_error *err);
	int (*iteam)(struct gf_comm *c, struct gf_comm_team *team, bool gathers, void *data,
		     size_t count_elems, const struct gf_element *element,
		     struct gf_comm_request **request, struct gf_error *err);
	/* Ends the whole job with that status, or returns where no launcher could. */
	void (*abort)(struct gf_comm *c, int status);
	/* gf_comm_leave, where another communicator keeps the memory. (optional) */
	void (*leave)(struct gf_comm *c, struct gf_left *memory);
	/* Page-aligned memory the transport likes, zeroed; -ENOMEM. */
	int (*buffer_alloc)(struct gf_comm *c, size_t size_bytes, void **data,
			    struct gf_error *err);
	/* data may be NULL. The memory of a broken communicator stays for messages that may yet
	 * touch it. */
	void (*buffer_free)(struct gf_comm *c, void *data);
	void (*close)(struct gf_comm *c);
};

struct gf_comm {
	const struct gf_comm_ops *ops;
	int rank, ranks;
	int local_rank, local_ranks;                     /* on this host */
	int host;                                        /* the lowest rank on this host */
	int (*on_wait)(void *ctx, struct gf_error *err); /* or NULL */
	void *on_wait_ctx;
	uint64_t waits; /* blocking waits begun; tells on_wait them apart */
	/* Counted up by a transport whose test calls move bytes piece by piece: a caller that sees
	 * it change should not back off yet. */
	uint64_t moved_bytes;
	atomic_bool broken; /* see FAILURE */
	bool crowded;       /* this host has more ranks than processors for them */
	size_t matches;     /* messages of one channel that two ranks tell apart; 0: any number */
	double processors;  /* gf_comm_processor_share; 0: not known */
	int machine;        /* lowest rank on the same kernel (same) */
	/* What `iallreduce` and `tell` call, "Open MPI 4.1.4"; "": nothing. After a `tell`, also
	 * what stands before the part that can be told: "Open MPI 5.0.11 with han (35) before tuned
	 * (30)". */
	char library[96];
	/* What the ranks found each other by, closed after it; or NULL. */
	struct gf_comm *launcher;
	struct gf_left *left; /* gf_comm_leave */
	void *priv;
};

/* The beginning of memory that a message may touch. */
struct gf_left {
	struct gf_left *next;
};

/* Channels above GF_CHANNEL_LAST are the library's own: so many, and as many below them for groups
 * (gf_comm_split). */
#define GF_CHANNELS_OWN     3
#define GF_CHANNEL_LAST     0x3ffffeffu
#define GF_CHANNEL_MEET     0x3ffffffdu
#define GF_CHANNEL_LIVENESS 0x3ffffffeu
#define GF_CHANNEL_GATHER   0x3fffffffu

static inline uint64_t gf_tag(uint32_t channel, uint32_t match)
{
	return (uint64_t)channel << 32 | match;
}

/* Blocking, all ranks, in about log2(ranks) rounds of messages; sizes are equal everywhere. */
int gf_comm_barrier(struct gf_comm *c, struct gf_error *err);
int gf_comm_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes, struct gf_error *err);
int gf_comm_allgather(struct gf_comm *c, const void *send, size_t size_bytes, void *recv,
		      struct gf_error *err);
/* The transport's rest, or a sleep; 0 s: returns at once. */
void gf_comm_rest(struct gf_comm *c, double most_s);
/* Waits for a request with back-off; it is freed either way. */
int gf_comm_wait(struct gf_comm *c, struct gf_comm_request *request, struct gf_error *err);
/* A text of any length from root to all; *text is allocated on the others and ends in a NUL that
 * *length does not count. */
int gf_comm_bcast_text(struct gf_comm *c, int root, char **text, size_t *length,
		       struct gf_error *err);
/* Variable-size gather: on root *all is one NUL-terminated allocation, the texts in rank order,
 * lengths (ranks entries) per rank; elsewhere *all is NULL and lengths may be. */
int gf_comm_gather_text(struct gf_comm *c, int root, const char *text, size_t length, char **all,
			size_t *lengths, struct gf_error *err);
/* Agreement before acting: 0 if rc is 0 everywhere; else every rank returns the first failing
 * rank's rc and its text, prefixed "rank N" when there are several ranks. */
int gf_comm_agree(struct gf_comm *c, int rc, struct gf_error *err);
/* Same text everywhere? -EINVAL names `what`, the first rank that differs from rank 0, and both
 * values; the same words on every rank. */
int gf_comm_same_text(struct gf_comm *c, const char *what, const char *text, struct gf_error *err);
/* Ends the whole job; does not return. A launcher has GF_TIMEOUT_ABORT_S to manage it: then this
 * process ends by itself. */
void gf_comm_abort(struct gf_comm *c, int status) __attribute__((noreturn));
/* Of a broken communicator. true: messages under way are given up, and their memory may be freed;
 * false: it stays in use until the process ends. */
bool gf_comm_sever(struct gf_comm *c);
/* Takes memory that a message which was given up may yet touch. It is freed when the communicator
 * is closed; that of a broken one stays. */
void gf_comm_leave(struct gf_comm *c, struct gf_left *memory);
void gf_comm_close(struct gf_comm *c);

/* How the ranks of a communicator find each other and what carries their messages. Zeros: the ranks
 * of the job that the process was started in, by MPI. */
struct gf_comm_how {
	/* as the table of transports names it; NULL: the first that can find the ranks in the given
	 * way */
	const char *transport;
	const struct gf_join *join; /* the caller's allgather; or NULL */
	/* Or a place: a folder that all ranks see, or host:port; with rank and ranks. */
	const char *meet;
	int rank, ranks;
	double timeout_s; /* of each wait for the others; 0: GF_TIMEOUT_S */
	/* A program's getenv. What the user tells UCX in its own variables stays as it is; NULL:
	 * nothing is told. */
	char *(*variable)(const char *name);
};
/* That transport, and shared memory between the ranks of a host. All of how is borrowed until it
 * returns; NULL: zeros. -EINVAL: it contradicts itself; -ENOTSUP: not in this build. Settles first.
 */
int gf_comm_open(const struct gf_comm_how *how, struct gf_comm **comm, struct gf_error *err);
/* UCX takes the signals of errors when it is loaded. The program gets them back here, unless
 * UCX_HANDLE_ERRORS is set. */
void gf_comm_settle(const struct gf_comm_how *how);
/* This process as the only rank. */
struct gf_comm *gf_comm_alone_new(void);
/* MPI_COMM_WORLD; initialises MPI, once in a process, and gf_comm_close finalises it. An MPI that
 * other code has initialised stays so, and must have MPI_THREAD_MULTIPLE: -EBUSY if not. Singleton
 * start (no mpirun) is one rank. */
int gf_comm_mpi_open(struct gf_comm **comm, struct gf_error *err);
/* Before MPI begins in this process: Open MPI listens to `tell` only if it was told so in its
 * environment. */
void gf_comm_mpi_listen(void);
/* Cuts messages at so many bytes instead of 1 GiB. For tests; on all ranks. */
void gf_comm_mpi_piece_bytes(struct gf_comm *c, size_t piece_bytes);

/*
 * Two communicators out of one, so that two threads can exchange at a time: the same ranks, and the
 * group that this rank is in. Group g has the ranks g * group_ranks to (g + 1) * group_ranks - 1,
 * in their order. Messages of the two never meet. Each is used by one thread at a time, as every
 * communicator is, and takes a lock for the length of a call. A call that waits for other ranks
 * holds the lock if it is c's own: `team` alone is. While a view waits that has no on_wait of its
 * own, c's is called.
 *
 * Collective over c, whose number of ranks is a multiple of group_ranks. While one of the two is
 * open nothing else uses c. Closing both leaves c open; c is broken then if one of them was.
 */
int gf_comm_split(struct gf_comm *c, int group_ranks, struct gf_comm **whole,
		  struct gf_comm **group, struct gf_error *err);

#endif
