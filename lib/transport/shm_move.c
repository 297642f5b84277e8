/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the ranks of a host, through shared memory (transport/transport.h).
 *
 * Each ordered pair of ranks has a queue (transport/shm_queue.h). Short messages travel in its
 * entries. A long one whose bytes lie in one of the sender's segments is only announced: the
 * receiver maps the segment once, copies or adds from it in blocks, and raises a flag that lets the
 * sender go on. Long messages from other memory take the transport below. They are announced, too,
 * so that the order of messages with one tag is the order of the announcements.
 *
 * Nothing is allocated after warm-up: requests and arrivals are reused.
 */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "transport/shm_state.h"

/* One call of test moves at most so much: lanes take turns, and a block read twice, by the adder
 * and the adder's own sum, is still in the cache. */
#define BLOCK_BYTES ((size_t)256 << 10)

void gf_shm_append(struct gf_shm_list *l, struct gf_comm_request *r)
{
	r->next = NULL;
	if (!l->first)
		l->last = &l->first;
	*l->last = r;
	l->last = &r->next;
}

void gf_shm_unlink(struct gf_shm_list *l, struct gf_comm_request *r)
{
	struct gf_comm_request **at = &l->first;

	while (*at && *at != r)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = r->next;
	if (l->last == &r->next)
		l->last = at;
}

struct gf_comm_request *gf_shm_take(struct gf_shm *s)
{
	struct gf_comm_request *r = gf_slab_take(&s->requests);

	memset(r, 0, offsetof(struct gf_comm_request, failure));
	return r;
}

void gf_shm_give(struct gf_shm *s, struct gf_comm_request *r)
{
	free(r->bounce);
	gf_slab_give(&s->requests, r);
}

static const struct gf_shm_own *own_segment(const struct gf_shm *s, const void *data,
					    size_t size_bytes)
{
	for (size_t i = 0; i < s->nown; i++)
		if (gf_segment_holds(&s->own[i].segment, data, size_bytes))
			return &s->own[i];
	return NULL;
}

static int peer_segment(struct gf_shm_peer *p, const struct gf_shm_entry *e,
			const struct gf_segment **segment, struct gf_error *err)
{
	struct gf_shm_mapped *m;
	int rc;

	for (size_t i = 0; i < p->nmapped; i++) {
		if (p->mapped[i].serial == e->segment) {
			*segment = &p->mapped[i].segment;
			return 0;
		}
	}
	m = gf_array_push(&p->mapped, &p->nmapped, &p->mapped_capacity);
	rc = gf_segment_map(&m->segment,
			    &(struct gf_segment_place){p->pid, e->fd, e->inode, e->segment_bytes},
			    err);
	if (rc) {
		p->nmapped--;
		gf_error_prefix(err, "memory of rank %d", p->rank);
		return rc;
	}
	m->serial = e->segment;
	*segment = &m->segment;
	return 0;
}

static void retire(struct gf_shm_peer *p, uint64_t serial)
{
	for (size_t i = 0; i < p->nmapped; i++) {
		if (p->mapped[i].serial != serial)
			continue;
		gf_segment_release(&p->mapped[i].segment);
		p->mapped[i] = p->mapped[--p->nmapped];
		return;
	}
}

/* A sum is put back in pieces of this size, while the near cache still holds them. */
#define BACK_BYTES ((size_t)8 << 10)

static size_t whole_elems(const struct gf_comm_request *r, size_t size_bytes)
{
	size_t elem = r->reduce ? r->reduce->size_bytes : 1;

	return size_bytes > elem ? size_bytes - size_bytes % elem : elem;
}

/* Reduces from lent memory: the sum goes there, too. */
static void deposit_back(struct gf_comm_request *r, size_t size_bytes)
{
	size_t most = whole_elems(r, BACK_BYTES), end, n;

	for (end = r->done_bytes + size_bytes; r->done_bytes < end; r->done_bytes += n) {
		char *to = r->to + r->done_bytes;
		char *back = r->lent_at + r->done_bytes;

		n = end - r->done_bytes < most ? end - r->done_bytes : most;
		gf_element_reduce(r->reduce, to, back, n / r->reduce->size_bytes);
		memcpy(back, to, n);
	}
}

static void deposit(struct gf_comm_request *r, const char *from, size_t size_bytes)
{
	char *to = r->to + r->done_bytes;

	if (r->reduce)
		gf_element_reduce(r->reduce, to, from, size_bytes / r->reduce->size_bytes);
	else if (size_bytes) /* a barrier of views has no memory */
		memcpy(to, from, size_bytes);
	r->done_bytes += size_bytes;
}

static void fail(struct gf_comm_request *r, int rc)
{
	r->state = GF_SHM_FAILED;
	r->failure_rc = rc;
}

static bool lies_in(const struct gf_shm_entry *e, uint64_t segment_bytes)
{
	return e->size_bytes <= segment_bytes && e->offset <= segment_bytes - e->size_bytes;
}

/* Could a rank have written that? Another process did: what it says is believed no further than
 * this process's memory is safe. */
static bool is_sound(const struct gf_shm_entry *e)
{
	switch (e->kind) {
	case GF_SHM_EAGER:
		return e->size_bytes <= GF_SHM_EAGER_BYTES;
	case GF_SHM_DIRECT:
		return e->done >= 0 && e->done < GF_SHM_DONE;
	case GF_SHM_ELSEWHERE:
	case GF_SHM_BACK:
		return true;
	default:
		return false;
	}
}

/* Takes a sum that the peer has put into this rank's memory: mostly it is where it is to be. */
static void take_back(struct gf_shm *s, struct gf_comm_request *r, const struct gf_shm_entry *e)
{
	const struct gf_segment *own;
	const char *from;
	size_t i;

	for (i = 0; i < s->nown && s->own[i].serial != e->segment; i++)
		;
	own = i < s->nown ? &s->own[i].segment : NULL;
	if (!own || !lies_in(e, own->size_bytes)) {
		fail(r, gf_error_set(&r->failure, -ESTALE,
				     "rank %d: memory that a sum was put into is gone",
				     s->peers[r->peer].rank));
		return;
	}
	from = own->base + e->offset;
	if (r->reduce || from != r->to)
		deposit(r, from, r->size_bytes);
	r->state = GF_SHM_COMPLETE;
}

/* A message and its receive have met. */
static void meet(struct gf_shm *s, struct gf_comm_request *r, const struct gf_shm_entry *e)
{
	struct gf_shm_peer *p = &s->peers[r->peer];
	const struct gf_segment *segment;
	char *to = r->to;
	int rc;

	if (!is_sound(e)) {
		fail(r, gf_error_set(&r->failure, -EPROTO,
				     "rank %d: want a message in shared memory, found other bytes",
				     p->rank));
		return;
	}
	/* what comes through the transport below is checked there */
	if (e->kind != GF_SHM_ELSEWHERE && e->size_bytes != r->size_bytes) {
		if (e->kind == GF_SHM_DIRECT)
			gf_shm_raise(&p->in->done[e->done]);
		fail(r, gf_error_set(&r->failure, -EMSGSIZE,
				     "message from rank %d, channel %" PRIu64 ", match %" PRIu64
				     ": want %zu bytes, got %" PRIu64,
				     p->rank, r->tag >> 32, r->tag & UINT32_MAX, r->size_bytes,
				     e->size_bytes));
		return;
	}
	switch (e->kind) {
	case GF_SHM_EAGER:
		deposit(r, e->bytes, r->size_bytes);
		r->state = GF_SHM_COMPLETE;
		return;
	case GF_SHM_DIRECT:
		rc = peer_segment(p, e, &segment, &r->failure);
		if (!rc && !lies_in(e, segment->size_bytes))
			rc = gf_error_set(&r->failure, -EPROTO,
					  "memory of rank %d: want a message inside its %zu bytes",
					  p->rank, segment->size_bytes);
		if (rc) {
			gf_shm_raise(&p->in->done[e->done]);
			fail(r, rc);
			return;
		}
		r->from = segment->base + e->offset;
		if (r->lent && e->lent) {
			r->lent_at = segment->base + e->offset;
			r->back.segment = e->segment;
			r->back.offset = e->offset;
		}
		r->done = &p->in->done[e->done];
		r->state = GF_SHM_COPYING;
		return;
	case GF_SHM_BACK:
		take_back(s, r, e);
		return;
	default:
		if (r->reduce)
			to = r->bounce = gf_xmalloc(r->size_bytes);
		rc = s->below->ops->irecv(s->below, p->rank, r->tag, to, r->size_bytes, &r->below,
					  &r->failure);
		r->state = GF_SHM_BELOW;
		if (rc)
			fail(r, rc);
	}
}

static void keep(struct gf_shm *s, struct gf_shm_peer *p, const struct gf_shm_entry *e)
{
	struct gf_shm_arrival *a = gf_slab_take(&s->arrivals);
	size_t size = offsetof(struct gf_shm_entry, bytes);

	if (e->kind == GF_SHM_EAGER && e->size_bytes <= GF_SHM_EAGER_BYTES)
		size += e->size_bytes;
	memcpy(&a->entry, e, size);
	a->next = NULL;
	if (!p->arrivals)
		p->last_arrival = &p->arrivals;
	*p->last_arrival = a;
	p->last_arrival = &a->next;
}

static void drain(struct gf_shm *s, struct gf_shm_peer *p)
{
	struct gf_shm_entry *e;
	struct gf_comm_request *r;

	while ((e = gf_shm_first(p->in))) {
		for (r = p->posted.first; r && r->tag != e->tag;)
			r = r->next;
		if (e->kind == GF_SHM_RETIRE) {
			retire(p, e->segment);
		} else if (r) {
			gf_shm_unlink(&p->posted, r);
			meet(s, r, e);
		} else {
			keep(s, p, e);
		}
		gf_shm_pop(p->in);
	}
}

static struct gf_shm_arrival *arrived(struct gf_shm *s, struct gf_shm_peer *p, uint64_t tag)
{
	struct gf_shm_arrival **at = &p->arrivals, *a;

	(void)s;
	while (*at && (*at)->entry.tag != tag)
		at = &(*at)->next;
	a = *at;
	if (a) {
		*at = a->next;
		if (p->last_arrival == &a->next)
			p->last_arrival = at;
	}
	return a;
}

static bool take_done(struct gf_shm_peer *p, int *index)
{
	uint32_t i = p->next_done % GF_SHM_DONE;

	/* 1: in use; 2: the receiver is through; 0: never used. A flag that is raised and not seen
	 * is not free: a new send that uses it would hide it from the send before. */
	if (p->held[i] || atomic_load_explicit(&p->out->done[i], memory_order_acquire) == 1)
		return false;
	atomic_store_explicit(&p->out->done[i], 1, memory_order_relaxed);
	p->held[i] = true;
	p->next_done++;
	*index = (int)i;
	return true;
}

void gf_shm_let_go(struct gf_shm *s, const struct gf_comm_request *r)
{
	struct gf_shm_peer *p = &s->peers[r->peer];

	p->held[r->done - p->out->done] = false;
}

/* Announces a message if the queue has room; otherwise it stays GF_SHM_PENDING.
 */
void gf_shm_push(struct gf_shm *s, struct gf_comm_request *r)
{
	struct gf_shm_peer *p = &s->peers[r->peer];
	struct gf_shm_entry *e = gf_shm_next(p->out);
	/* the segment that the receiver is to read; NULL: the bytes travel */
	const struct gf_shm_own *own =
		r->size_bytes > (r->lent ? GF_SHM_LENT_BYTES : GF_SHM_EAGER_BYTES)
			? own_segment(s, r->from, r->size_bytes)
			: NULL;
	int index, rc;

	if (!e)
		return;
	e->tag = r->tag;
	e->size_bytes = r->size_bytes;
	if (r->back.segment) {
		e->kind = GF_SHM_BACK;
		e->segment = r->back.segment;
		e->offset = r->back.offset;
		r->state = GF_SHM_COMPLETE;
	} else if (own) {
		if (!take_done(p, &index))
			return;
		e->kind = GF_SHM_DIRECT;
		e->segment = own->serial;
		e->segment_bytes = own->segment.size_bytes;
		e->inode = own->segment.inode;
		e->fd = own->segment.fd;
		e->offset = (uint64_t)(r->from - own->segment.base);
		e->done = index;
		e->lent = r->lent;
		r->done = &p->out->done[index];
		r->state = GF_SHM_READING;
	} else if (r->size_bytes <= GF_SHM_EAGER_BYTES) {
		e->kind = GF_SHM_EAGER;
		if (r->size_bytes)
			memcpy(e->bytes, r->from, r->size_bytes);
		r->state = GF_SHM_COMPLETE;
	} else {
		e->kind = GF_SHM_ELSEWHERE;
		rc = s->below->ops->isend(s->below, p->rank, r->tag, r->from, r->size_bytes,
					  &r->below, &r->failure);
		r->state = GF_SHM_BELOW;
		if (rc) {
			fail(r, rc);
			return;
		}
	}
	gf_shm_publish(p->out);
}

void gf_shm_progress(struct gf_shm *s)
{
	struct gf_shm_peer *p;

	for (p = s->peers; p < s->peers + s->npeers; p++) {
		while (p->pending.first) {
			struct gf_comm_request *r = p->pending.first;

			gf_shm_push(s, r);
			if (r->state == GF_SHM_PENDING)
				break;
			gf_shm_unlink(&p->pending, r);
		}
		drain(s, p);
	}
	gf_shm_look(s);
}

void gf_shm_receive(struct gf_shm *s, struct gf_comm_request *r)
{
	struct gf_shm_peer *p = &s->peers[r->peer];
	struct gf_shm_arrival *a;

	r->state = GF_SHM_POSTED;
	drain(s, p);
	a = arrived(s, p, r->tag);
	if (!a) {
		gf_shm_append(&p->posted, r);
		return;
	}
	meet(s, r, &a->entry);
	gf_slab_give(&s->arrivals, a);
}

static void copy_block(struct gf_shm *s, struct gf_comm_request *r)
{
	size_t left = r->size_bytes - r->done_bytes;
	size_t block = whole_elems(r, BLOCK_BYTES);

	if (left > block)
		left = block;
	if (r->lent_at)
		deposit_back(r, left);
	else
		deposit(r, r->from + r->done_bytes, left);
	s->comm.moved_bytes += left;
	if (r->done_bytes == r->size_bytes) {
		if (r->lent_at)
			gf_shm_remember(s, r);
		gf_shm_raise(r->done);
		r->state = GF_SHM_COMPLETE;
	}
}

static void test_below(struct gf_shm *s, struct gf_comm_request *r)
{
	int rc = s->below->ops->test(s->below, r->below, &r->failure);

	if (rc)
		r->below = NULL;
	if (rc < 0) {
		r->bounce = NULL; /* it may yet come */
		fail(r, rc);
	} else if (rc > 0) {
		if (r->bounce)
			deposit(r, r->bounce, r->size_bytes);
		r->state = GF_SHM_COMPLETE;
	}
	if (s->below->broken)
		s->comm.broken = true;
}

void gf_shm_advance(struct gf_shm *s, struct gf_comm_request *r)
{
	if (r->state == GF_SHM_COPYING)
		copy_block(s, r);
	else if (r->state == GF_SHM_BELOW)
		test_below(s, r);
	else if (r->state == GF_SHM_READING &&
		 atomic_load_explicit(r->done, memory_order_acquire) == 2) {
		gf_shm_let_go(s, r);
		r->state = GF_SHM_COMPLETE;
	}
}
