/* SPDX-License-Identifier: BSD-3-Clause */
/* Recursive halving and doubling over a group, and folding onto 2^k ranks. */
#include "collectives/parts.h"

struct gf_range gf_halving_part(const struct gf_group *g, struct gf_range range, int rounds)
{
	for (int k = 0; k < rounds; k++)
		range = gf_range_part(range, 2, g->me >> k & 1);
	return range;
}

static int partner_of(const struct gf_group *g, int rank, int round)
{
	return g->partner ? g->partner(g, rank, round) : gf_group_rank(g, g->me ^ 1 << round);
}

void gf_halving_reduce_scatter(struct gf_schedule *s, const struct gf_group *g,
			       struct gf_range range, const struct gf_cut *cut)
{
	for (int k = 0; 1 << k < g->size; k++) {
		struct gf_range held = gf_halving_part(g, range, k);
		int partner = partner_of(g, s->rank, k);
		int mine = g->me >> k & 1;

		gf_exchange_reduce(s, partner, gf_pieces_of(gf_range_part(held, 2, !mine), cut),
				   partner, gf_pieces_of(gf_range_part(held, 2, mine), cut));
	}
}

void gf_doubling_all_gather(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
			    const struct gf_cut *cut)
{
	for (int k = gf_log2_up(g->size) - 1; k >= 0; k--) {
		struct gf_range held = gf_halving_part(g, range, k);
		int partner = partner_of(g, s->rank, k);
		int mine = g->me >> k & 1;

		gf_exchange(s, partner, gf_pieces_of(gf_range_part(held, 2, mine), cut), partner,
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

void gf_fold_in(struct gf_schedule *s, struct gf_range range, size_t segment_elems)
{
	int core = gf_fold_core(s->ranks);

	if (s->rank >= core)
		gf_send_pieces(s, s->rank - core, range, segment_elems);
	else if (s->rank + core < s->ranks)
		gf_recv_reduce_pieces(s, s->rank + core, range, segment_elems);
}

void gf_fold_out(struct gf_schedule *s, struct gf_range range, size_t segment_elems)
{
	int core = gf_fold_core(s->ranks);

	/* a rank that sends nothing rounds as the others do */
	if (s->lossy && core < s->ranks && s->rank < core && s->rank + core >= s->ranks)
		while (range.count)
			gf_schedule_round(s, gf_piece_take(&range, segment_elems));
	else if (s->rank >= core)
		gf_recv_pieces(s, s->rank - core, range, segment_elems);
	else if (s->rank + core < s->ranks)
		gf_send_pieces(s, s->rank + core, range, segment_elems);
}

struct gf_range gf_halving_owned(const struct gf_coll_args *args, int rank, gf_core_fn *core_of)
{
	struct gf_group core = core_of(args, rank);

	if (rank >= core.size)
		return gf_data(0, 0);
	return gf_halving_part(&core, gf_data(0, args->count_elems), gf_log2_up(core.size));
}

void gf_halving_build(struct gf_schedule *s, const struct gf_coll_args *args, gf_core_fn *core_of)
{
	struct gf_group core = core_of(args, s->rank);
	struct gf_range data = gf_data(0, args->count_elems);
	struct gf_cut cut = {.segment_elems = args->segment_elems};

	if (args->half != GF_COLL_ALL_GATHER) {
		gf_fold_in(s, data, args->segment_elems);
		if (s->rank < core.size)
			gf_halving_reduce_scatter(s, &core, data, &cut);
	}
	if (args->half != GF_COLL_REDUCE_SCATTER) {
		if (s->rank < core.size)
			gf_doubling_all_gather(s, &core, data, &cut);
		gf_fold_out(s, data, args->segment_elems);
	}
}

/* Adds a round's reduce-scatter, its all-gather, or both. */
static void add_round(const struct gf_coll_args *args, const struct gf_link_cost *link,
		      double bytes, struct gf_cost *total)
{
	if (args->half != GF_COLL_ALL_GATHER)
		*total = gf_cost_plus(*total, 1, gf_cost_send_reduce(link, bytes));
	if (args->half != GF_COLL_REDUCE_SCATTER)
		*total = gf_cost_plus(*total, 1, gf_cost_send(link, bytes));
}

struct gf_cost gf_halving_cost(const struct gf_coll_args *args, const struct gf_cost_net *net,
			       struct gf_cost_round (*round_at)(int core, int k))
{
	int core = gf_fold_core(args->ranks), k;
	size_t left = args->count_elems;
	double bytes = (double)left * (double)args->elem_bytes;
	struct gf_cost_round round = {args->ranks, core, 2, args->ranks - core};
	struct gf_link_cost link = gf_cost_link(net, &round, bytes);
	struct gf_cost total = {0};

	if (!left)
		return total;
	if (core < args->ranks)
		add_round(args, &link, bytes, &total);
	for (k = 0; 1 << k < core; k++) {
		left = (left + 1) / 2;
		bytes = (double)left * (double)args->elem_bytes;
		round = round_at(core, k);
		link = gf_cost_link(net, &round, bytes);
		add_round(args, &link, bytes, &total);
	}
	return total;
}
