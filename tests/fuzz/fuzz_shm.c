/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory that another process of the host has written: the queue's entries, and the places
 * of segments. Inputs are the bytes of entries. */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "harness.h"
#include "transport/shm_state.h"

#define HEAD_BYTES offsetof(struct gf_shm_entry, bytes)

static int refuse(struct gf_comm *c, int peer, uint64_t tag, void *data, size_t size_bytes,
		  struct gf_comm_request **request, struct gf_error *err)
{
	(void)c, (void)peer, (void)tag, (void)data, (void)size_bytes;
	(void)request;
	return gf_error_set(err, -EIO, "nothing below");
}

static const struct gf_comm_ops ops = {.irecv = refuse};

/* The two ends of one rank's memory; its queues are zeros. */
struct rig {
	struct gf_shm shm;
	struct gf_comm below;
	struct gf_shm_peer peer;
	struct gf_shm_queue *in, *out;
	struct gf_segment own;
};

static struct rig *rig_of(void)
{
	static struct rig *r;

	if (r)
		return r;
	r = gf_xcalloc(1, sizeof(*r));
	r->in = aligned_alloc(64, sizeof(*r->in));
	r->out = aligned_alloc(64, sizeof(*r->out));
	r->below.ops = &ops;
	r->shm.below = &r->below;
	r->shm.peers = &r->peer;
	r->shm.npeers = 1;
	gf_slab_init(&r->shm.requests, sizeof(struct gf_comm_request));
	gf_slab_init(&r->shm.arrivals, sizeof(struct gf_shm_arrival));
	gf_slab_init(&r->shm.sums, sizeof(struct gf_shm_sum));
	r->peer = (struct gf_shm_peer){
		.rank = 1,
		.pid = (int)getpid(),
		.pid_fd = -1,
		.in = r->in,
		.out = r->out,
	};
	/* of the peer, as it were */
	if (gf_segment_make(&r->own, 65536, false, NULL))
		exit(1);
	return r;
}

/* As many entries as the bytes make. */
static void fill(struct rig *r, const char *data, size_t size)
{
	struct gf_shm_entry *e;
	size_t n;

	memset(r->in, 0, offsetof(struct gf_shm_queue, slots));
	memset(r->out, 0, offsetof(struct gf_shm_queue, slots));
	while (size && (e = gf_shm_next(r->in))) {
		n = size < HEAD_BYTES + 16 ? size : HEAD_BYTES + 16;
		memset(e, 0, HEAD_BYTES + 16);
		memcpy(e, data, n);
		/* no mutation would come upon this segment */
		if (e->fd == 1) {
			e->fd = r->own.fd;
			e->inode = r->own.inode;
		}
		gf_shm_publish(r->in);
		data += n;
		size -= n;
	}
}

static bool receive(struct rig *r, uint64_t tag, size_t size_bytes, char *to)
{
	struct gf_comm_request *q = gf_shm_take(&r->shm);
	bool complete;
	int turns;

	q->tag = tag;
	q->size_bytes = size_bytes;
	q->to = to;
	gf_shm_receive(&r->shm, q);
	for (turns = 0; turns < 4; turns++)
		gf_shm_advance(&r->shm, q);
	if (q->state == GF_SHM_FAILED)
		harness_expect_line(&q->failure, NULL);
	complete = q->state == GF_SHM_COMPLETE;
	if (q->state == GF_SHM_POSTED)
		gf_shm_unlink(&r->peer.posted, q);
	gf_shm_give(&r->shm, q);
	return complete;
}

static void forget(struct rig *r)
{
	struct gf_shm_arrival *a;

	while ((a = r->peer.arrivals)) {
		r->peer.arrivals = a->next;
		gf_slab_give(&r->shm.arrivals, a);
	}
	while (r->peer.nmapped)
		gf_segment_release(&r->peer.mapped[--r->peer.nmapped].segment);
}

static bool try_entries(const char *data, size_t size, struct gf_rng *rng)
{
	static char to[65536];
	struct rig *r = rig_of();
	bool complete = false;

	(void)rng;
	fill(r, data, size);
	complete |= receive(r, 1, 16, to);
	gf_shm_progress(&r->shm);
	complete |= receive(r, 2, sizeof(to), to);
	complete |= receive(r, 3, 0, to);
	forget(r);
	return complete;
}

const struct harness harness = {.most_bytes = 1024, .try = try_entries};
