/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/parts.h"

double gf_part_bytes(const struct gf_coll_args *args, int parts)
{
	size_t n = (size_t)parts;

	return (double)((args->count_elems + n - 1) / n) *
	       (double)args->elem_bytes;
}

struct gf_range gf_piece_take(struct gf_range *rest, size_t segment_elems)
{
	struct gf_range piece = *rest;

	if (segment_elems && piece.count > segment_elems)
		piece.count = segment_elems;
	rest->first += piece.count;
	rest->count -= piece.count;
	return piece;
}

void gf_send_pieces(struct gf_schedule *s, int peer, struct gf_range range,
		    size_t segment_elems)
{
	while (range.count)
		gf_schedule_send(s, peer, gf_piece_take(&range, segment_elems));
}

void gf_recv_pieces(struct gf_schedule *s, int peer, struct gf_range range,
		    size_t segment_elems)
{
	while (range.count)
		gf_schedule_recv(s, peer, gf_piece_take(&range, segment_elems));
}

void gf_recv_reduce_pieces(struct gf_schedule *s, int peer,
			   struct gf_range range, size_t segment_elems)
{
	while (range.count)
		gf_schedule_recv_reduce(s, peer,
					gf_piece_take(&range, segment_elems));
}

void gf_exchange_reduce(struct gf_schedule *s, int to, struct gf_range send,
			int from, struct gf_range reduce, size_t segment_elems)
{
	while (send.count || reduce.count) {
		if (send.count)
			gf_schedule_send(s, to,
					 gf_piece_take(&send, segment_elems));
		if (reduce.count)
			gf_schedule_recv_reduce(
				s, from, gf_piece_take(&reduce, segment_elems));
	}
}

void gf_exchange(struct gf_schedule *s, int to, struct gf_range send, int from,
		 struct gf_range recv, size_t segment_elems)
{
	while (send.count || recv.count) {
		if (send.count)
			gf_schedule_send(s, to,
					 gf_piece_take(&send, segment_elems));
		if (recv.count)
			gf_schedule_recv(s, from,
					 gf_piece_take(&recv, segment_elems));
	}
}

struct gf_range gf_parts_between(struct gf_range range, int parts, int a, int b)
{
	struct gf_range first = gf_range_part(range, parts, a);
	struct gf_range last = gf_range_part(range, parts, b - 1);

	first.count = last.first + last.count - first.first;
	return first;
}

int gf_log2_up(int n)
{
	int k = 0;

	while (k < 31 && (1LL << k) < n)
		k++;
	return k;
}

/* Part me - back of the ring, counted round. */
static struct gf_range behind(const struct gf_group *g, struct gf_range range,
			      int back)
{
	return gf_range_part(range, g->size,
			     (g->me + 2 * g->size - back) % g->size);
}

void gf_ring_reduce_scatter(struct gf_schedule *s, const struct gf_group *g,
			    struct gf_range range, size_t segment_elems)
{
	int next = gf_group_rank(g, (g->me + 1) % g->size);
	int previous = gf_group_rank(g, (g->me + g->size - 1) % g->size);
	int k;

	for (k = 1; k < g->size; k++)
		gf_exchange_reduce(s, next, behind(g, range, k), previous,
				   behind(g, range, k + 1), segment_elems);
}

void gf_ring_all_gather(struct gf_schedule *s, const struct gf_group *g,
			struct gf_range range, size_t segment_elems)
{
	int next = gf_group_rank(g, (g->me + 1) % g->size);
	int previous = gf_group_rank(g, (g->me + g->size - 1) % g->size);
	int k;

	for (k = 0; k < g->size - 1; k++)
		gf_exchange(s, next, behind(g, range, k), previous,
			    behind(g, range, k + 1), segment_elems);
}
