/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <unistd.h>

#include "base/heap.h"
#include "transport/shm_state.h"

struct card {
	int host, ok;
	struct gf_segment_place queues; /* the host's, at its first rank */
};

static size_t control_bytes(int local_ranks)
{
	return (size_t)local_ranks * (size_t)local_ranks * sizeof(struct gf_shm_queue);
}

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
	struct card *cards = gf_xcalloc((size_t)c->ranks, sizeof(*cards));
	size_t size = control_bytes(c->local_ranks);
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
	if (*usable) {
		find_peers(s, cards);
		gf_shm_watch(s);
	}
out:
	free(cards);
	return rc;
}
