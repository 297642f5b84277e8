/* SPDX-License-Identifier: BSD-3-Clause */
#include "collectives/parts.h"

double gf_part_bytes(const struct gf_coll_args *args, int parts)
{
	size_t n = (size_t)parts;

	return (double)((args->count_elems + n - 1) / n) * (double)args->elem_bytes;
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

void gf_send_pieces(struct gf_schedule *s, int peer, struct gf_range range, size_t segment_elems)
{
	while (range.count)
		gf_schedule_send(s, peer, gf_piece_take(&range, segment_elems));
}

void gf_recv_pieces(struct gf_schedule *s, int peer, struct gf_range range, size_t segment_elems)
{
	while (range.count)
		gf_schedule_recv(s, peer, gf_piece_take(&range, segment_elems));
}

void gf_recv_reduce_pieces(struct gf_schedule *s, int peer, struct gf_range range,
			   size_t segment_elems)
{
	while (range.count)
		gf_schedule_recv_reduce(s, peer, gf_piece_take(&range, segment_elems));
}

/* Part me - back of the ring, counted round. */
static struct gf_range behind(const struct gf_group *g, struct gf_range range, int back)
{
	return gf_range_part(range, g->size, (g->me + 2 * g->size - back) % g->size);
}

/* The parts that the order comes from; one part if there is no order. */
static int parts_of(const struct gf_cut *cut)
{
	if (!cut->next || !cut->segment_elems)
		return 1;
	return cut->halves ? gf_log2_up(cut->next->size) + 1 : cut->next->size;
}

static struct gf_range part_at(const struct gf_cut *cut, struct gf_range range, int i)
{
	const struct gf_group *g = cut->next;
	int parts = parts_of(cut), place = cut->back ? parts - 1 - i : i;

	if (parts == 1)
		return range;
	if (!cut->halves)
		return behind(g, range, cut->back ? i : i + 1);
	range = gf_halving_part(g, range, place);
	return place == parts - 1 ? range : gf_range_part(range, 2, !(g->me >> place & 1));
}

struct gf_pieces gf_pieces_of(struct gf_range range, const struct gf_cut *cut)
{
	return (struct gf_pieces){.cut = cut, .range = range};
}

static bool take(struct gf_pieces *p, struct gf_range *piece)
{
	const struct gf_cut *cut = p->cut;

	while (!p->rest.count && p->part < parts_of(cut))
		p->rest = part_at(cut, p->range, p->part++);
	*piece = gf_piece_take(&p->rest, p->cut->segment_elems);
	return piece->count > 0;
}

/* The next piece of either; of one that has come to its end, an empty one. */
static bool take_both(struct gf_pieces *a, struct gf_range *of_a, struct gf_pieces *b,
		      struct gf_range *of_b)
{
	bool some = take(a, of_a);

	return take(b, of_b) || some;
}

void gf_send_cut(struct gf_schedule *s, int peer, struct gf_pieces send)
{
	struct gf_range piece;

	while (take(&send, &piece))
		gf_schedule_send(s, peer, piece);
}

void gf_recv_cut(struct gf_schedule *s, int peer, struct gf_pieces recv)
{
	struct gf_range piece;

	while (take(&recv, &piece))
		gf_schedule_recv(s, peer, piece);
}

void gf_recv_reduce_cut(struct gf_schedule *s, int peer, struct gf_pieces reduce)
{
	struct gf_range piece;

	while (take(&reduce, &piece))
		gf_schedule_recv_reduce(s, peer, piece);
}

/* Steps without elements are not appended. */
void gf_exchange_reduce(struct gf_schedule *s, int to, struct gf_pieces send, int from,
			struct gf_pieces reduce)
{
	struct gf_range out, in;

	while (take_both(&send, &out, &reduce, &in)) {
		gf_schedule_send(s, to, out);
		gf_schedule_recv_reduce(s, from, in);
	}
}

void gf_exchange(struct gf_schedule *s, int to, struct gf_pieces send, int from,
		 struct gf_pieces recv)
{
	struct gf_range out, in;

	while (take_both(&send, &out, &recv, &in)) {
		gf_schedule_send(s, to, out);
		gf_schedule_recv(s, from, in);
	}
}

int gf_log2_up(int n)
{
	int k = 0;

	while (k < 31 && (1LL << k) < n)
		k++;
	return k;
}

void gf_ring_reduce_scatter(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
			    const struct gf_cut *cut)
{
	int next = gf_group_rank(g, (g->me + 1) % g->size);
	int previous = gf_group_rank(g, (g->me + g->size - 1) % g->size);

	for (int k = 1; k < g->size; k++)
		gf_exchange_reduce(s, next, gf_pieces_of(behind(g, range, k), cut), previous,
				   gf_pieces_of(behind(g, range, k + 1), cut));
}

void gf_ring_all_gather(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
			const struct gf_cut *cut)
{
	int next = gf_group_rank(g, (g->me + 1) % g->size);
	int previous = gf_group_rank(g, (g->me + g->size - 1) % g->size);

	for (int k = 0; k < g->size - 1; k++)
		gf_exchange(s, next, gf_pieces_of(behind(g, range, k), cut), previous,
			    gf_pieces_of(behind(g, range, k + 1), cut));
}
