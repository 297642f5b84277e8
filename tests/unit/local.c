/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of one process as ranks. Every message is a rendezvous: the second of sender and receiver
 * copies, so that a buffer that is touched too early shows as a data race. The lock of a receiver's
 * box guards the box and every request addressed to it; the world's lock guards the rest. That a
 * request is done can be read without a lock: ranks that wait ask often.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/slab.h"
#include "local.h"
#include "transport/pages.h"

enum kind { SEND, RECEIVE, SUM };

struct gf_comm_request {
	enum kind kind;
	int sender, receiver;
	uint64_t tag;
	const char *source;
	char *target;
	size_t size_bytes;
	size_t got_bytes;                 /* RECEIVE, once done */
	const struct gf_element *element; /* SUM */
	atomic_bool done;
	struct gf_comm_request *next; /* in a queue */
};

/* First in, first out; short. */
struct queue {
	struct gf_comm_request *first, **last;
};

struct box {
	pthread_mutex_t lock;
	struct queue sends, receives; /* that have not met yet */
};

struct world {
	int ranks;
	int open; /* communicators not closed yet */
	struct box *boxes;
	pthread_mutex_t lock;
	struct queue sums; /* all ranks' pending sums */
};

struct local {
	struct gf_comm comm;
	struct world *world;
	struct gf_slab requests;
};

static void push(struct queue *q, struct gf_comm_request *r)
{
	r->next = NULL;
	*q->last = r;
	q->last = &r->next;
}

static void unlink_request(struct queue *q, struct gf_comm_request **at)
{
	struct gf_comm_request *r = *at;

	*at = r->next;
	if (!r->next)
		q->last = at;
}

/* The link to the oldest request of that sender and tag; *result is NULL if there is none. */
static struct gf_comm_request **find(struct queue *q, int sender, uint64_t tag)
{
	struct gf_comm_request **at;

	for (at = &q->first; *at; at = &(*at)->next)
		if ((*at)->sender == sender && (*at)->tag == tag)
			break;
	return at;
}

/* A zeroed request. */
static struct gf_comm_request *take(struct local *l)
{
	struct gf_comm_request *r = gf_slab_take(&l->requests);

	memset(r, 0, sizeof(*r));
	return r;
}

static void give(struct local *l, struct gf_comm_request *r)
{
	gf_slab_give(&l->requests, r);
}

static void deliver(struct gf_comm_request *send, struct gf_comm_request *receive)
{
	receive->got_bytes = send->size_bytes;
	if (send->size_bytes == receive->size_bytes && send->size_bytes > 0)
		memcpy(receive->target, send->source, send->size_bytes);
	atomic_store(&receive->done, true);
	atomic_store(&send->done, true);
}

/* Posts a request: it meets the oldest of its counterparts, or waits. */
static int post(struct gf_comm *c, struct gf_comm_request *r, int peer,
		struct gf_comm_request **request, struct gf_error *err)
{
	struct local *l = c->priv;
	struct box *box;
	struct queue *own, *others;
	struct gf_comm_request **at;

	if (peer < 0 || peer >= c->ranks) {
		give(l, r);
		return gf_error_set(err, -EINVAL, "want a rank below %d, got %d", c->ranks, peer);
	}
	box = &l->world->boxes[r->receiver];
	own = r->kind == SEND ? &box->sends : &box->receives;
	others = r->kind == SEND ? &box->receives : &box->sends;
	pthread_mutex_lock(&box->lock);
	at = find(others, r->sender, r->tag);
	if (*at) {
		struct gf_comm_request *other = *at;

		unlink_request(others, at);
		if (r->kind == SEND)
			deliver(r, other);
		else
			deliver(other, r);
	} else {
		push(own, r);
	}
	pthread_mutex_unlock(&box->lock);
	*request = r;
	return 0;
}

static int local_isend(struct gf_comm *c, int peer, uint64_t tag, const void *data,
		       size_t size_bytes, struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_comm_request *r = take(c->priv);

	r->kind = SEND;
	r->sender = c->rank;
	r->receiver = peer;
	r->tag = tag;
	r->source = data;
	r->size_bytes = size_bytes;
	return post(c, r, peer, request, err);
}

static int local_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		       struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_comm_request *r = take(c->priv);

	r->kind = RECEIVE;
	r->sender = peer;
	r->receiver = c->rank;
	r->tag = tag;
	r->target = data;
	r->size_bytes = size_bytes;
	return post(c, r, peer, request, err);
}

static pthread_mutex_t *lock_of(struct world *w, const struct gf_comm_request *r)
{
	return r->kind == SUM ? &w->lock : &w->boxes[r->receiver].lock;
}

static int local_test(struct gf_comm *c, struct gf_comm_request *r, struct gf_error *err)
{
	int rc = 1;

	if (!atomic_load(&r->done))
		return 0;
	if (r->kind == RECEIVE && r->got_bytes != r->size_bytes)
		rc = gf_error_set(err, -EMSGSIZE,
				  "message from rank %d, channel %" PRIu64 ", match %" PRIu64
				  ": want %zu bytes, got %zu",
				  r->sender, r->tag >> 32, r->tag & UINT32_MAX, r->size_bytes,
				  r->got_bytes);
	give(c->priv, r);
	return rc;
}

static void local_cancel(struct gf_comm *c, struct gf_comm_request *r)
{
	struct local *l = c->priv;
	struct box *box;
	pthread_mutex_t *lock = lock_of(l->world, r);
	struct queue *q;
	struct gf_comm_request **at;

	pthread_mutex_lock(lock);
	if (!r->done) {
		box = &l->world->boxes[r->kind == SUM ? 0 : r->receiver];
		q = r->kind == SUM    ? &l->world->sums
		    : r->kind == SEND ? &box->sends
				      : &box->receives;
		for (at = &q->first; *at != r; at = &(*at)->next)
			;
		unlink_request(q, at);
	}
	pthread_mutex_unlock(lock);
	give(l, r);
}

static int local_probe(struct gf_comm *c, uint64_t tag, int *peer, struct gf_error *err)
{
	struct local *l = c->priv;
	struct box *box = &l->world->boxes[c->rank];
	struct gf_comm_request *r;

	(void)err;
	pthread_mutex_lock(&box->lock);
	for (r = box->sends.first; r && r->tag != tag; r = r->next)
		;
	if (r)
		*peer = r->sender;
	pthread_mutex_unlock(&box->lock);
	return r ? 1 : 0;
}

/* --- what all of them do together ---------------------------------------- */

static struct world *world(struct gf_comm *c)
{
	return ((struct local *)c->priv)->world;
}

/* Sums are matched by order alone: one tag for all. */
static struct gf_comm_request *oldest(struct world *w, int rank)
{
	return *find(&w->sums, rank, 0);
}

/* All ranks' oldest sums, reduced in rank order, given to each. */
static void add_up(struct world *w, const struct gf_comm_request *first)
{
	const struct gf_element *e = first->element;
	size_t size_bytes = first->size_bytes;
	char *total = gf_xmemdup(first->source, size_bytes);
	struct gf_comm_request *r;
	int rank;

	for (rank = 1; rank < w->ranks; rank++)
		gf_element_reduce(e, total, oldest(w, rank)->source, size_bytes / e->size_bytes);
	for (rank = 0; rank < w->ranks; rank++) {
		r = oldest(w, rank);
		if (size_bytes > 0)
			memcpy(r->target, total, size_bytes);
		unlink_request(&w->sums, find(&w->sums, rank, 0));
		atomic_store(&r->done, true); /* its rank may reuse it from now on */
	}
	free(total);
}

/* Once every rank has come. */
static int try_sum(struct world *w, struct gf_error *err)
{
	const struct gf_comm_request *first = oldest(w, 0), *other;
	int rank;

	for (rank = 0; rank < w->ranks; rank++)
		if (!oldest(w, rank))
			return 0;
	for (rank = 1; rank < w->ranks; rank++) {
		other = oldest(w, rank);
		if (other->size_bytes != first->size_bytes)
			return gf_error_set(err, -EMSGSIZE,
					    "all-reduce: rank 0 has %zu bytes, rank %d has %zu",
					    first->size_bytes, rank, other->size_bytes);
	}
	add_up(w, first);
	return 0;
}

static int local_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
			    const struct gf_element *element, struct gf_comm_request **request,
			    struct gf_error *err)
{
	struct world *w = world(c);
	struct gf_comm_request *r = take(c->priv);
	int rc;

	r->kind = SUM;
	r->sender = c->rank;
	r->target = data;
	r->source = data;
	r->element = element;
	r->size_bytes = count_elems * element->size_bytes;
	pthread_mutex_lock(&w->lock);
	push(&w->sums, r);
	rc = try_sum(w, err);
	pthread_mutex_unlock(&w->lock);
	if (rc)
		c->ops->cancel(c, r);
	else
		*request = r;
	return rc;
}

/* --- opening and closing -------------------------------------------------- */

static void local_abort(struct gf_comm *c, int status)
{
	(void)c;
	(void)status; /* the one process ends by itself */
}

static void world_free(struct world *w)
{
	int rank;

	for (rank = 0; rank < w->ranks; rank++)
		pthread_mutex_destroy(&w->boxes[rank].lock);
	pthread_mutex_destroy(&w->lock);
	free(w->boxes);
	free(w);
}

static void local_close(struct gf_comm *c)
{
	struct local *l = c->priv;
	struct world *w = l->world;
	bool last;

	pthread_mutex_lock(&w->lock);
	last = --w->open == 0;
	pthread_mutex_unlock(&w->lock);
	if (last)
		world_free(w);
	gf_slab_release(&l->requests);
	free(l);
}

static const struct gf_comm_ops local_ops = {
	.name = "local",
	.isend = local_isend,
	.irecv = local_irecv,
	.test = local_test,
	.cancel = local_cancel,
	.probe = local_probe,
	.iallreduce = local_iallreduce,
	.abort = local_abort,
	.buffer_alloc = gf_pages_buffer_alloc,
	.buffer_free = gf_pages_buffer_free,
	.close = local_close,
};

static struct world *world_new(int ranks)
{
	struct world *w = gf_xcalloc(1, sizeof(*w));
	int rank;

	w->ranks = w->open = ranks;
	w->boxes = gf_xcalloc((size_t)ranks, sizeof(*w->boxes));
	for (rank = 0; rank < ranks; rank++) {
		struct box *box = &w->boxes[rank];

		pthread_mutex_init(&box->lock, NULL);
		box->sends.last = &box->sends.first;
		box->receives.last = &box->receives.first;
	}
	w->sums.last = &w->sums.first;
	pthread_mutex_init(&w->lock, NULL);
	return w;
}

int gf_comm_local_new(int ranks, struct gf_comm **comms, struct gf_error *err)
{
	struct world *w;
	int rank;

	if (ranks < 1)
		return gf_error_set(err, -EINVAL, "want ranks >= 1, got %d", ranks);
	w = world_new(ranks);
	for (rank = 0; rank < ranks; rank++) {
		struct local *l = gf_xcalloc(1, sizeof(*l));

		l->world = w;
		gf_slab_init(&l->requests, sizeof(struct gf_comm_request));
		l->comm.ops = &local_ops;
		l->comm.rank = l->comm.local_rank = rank;
		l->comm.ranks = l->comm.local_ranks = ranks;
		/* As on a host of two processors, whatever this one has: waiting ranks leave them
		 * to the others. */
		l->comm.crowded = ranks > 2;
		l->comm.priv = l;
		comms[rank] = &l->comm;
	}
	return 0;
}
