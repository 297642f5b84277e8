/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the host's other ranks, and those of them whose process has ended. Shared memory outlives a
 * process, so nothing else shows: the kernel is asked now and then.
 */
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/heap.h"
#include "transport/shm_state.h"

/* Rounds of progress between two looks; most take less than 100 us. */
#define LOOK_EVERY 256
/* Other ranks may have told why, in messages that are still to be read. */
#define GRACE_S 0.05

bool gf_shm_has_ended(struct gf_shm_peer *p)
{
	struct pollfd ended = {.fd = p->pid_fd, .events = POLLIN};

	if (p->pid_fd < 0 || p->gone || poll(&ended, 1, 0) < 1)
		return p->gone;
	p->gone = true;
	p->gone_s = gf_clock_s();
	return true;
}

void gf_shm_look(struct gf_shm *s)
{
	struct gf_shm_peer *p;

	if (++s->rounds % LOOK_EVERY)
		return;
	for (p = s->peers; p < s->peers + s->npeers; p++)
		(void)gf_shm_has_ended(p);
}

int gf_shm_lost(struct gf_shm *s, const struct gf_comm_request *r, struct gf_error *err)
{
	const struct gf_shm_peer *p;

	if (r->peer < 0 || r->state > GF_SHM_POSTED)
		return 0;
	p = &s->peers[r->peer];
	if (!p->gone || gf_clock_s() - p->gone_s < GRACE_S)
		return 0;
	s->comm.broken = true;
	return gf_error_set(err, -ECONNRESET, "rank %d is gone: its process has ended", p->rank);
}

struct card {
	int host, ok;
	struct gf_segment_place queues; /* the host's, at its first rank */
};

static void find_peers(struct gf_shm *s, const struct card *cards)
{
	const struct gf_comm *c = s->below;
	struct gf_shm_queue *queues = (void *)s->control.base;
	int rank, own = 0, local = 0;

	for (rank = 0; rank < c->rank; rank++)
		own += cards[rank].host == c->host;
	s->peers = gf_xcalloc((size_t)c->local_ranks, sizeof(*s->peers));
	for (rank = 0; rank < c->ranks; rank++) {
		struct gf_shm_peer *p = &s->peers[s->npeers];

		s->peer_of[rank] = -1;
		if (cards[rank].host != c->host)
			continue;
		if (rank != c->rank) {
			p->rank = rank;
			p->pid = cards[rank].queues.pid;
			/* threads of this process end with it; an older kernel has no such
			 * descriptors, and a timeout finds out */
			p->pid_fd = p->pid == (int)getpid()
					    ? -1
					    : (int)syscall(SYS_pidfd_open, p->pid, 0);
			p->out = &queues[own * c->local_ranks + local];
			p->in = &queues[local * c->local_ranks + own];
			s->peer_of[rank] = s->npeers++;
		}
		local++;
	}
}

/* Every host's first rank makes the queues, the others map them. Two rounds, both taken by all
 * ranks even after a failure; *usable only if no rank failed. */
int gf_shm_join(struct gf_shm *s, bool *usable, struct gf_error *err)
{
	struct gf_comm *c = s->below;
	struct card own = {c->host, 1, {.pid = (int)getpid(), .fd = -1}};
	GF_FREED struct card *cards = gf_xcalloc((size_t)c->ranks, sizeof(*cards));
	size_t local = (size_t)c->local_ranks;
	size_t size = local * local * sizeof(struct gf_shm_queue);
	bool shared = false;
	int rank, rc;

	*usable = false;
	if (c->host == c->rank && c->local_ranks > 1) {
		own.ok = !gf_segment_make(&s->control, size, false, NULL);
		own.queues.fd = s->control.fd;
		own.queues.inode = s->control.inode;
		own.queues.size_bytes = size;
	}
	rc = gf_comm_allgather(c, &own, sizeof(own), cards, err);
	if (rc)
		goto out;
	if (c->host != c->rank && cards[c->host].ok)
		own.ok = cards[c->host].queues.size_bytes == size &&
			 !gf_segment_map(&s->control, &cards[c->host].queues, NULL);
	else
		own.ok = cards[c->host].ok;
	rc = gf_comm_allgather(c, &own, sizeof(own), cards, err);
	if (rc)
		goto out;
	*usable = true;
	for (rank = 0; rank < c->ranks; rank++) {
		*usable &= cards[rank].ok;
		shared |= cards[rank].host != rank;
	}
	*usable &= shared;
	if (*usable)
		find_peers(s, cards);
out:
	return rc;
}
