/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums that go back to the rank that sent a part of them. Two ranks each sum up one half of the
 * message: a rank reads its half from the other's memory, and the other rank later copies the sum
 * back. The reader has that memory at hand anyway, so it can put the sum there at once. The message
 * back is then only a note that the sum is there.
 *
 * A note must not be about an older sum, for example one of an abandoned run: a rank that is about
 * to reduce there again forgets the older sum first.
 */
#include "transport/shm_state.h"

static struct gf_shm_sum *take(struct gf_shm_peer *p, const char *data)
{
	struct gf_shm_sum **at = &p->sums, *sum;

	while (*at && (*at)->data != data)
		at = &(*at)->next;
	sum = *at;
	if (sum)
		*at = sum->next;
	return sum;
}

void gf_shm_forget(struct gf_shm *s, const struct gf_comm_request *receive)
{
	struct gf_shm_sum *sum = take(&s->peers[receive->peer], receive->to);

	if (sum)
		gf_slab_give(&s->sums, sum);
}

void gf_shm_remember(struct gf_shm *s, const struct gf_comm_request *receive)
{
	struct gf_shm_peer *p = &s->peers[receive->peer];
	struct gf_shm_sum *sum = gf_slab_take(&s->sums);

	*sum = (struct gf_shm_sum){.data = receive->to,
				   .size_bytes = receive->size_bytes,
				   .at = receive->back,
				   .next = p->sums};
	p->sums = sum;
}

struct gf_shm_place gf_shm_recall(struct gf_shm *s, const struct gf_comm_request *send)
{
	struct gf_shm_sum *sum = take(&s->peers[send->peer], send->from);
	struct gf_shm_place none = {0}, at;

	if (!sum)
		return none;
	at = sum->size_bytes == send->size_bytes ? sum->at : none;
	gf_slab_give(&s->sums, sum);
	return at;
}
