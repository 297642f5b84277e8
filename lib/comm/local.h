/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COMM_LOCAL_H
#define GF_COMM_LOCAL_H

#include <pthread.h>

#include "base/slab.h"
#include "comm/comm.h"

/*
 * The common state of the two halves of the local transport: local.c passes
 * messages, local_meet.c has the collective calls. The lock of a receiver's box
 * guards the box and every request addressed to it; meet_lock guards the rest.
 */
enum gf_local_kind { GF_LOCAL_SEND, GF_LOCAL_RECV, GF_LOCAL_SUM };

struct gf_comm_request {
	enum gf_local_kind kind;
	int sender, receiver;
	uint64_t tag;
	const char *source;
	char *target;
	size_t size_bytes;
	size_t got_bytes;                 /* GF_LOCAL_RECV, once done */
	const struct gf_element *element; /* GF_LOCAL_SUM */
	bool done;
	struct gf_comm_request *next; /* in a queue */
};

/* First in, first out; short. */
struct gf_local_queue {
	struct gf_comm_request *first, **last;
};

struct gf_local_box {
	pthread_mutex_t lock;
	struct gf_local_queue sends, receives; /* that have not met yet */
};

struct gf_local_world {
	int ranks;
	int open; /* communicators not closed yet; under meet_lock */
	struct gf_local_box *boxes;
	/* A rendezvous of all ranks, and the data that they show each other
	 * there. */
	pthread_mutex_t meet_lock;
	pthread_cond_t meet_cond;
	int arrived;
	uint64_t meetings;
	int deserted; /* how the first rank that gave up waiting failed, or 0 */
	struct gf_error why;
	const void **shown;
	struct gf_local_queue
		sums; /* all ranks' pending sums, under meet_lock */
};

struct gf_local {
	struct gf_comm comm;
	struct gf_local_world *world;
	struct gf_slab requests;
};

/* A zeroed request. */
struct gf_comm_request *gf_local_take(struct gf_local *l);
void gf_local_push(struct gf_local_queue *q, struct gf_comm_request *r);
/* The link to the oldest request of that sender and tag; *result is NULL if
 * there is none. */
struct gf_comm_request **gf_local_find(struct gf_local_queue *q, int sender,
				       uint64_t tag);
void gf_local_unlink(struct gf_local_queue *q, struct gf_comm_request **at);

int gf_local_barrier(struct gf_comm *c, struct gf_error *err);
int gf_local_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes,
		   struct gf_error *err);
int gf_local_allgather(struct gf_comm *c, void *all, size_t size_bytes,
		       struct gf_error *err);
int gf_local_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
			const struct gf_element *element,
			struct gf_comm_request **request, struct gf_error *err);

#endif
