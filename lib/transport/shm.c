/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/transport.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/heap.h"
#include "transport/shm_state.h"

static struct gf_shm *of(struct gf_comm *c)
{
	return c->priv;
}

static struct gf_comm_request *request(struct gf_shm *s, int rank, uint64_t tag, size_t size_bytes)
{
	struct gf_comm_request *r = gf_shm_take(s);

	r->peer = s->peer_of[rank];
	r->tag = tag;
	r->size_bytes = size_bytes;
	return r;
}

static int look_after(void *ctx, struct gf_error *err)
{
	struct gf_shm *s = ctx;

	gf_shm_progress(s);
	return s->comm.on_wait ? s->comm.on_wait(s->comm.on_wait_ctx, err) : 0;
}

/* What blocks below asks the same watchdog. Messages of the host go on meanwhile: another rank may
 * want one of them before it comes. */
static struct gf_comm *shm_lend(struct gf_comm *c)
{
	struct gf_shm *s = of(c);

	s->below->on_wait = look_after;
	s->below->on_wait_ctx = s;
	return s->below;
}

static int take_back(struct gf_shm *s, int rc)
{
	if (s->below->broken)
		s->comm.broken = true;
	return rc;
}

static int send(struct gf_shm *s, struct gf_comm_request *r, int rank, struct gf_comm_request **out,
		struct gf_error *err)
{
	int rc = 0;

	if (r->peer < 0) {
		r->state = GF_SHM_BELOW;
		rc = s->below->ops->isend(s->below, rank, r->tag, r->from, r->size_bytes, &r->below,
					  err);
		take_back(s, rc);
	} else {
		r->state = GF_SHM_PENDING;
		if (!s->peers[r->peer].pending.first)
			gf_shm_push(s, r);
		if (r->state == GF_SHM_PENDING)
			gf_shm_append(&s->peers[r->peer].pending, r);
	}
	if (rc)
		gf_shm_give(s, r);
	else
		*out = r;
	return rc;
}

static struct gf_comm_request *outgoing(struct gf_shm *s, int rank, uint64_t tag, const void *data,
					size_t size_bytes)
{
	struct gf_comm_request *r = request(s, rank, tag, size_bytes);

	r->from = data;
	return r;
}

static int shm_isend(struct gf_comm *c, int rank, uint64_t tag, const void *data, size_t size_bytes,
		     struct gf_comm_request **out, struct gf_error *err)
{
	struct gf_shm *s = of(c);

	return send(s, outgoing(s, rank, tag, data, size_bytes), rank, out, err);
}

static int shm_isend_lent(struct gf_comm *c, int rank, uint64_t tag, const void *data,
			  size_t size_bytes, struct gf_comm_request **out, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	struct gf_comm_request *r = outgoing(s, rank, tag, data, size_bytes);

	r->lent = true;
	return send(s, r, rank, out, err);
}

static int shm_isend_back(struct gf_comm *c, int rank, uint64_t tag, const void *data,
			  size_t size_bytes, struct gf_comm_request **out, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	struct gf_comm_request *r = outgoing(s, rank, tag, data, size_bytes);

	if (r->peer >= 0)
		r->back = gf_shm_recall(s, r);
	return send(s, r, rank, out, err);
}

static int shm_irecv(struct gf_comm *c, int rank, uint64_t tag, void *data, size_t size_bytes,
		     struct gf_comm_request **out, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	struct gf_comm_request *r = request(s, rank, tag, size_bytes);
	int rc = 0;

	r->to = data;
	if (r->peer < 0) {
		r->state = GF_SHM_BELOW;
		rc = s->below->ops->irecv(s->below, rank, tag, data, size_bytes, &r->below, err);
		take_back(s, rc);
	} else {
		gf_shm_receive(s, r);
	}
	if (rc)
		gf_shm_give(s, r);
	else
		*out = r;
	return rc;
}

static bool shm_reduces_from(struct gf_comm *c, int rank)
{
	return of(c)->peer_of[rank] >= 0;
}

static void receive_reduce(struct gf_shm *s, struct gf_comm_request *r, void *data,
			   const struct gf_element *element, struct gf_comm_request **out)
{
	assert(r->peer >= 0);
	r->to = data;
	r->reduce = element;
	gf_shm_receive(s, r);
	*out = r;
}

static int shm_irecv_reduce(struct gf_comm *c, int rank, uint64_t tag, void *data,
			    size_t count_elems, const struct gf_element *element,
			    struct gf_comm_request **out, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	struct gf_comm_request *r = request(s, rank, tag, count_elems * element->size_bytes);

	(void)err;
	receive_reduce(s, r, data, element, out);
	return 0;
}

static int shm_irecv_reduce_back(struct gf_comm *c, int rank, uint64_t tag, void *data,
				 size_t count_elems, const struct gf_element *element,
				 struct gf_comm_request **out, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	struct gf_comm_request *r = request(s, rank, tag, count_elems * element->size_bytes);

	(void)err;
	assert(r->peer >= 0);
	r->to = data;
	r->lent = true;
	gf_shm_forget(s, r);
	receive_reduce(s, r, data, element, out);
	return 0;
}

static void shm_cancel(struct gf_comm *c, struct gf_comm_request *r)
{
	struct gf_shm *s = of(c);

	if (r->state == GF_SHM_PENDING)
		gf_shm_unlink(&s->peers[r->peer].pending, r);
	else if (r->state == GF_SHM_POSTED)
		gf_shm_unlink(&s->peers[r->peer].posted, r);
	else if (r->state == GF_SHM_BELOW) {
		s->below->ops->cancel(s->below, r->below);
		r->bounce = NULL; /* it may yet come */
	} else if (r->state == GF_SHM_COPYING)
		gf_shm_raise(r->done);
	else if (r->state == GF_SHM_READING)
		/* in use until the receiver has read all of it */
		gf_shm_let_go(s, r);
	gf_shm_give(s, r);
}

static int shm_test(struct gf_comm *c, struct gf_comm_request *r, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	int rc = 1;

	gf_shm_progress(s);
	gf_shm_advance(s, r);
	if (r->state == GF_SHM_FAILED) {
		rc = take_back(s, r->failure_rc);
		if (err)
			*err = r->failure;
	} else if (r->state != GF_SHM_COMPLETE) {
		rc = gf_shm_lost(s, r, err);
		if (rc)
			shm_cancel(c, r);
		return rc;
	}
	gf_shm_give(s, r);
	return rc;
}

/* Would a test move the request on, or end it? */
static bool shm_is_ripe(const struct gf_comm *c, const struct gf_comm_request *r)
{
	const struct gf_shm *s = c->priv;
	bool gone = r->peer >= 0 && s->peers[r->peer].gone;

	switch (r->state) {
	case GF_SHM_PENDING:
	case GF_SHM_POSTED:
		return gone;
	case GF_SHM_READING:
		return gone || atomic_load_explicit(r->done, memory_order_relaxed) == 2;
	case GF_SHM_BELOW:
		return s->below->ops->is_ripe && s->below->ops->is_ripe(s->below, r->below);
	default:
		return true;
	}
}

static int shm_probe(struct gf_comm *c, uint64_t tag, int *rank, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	const struct gf_shm_arrival *a;

	gf_shm_progress(s);
	for (int i = 0; i < s->npeers; i++) {
		for (a = s->peers[i].arrivals; a; a = a->next) {
			if (a->entry.tag != tag)
				continue;
			*rank = s->peers[i].rank;
			return 1;
		}
	}
	return s->below->ops->probe ? take_back(s, s->below->ops->probe(s->below, tag, rank, err))
				    : 0;
}

static bool shm_is_gone(struct gf_comm *c, int rank)
{
	struct gf_shm *s = of(c);
	const struct gf_comm_ops *below = s->below->ops;

	return (s->peer_of[rank] >= 0 && gf_shm_has_ended(&s->peers[s->peer_of[rank]])) ||
	       (below->is_gone && below->is_gone(s->below, rank));
}

/* The request of a collective that the transport below has begun. */
static struct gf_comm_request *take_collective(struct gf_shm *s)
{
	struct gf_comm_request *r = gf_shm_take(s);

	r->state = GF_SHM_BELOW;
	r->peer = -1;
	return r;
}

static int begun(struct gf_shm *s, struct gf_comm_request *r, int rc, struct gf_comm_request **out)
{
	if (rc)
		gf_shm_give(s, r);
	else
		*out = r;
	return take_back(s, rc);
}

static int shm_iallreduce(struct gf_comm *c, void *data, size_t count_elems,
			  const struct gf_element *element, struct gf_comm_request **out,
			  struct gf_error *err)
{
	struct gf_shm *s = of(c);
	struct gf_comm_request *r = take_collective(s);

	return begun(
		s, r,
		s->below->ops->iallreduce(s->below, data, count_elems, element, &r->below, err),
		out);
}

static int shm_tell(struct gf_comm *c, int algorithm, size_t segment_bytes,
		    struct gf_comm_told **told, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	int rc = take_back(s, s->below->ops->tell(s->below, algorithm, segment_bytes, told, err));

	memcpy(c->library, s->below->library, sizeof(c->library));
	return rc;
}

static int shm_team(struct gf_comm *c, uint32_t channel, int first, int stride, int size,
		    struct gf_comm_team **team, struct gf_error *err)
{
	struct gf_shm *s = of(c);

	return take_back(s, s->below->ops->team(s->below, channel, first, stride, size, team, err));
}

static int shm_iteam(struct gf_comm *c, struct gf_comm_team *team, bool gathers, void *data,
		     size_t count_elems, const struct gf_element *element,
		     struct gf_comm_request **out, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	struct gf_comm_request *r = take_collective(s);

	return begun(s, r,
		     s->below->ops->iteam(s->below, team, gathers, data, count_elems, element,
					  &r->below, err),
		     out);
}

/* Messages of the host wake nobody: the caller's time is short enough. */
static void shm_rest(struct gf_comm *c, double most_s)
{
	gf_comm_rest(of(c)->below, most_s);
}

static void shm_abort(struct gf_comm *c, int status)
{
	of(c)->below->ops->abort(of(c)->below, status);
}

static int shm_buffer_alloc(struct gf_comm *c, size_t size_bytes, void **data, struct gf_error *err)
{
	struct gf_shm *s = of(c);
	struct gf_segment segment;
	struct gf_shm_own *own;
	int rc;

	if (!size_bytes)
		size_bytes = 1;
	rc = gf_segment_make(&segment, size_bytes, true, err);
	if (rc)
		return rc == -EMFILE ? rc : -ENOMEM;
	own = gf_array_push(&s->own, &s->nown, &s->own_capacity);
	own->segment = segment;
	own->serial = ++s->serial;
	*data = segment.base;
	return 0;
}

/* The peers keep a mapping until they are told; an announcement that finds the queue full is not
 * made, and the mapping lasts until they close. */
static void shm_buffer_free(struct gf_comm *c, void *data)
{
	struct gf_shm *s = of(c);
	struct gf_shm_entry *e;

	for (size_t i = 0; data && !c->broken && i < s->nown; i++) {
		if (s->own[i].segment.base != data)
			continue;
		for (int k = 0; k < s->npeers; k++) {
			e = s->peers[k].pending.first ? NULL : gf_shm_next(s->peers[k].out);
			if (!e)
				continue;
			e->kind = GF_SHM_RETIRE;
			e->segment = s->own[i].serial;
			gf_shm_publish(s->peers[k].out);
		}
		gf_segment_release(&s->own[i].segment);
		s->own[i] = s->own[--s->nown];
		return;
	}
}

/* stays: the transport below may yet write to the segments. */
static void release(struct gf_shm *s, bool stays)
{
	for (int i = 0; i < s->npeers; i++) {
		struct gf_shm_peer *p = &s->peers[i];

		for (size_t k = 0; k < p->nmapped; k++)
			gf_segment_release(&p->mapped[k].segment);
		free(p->mapped);
		if (p->pid_fd >= 0)
			close(p->pid_fd);
	}
	gf_slab_release(&s->requests);
	gf_slab_release(&s->arrivals);
	gf_slab_release(&s->sums);
	for (size_t k = 0; !stays && k < s->nown; k++)
		gf_segment_release(&s->own[k].segment);
	gf_segment_release(&s->control);
	free(s->own);
	free(s->peers);
	free(s->peer_of);
	free(s);
}

/* Peers read and write shared memory, which they have mapped themselves. */
static void shm_sever(struct gf_comm *c)
{
	struct gf_shm *s = of(c);

	s->below->broken |= c->broken;
	gf_comm_sever(s->below);
}

static void shm_close(struct gf_comm *c)
{
	struct gf_shm *s = of(c);

	s->below->broken |= c->broken;
	gf_comm_close(s->below);
	release(s, c->broken && !c->ops->sever);
}

static const struct gf_comm_ops shm_ops = {
	.name = "shm",
	.isend = shm_isend,
	.irecv = shm_irecv,
	.reduces_from = shm_reduces_from,
	.irecv_reduce = shm_irecv_reduce,
	.isend_lent = shm_isend_lent,
	.irecv_reduce_back = shm_irecv_reduce_back,
	.isend_back = shm_isend_back,
	.test = shm_test,
	.is_ripe = shm_is_ripe,
	.rest = shm_rest,
	.cancel = shm_cancel,
	.sever = shm_sever,
	.probe = shm_probe,
	.is_gone = shm_is_gone,
	.lend = shm_lend,
	.iallreduce = shm_iallreduce,
	.tell = shm_tell,
	.team = shm_team,
	.iteam = shm_iteam,
	.abort = shm_abort,
	.buffer_alloc = shm_buffer_alloc,
	.buffer_free = shm_buffer_free,
	.close = shm_close,
};

int gf_comm_shm_over(struct gf_comm *below, struct gf_comm **comm, struct gf_error *err)
{
	struct gf_shm *s = gf_xcalloc(1, sizeof(*s));
	bool usable = false;
	int rc;

	s->below = below;
	gf_slab_init(&s->requests, sizeof(struct gf_comm_request));
	gf_slab_init(&s->arrivals, sizeof(struct gf_shm_arrival));
	gf_slab_init(&s->sums, sizeof(struct gf_shm_sum));
	s->peer_of = gf_xcalloc((size_t)below->ranks, sizeof(*s->peer_of));
	rc = gf_shm_join(s, &usable, err);
	if (rc || !usable) {
		release(s, false);
		if (!rc)
			*comm = below;
		return rc;
	}
	s->ops = shm_ops;
	if (!below->ops->iallreduce)
		s->ops.iallreduce = NULL;
	if (!below->ops->tell)
		s->ops.tell = NULL;
	if (!below->ops->team)
		s->ops.team = NULL;
	if (!below->ops->sever)
		s->ops.sever = NULL;
	s->comm = *below;
	s->comm.ops = &s->ops;
	s->comm.priv = s;
	s->comm.launcher = NULL; /* below's */
	s->comm.left = NULL;
	*comm = &s->comm;
	return 0;
}

const struct gf_transport gf_transport_shm = {
	.name = "shm",
	.description = "between the ranks of a host, in shared memory",
	.place = 30,
	.over = gf_comm_shm_over,
};
