/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of one process as ranks: point-to-point messages. Every message is
 * a rendezvous: the second of sender and receiver copies, so that a buffer
 * that is touched too early shows as a data race.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "comm/local.h"
#include "comm/pages.h"

void gf_local_push(struct gf_local_queue *q, struct gf_comm_request *r)
{
	r->next = NULL;
	*q->last = r;
	q->last = &r->next;
}

void gf_local_unlink(struct gf_local_queue *q, struct gf_comm_request **at)
{
	struct gf_comm_request *r = *at;

	*at = r->next;
	if (!r->next)
		q->last = at;
}

struct gf_comm_request **gf_local_find(struct gf_local_queue *q, int sender,
				       uint64_t tag)
{
	struct gf_comm_request **at;

	for (at = &q->first; *at; at = &(*at)->next)
		if ((*at)->sender == sender && (*at)->tag == tag)
			break;
	return at;
}

struct gf_comm_request *gf_local_take(struct gf_local *l)
{
	struct gf_comm_request *r = gf_slab_take(&l->requests);

	memset(r, 0, sizeof(*r));
	return r;
}

static void give(struct gf_local *l, struct gf_comm_request *r)
{
	gf_slab_give(&l->requests, r);
}

static void deliver(struct gf_comm_request *send,
		    struct gf_comm_request *receive)
{
	receive->got_bytes = send->size_bytes;
	if (send->size_bytes == receive->size_bytes && send->size_bytes > 0)
		memcpy(receive->target, send->source, send->size_bytes);
	send->done = receive->done = true;
}

/* Posts a request: it meets the oldest of its counterparts, or waits. */
static int post(struct gf_comm *c, struct gf_comm_request *r, int peer,
		struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_local *l = c->priv;
	struct gf_local_box *box;
	struct gf_local_queue *own, *others;
	struct gf_comm_request **at;

	if (peer < 0 || peer >= c->ranks) {
		give(l, r);
		return gf_error_set(err, -EINVAL,
				    "want a rank below %d, got %d", c->ranks,
				    peer);
	}
	box = &l->world->boxes[r->receiver];
	own = r->kind == GF_LOCAL_SEND ? &box->sends : &box->receives;
	others = r->kind == GF_LOCAL_SEND ? &box->receives : &box->sends;
	pthread_mutex_lock(&box->lock);
	at = gf_local_find(others, r->sender, r->tag);
	if (*at) {
		struct gf_comm_request *other = *at;

		gf_local_unlink(others, at);
		if (r->kind == GF_LOCAL_SEND)
			deliver(r, other);
		else
			deliver(other, r);
	} else {
		gf_local_push(own, r);
	}
	pthread_mutex_unlock(&box->lock);
	*request = r;
	return 0;
}

static int local_isend(struct gf_comm *c, int peer, uint64_t tag,
		       const void *data, size_t size_bytes,
		       struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_comm_request *r = gf_local_take(c->priv);

	r->kind = GF_LOCAL_SEND;
	r->sender = c->rank;
	r->receiver = peer;
	r->tag = tag;
	r->source = data;
	r->size_bytes = size_bytes;
	return post(c, r, peer, request, err);
}

static int local_irecv(struct gf_comm *c, int peer, uint64_t tag, void *data,
		       size_t size_bytes, struct gf_comm_request **request,
		       struct gf_error *err)
{
	struct gf_comm_request *r = gf_local_take(c->priv);

	r->kind = GF_LOCAL_RECV;
	r->sender = peer;
	r->receiver = c->rank;
	r->tag = tag;
	r->target = data;
	r->size_bytes = size_bytes;
	return post(c, r, peer, request, err);
}

static pthread_mutex_t *lock_of(struct gf_local_world *w,
				const struct gf_comm_request *r)
{
	return r->kind == GF_LOCAL_SUM ? &w->meet_lock
				       : &w->boxes[r->receiver].lock;
}

static int local_test(struct gf_comm *c, struct gf_comm_request *r,
		      struct gf_error *err)
{
	struct gf_local *l = c->priv;
	pthread_mutex_t *lock = lock_of(l->world, r);
	int rc = 1;
	bool done;

	pthread_mutex_lock(lock);
	done = r->done;
	pthread_mutex_unlock(lock);
	if (!done)
		return 0;
	if (r->kind == GF_LOCAL_RECV && r->got_bytes != r->size_bytes)
		rc = gf_error_set(err, -EMSGSIZE,
				  "message from rank %d, channel %" PRIu64
				  ", match %" PRIu64
				  ": want %zu bytes, got %zu",
				  r->sender, r->tag >> 32, r->tag & UINT32_MAX,
				  r->size_bytes, r->got_bytes);
	give(l, r);
	return rc;
}

static void local_cancel(struct gf_comm *c, struct gf_comm_request *r)
{
	struct gf_local *l = c->priv;
	struct gf_local_box *box;
	pthread_mutex_t *lock = lock_of(l->world, r);
	struct gf_local_queue *q;
	struct gf_comm_request **at;

	pthread_mutex_lock(lock);
	if (!r->done) {
		box = &l->world->boxes[r->kind == GF_LOCAL_SUM ? 0
							       : r->receiver];
		q = r->kind == GF_LOCAL_SUM    ? &l->world->sums
		    : r->kind == GF_LOCAL_SEND ? &box->sends
					       : &box->receives;
		for (at = &q->first; *at != r; at = &(*at)->next)
			;
		gf_local_unlink(q, at);
	}
	pthread_mutex_unlock(lock);
	give(l, r);
}

static int local_probe(struct gf_comm *c, uint64_t tag, int *peer,
		       struct gf_error *err)
{
	struct gf_local *l = c->priv;
	struct gf_local_box *box = &l->world->boxes[c->rank];
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

static void local_abort(struct gf_comm *c, int status)
{
	(void)c;
	(void)status; /* the one process ends by itself */
}

static void world_free(struct gf_local_world *w)
{
	int rank;

	for (rank = 0; rank < w->ranks; rank++)
		pthread_mutex_destroy(&w->boxes[rank].lock);
	pthread_mutex_destroy(&w->meet_lock);
	pthread_cond_destroy(&w->meet_cond);
	free(w->boxes);
	free(w->shown);
	free(w);
}

static void local_close(struct gf_comm *c)
{
	struct gf_local *l = c->priv;
	struct gf_local_world *w = l->world;
	bool last;

	pthread_mutex_lock(&w->meet_lock);
	last = --w->open == 0;
	pthread_mutex_unlock(&w->meet_lock);
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
	.barrier = gf_local_barrier,
	.bcast = gf_local_bcast,
	.allgather = gf_local_allgather,
	.iallreduce = gf_local_iallreduce,
	.abort = local_abort,
	.buffer_alloc = gf_pages_buffer_alloc,
	.buffer_free = gf_pages_buffer_free,
	.close = local_close,
};

static struct gf_local_world *world_new(int ranks)
{
	struct gf_local_world *w = gf_xcalloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int rank;

	w->ranks = w->open = ranks;
	w->boxes = gf_xcalloc((size_t)ranks, sizeof(*w->boxes));
	w->shown = gf_xcalloc((size_t)ranks, sizeof(*w->shown));
	for (rank = 0; rank < ranks; rank++) {
		struct gf_local_box *box = &w->boxes[rank];

		pthread_mutex_init(&box->lock, NULL);
		box->sends.last = &box->sends.first;
		box->receives.last = &box->receives.first;
	}
	w->sums.last = &w->sums.first;
	pthread_mutex_init(&w->meet_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->meet_cond, &attr);
	pthread_condattr_destroy(&attr);
	return w;
}

int gf_comm_local_new(int ranks, struct gf_comm **comms, struct gf_error *err)
{
	struct gf_local_world *w;
	int rank;

	if (ranks < 1)
		return gf_error_set(err, -EINVAL, "want ranks >= 1, got %d",
				    ranks);
	w = world_new(ranks);
	for (rank = 0; rank < ranks; rank++) {
		struct gf_local *l = gf_xcalloc(1, sizeof(*l));

		l->world = w;
		gf_slab_init(&l->requests, sizeof(struct gf_comm_request));
		l->comm.ops = &local_ops;
		l->comm.rank = l->comm.local_rank = rank;
		l->comm.ranks = l->comm.local_ranks = ranks;
		l->comm.priv = l;
		comms[rank] = &l->comm;
	}
	return 0;
}
