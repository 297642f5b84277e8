/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of one process as ranks: what all of them do together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/heap.h"
#include "comm/local.h"

static struct gf_local_world *world(struct gf_comm *c)
{
	return ((struct gf_local *)c->priv)->world;
}

/* One millisecond on meet_cond. */
static void nap(struct gf_local_world *w)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&w->meet_cond, &w->meet_lock, &until);
}

/*
 * Waits for all ranks. Each that comes with something to show puts it up for
 * the others; it stays until that rank's next show. on_wait is called without
 * the lock. Where it fails, the ranks that wait here fail with the same reason.
 */
static int meet(struct gf_comm *c, const void *show, struct gf_error *err)
{
	struct gf_local_world *w = world(c);
	struct gf_error why = {""};
	uint64_t meeting;
	int rc = 0;

	pthread_mutex_lock(&w->meet_lock);
	meeting = w->meetings;
	if (show)
		w->shown[c->rank] = show;
	if (!w->deserted && ++w->arrived == w->ranks) {
		w->arrived = 0;
		w->meetings++;
		pthread_cond_broadcast(&w->meet_cond);
	}
	while (w->meetings == meeting && !w->deserted && !rc) {
		nap(w);
		if (w->meetings != meeting || !c->on_wait)
			continue;
		pthread_mutex_unlock(&w->meet_lock);
		rc = c->on_wait(c->on_wait_ctx, &why);
		pthread_mutex_lock(&w->meet_lock);
	}
	if (rc && !w->deserted) {
		w->deserted = rc;
		w->why = why;
		pthread_cond_broadcast(&w->meet_cond);
	}
	if (rc || w->meetings == meeting) {
		rc = gf_error_set(err, w->deserted, "%s", w->why.text);
		c->broken = true;
	}
	pthread_mutex_unlock(&w->meet_lock);
	return rc;
}

int gf_local_barrier(struct gf_comm *c, struct gf_error *err)
{
	return meet(c, NULL, err);
}

int gf_local_bcast(struct gf_comm *c, int root, void *data, size_t size_bytes,
		   struct gf_error *err)
{
	int rc;

	rc = meet(c, data, err);
	if (rc)
		return rc;
	if (c->rank != root && size_bytes > 0)
		memcpy(data, world(c)->shown[root], size_bytes);
	return meet(c, NULL, err);
}

int gf_local_allgather(struct gf_comm *c, void *all, size_t size_bytes,
		       struct gf_error *err)
{
	char *to = all;
	int rank, rc;

	rc = meet(c, to + (size_t)c->rank * size_bytes, err);
	if (rc)
		return rc;
	for (rank = 0; rank < c->ranks; rank++, to += size_bytes)
		if (rank != c->rank && size_bytes > 0)
			memcpy(to, world(c)->shown[rank], size_bytes);
	return meet(c, NULL, err);
}

/* Sums are matched by order alone: one tag for all. */
static struct gf_comm_request *oldest(struct gf_local_world *w, int rank)
{
	return *gf_local_find(&w->sums, rank, 0);
}

/* All ranks' oldest sums, reduced in rank order, given to each. */
static void add_up(struct gf_local_world *w,
		   const struct gf_comm_request *first)
{
	const struct gf_element *e = first->element;
	size_t size_bytes = first->size_bytes;
	char *total = gf_xmemdup(first->source, size_bytes);
	struct gf_comm_request *r;
	int rank;

	for (rank = 1; rank < w->ranks; rank++)
		gf_element_reduce(e, total, oldest(w, rank)->source,
				  size_bytes / e->size_bytes);
	for (rank = 0; rank < w->ranks; rank++) {
		r = oldest(w, rank);
		if (size_bytes > 0)
			memcpy(r->target, total, size_bytes);
		r->done = true;
		gf_local_unlink(&w->sums, gf_local_find(&w->sums, rank, 0));
	}
	free(total);
}

/* Once every rank has come. */
static int try_sum(struct gf_local_world *w, struct gf_error *err)
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
					    "all-reduce: rank 0 has %zu "
					    "bytes, rank %d has %zu",
					    first->size_bytes, rank,
					    other->size_bytes);
	}
	add_up(w, first);
	return 0;
}

int gf_local_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
			const struct gf_element *element,
			struct gf_comm_request **request, struct gf_error *err)
{
	struct gf_local_world *w = world(c);
	struct gf_comm_request *r = gf_local_take(c->priv);
	int rc;

	r->kind = GF_LOCAL_SUM;
	r->sender = c->rank;
	r->target = data;
	r->source = data;
	r->element = element;
	r->size_bytes = count_elems * element->size_bytes;
	pthread_mutex_lock(&w->meet_lock);
	gf_local_push(&w->sums, r);
	rc = try_sum(w, err);
	pthread_mutex_unlock(&w->meet_lock);
	if (rc)
		c->ops->cancel(c, r);
	else
		*request = r;
	return rc;
}
