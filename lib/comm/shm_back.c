/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums that go back to where a part of them came from. Of two ranks that each
 * sum up a half of the message, the one reads the other's half, and the other
 * the sum: but for the copy the memory is in the reader's hands anyway, and it
 * can as well put the sum there at once. Then the message back is a note that
 * it is there.
 *
 * A note must not be about an older sum, whose run was abandoned, say: whoever
 * is about to reduce there again forgets it first.
 */
#include "comm/shm_state.h"

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

void gf_shm_forget(struct gf_shm *s, const struct gf_request *receive)
{
	struct gf_shm_sum *sum = take(&s->peers[receive->peer], receive->to);

	if (sum)
		gf_slab_give(&s->sums, sum);
}

void gf_shm_remember(struct gf_shm *s, const struct gf_request *receive)
{
	struct gf_shm_peer *p = &s->peers[receive->peer];
	struct gf_shm_sum *sum = gf_slab_take(&s->sums);

	*sum = (struct gf_shm_sum){.data = receive->to,
				   .size_bytes = receive->size_bytes,
				   .at = receive->back,
				   .next = p->sums};
	p->sums = sum;
}

struct gf_shm_place gf_shm_recall(struct gf_shm *s,
				  const struct gf_request *send)
{
	struct gf_shm_sum *sum = take(&s->peers[send->peer], send->from);
	struct gf_shm_place none = {0}, at;

	if (!sum)
		return none;
	at = sum->size_bytes == send->size_bytes ? sum->at : none;
	gf_slab_give(&s->sums, sum);
	return at;
}
