/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive halving and doubling over a group, and folding onto 2^k ranks. */
#include "coll/parts.h"

struct gf_range gf_halving_part(const struct gf_group *g, struct gf_range range,
				int rounds)
{
	int k;

	for (k = 0; k < rounds; k++)
		range = gf_range_part(range, 2, g->me >> k & 1);
	return range;
}

void gf_halving_reduce_scatter(struct gf_schedule *s, const struct gf_group *g,
			       struct gf_range range, const struct gf_cut *cut)
{
	int k;

	for (k = 0; 1 << k < g->size; k++) {
		struct gf_range held = gf_halving_part(g, range, k);
		int partner = gf_group_rank(g, g->me ^ 1 << k);
		int mine = g->me >> k & 1;

		gf_exchange_reduce(
			s, partner,
			gf_pieces_of(gf_range_part(held, 2, !mine), cut),
			partner,
			gf_pieces_of(gf_range_part(held, 2, mine), cut));
	}
}

void gf_doubling_all_gather(struct gf_schedule *s, const struct gf_group *g,
			    struct gf_range range, const struct gf_cut *cut)
{
	int k;

	for (k = gf_log2_up(g->size) - 1; k >= 0; k--) {
		struct gf_range held = gf_halving_part(g, range, k);
		int partner = gf_group_rank(g, g->me ^ 1 << k);
		int mine = g->me >> k & 1;

		gf_exchange(s, partner,
			    gf_pieces_of(gf_range_part(held, 2, mine), cut),
			    partner,
			    gf_pieces_of(gf_range_part(held, 2, !mine), cut));
	}
}

int gf_fold_core(int ranks)
{
	int core = 1;

	while (core <= ranks / 2)
		core *= 2;
	return core;
}

void gf_fold_in(struct gf_schedule *s, struct gf_range range,
		size_t segment_elems)
{
	int core = gf_fold_core(s->ranks);

	if (s->rank >= core)
		gf_send_pieces(s, s->rank - core, range, segment_elems);
	else if (s->rank + core < s->ranks)
		gf_recv_reduce_pieces(s, s->rank + core, range, segment_elems);
}

void gf_fold_out(struct gf_schedule *s, struct gf_range range,
		 size_t segment_elems)
{
	int core = gf_fold_core(s->ranks);

	/* a rank that sends nothing rounds as the others do */
	if (s->lossy && core < s->ranks && s->rank < core &&
	    s->rank + core >= s->ranks)
		while (range.count)
			gf_schedule_round(s,
					  gf_piece_take(&range, segment_elems));
	else if (s->rank >= core)
		gf_recv_pieces(s, s->rank - core, range, segment_elems);
	else if (s->rank + core < s->ranks)
		gf_send_pieces(s, s->rank + core, range, segment_elems);
}
