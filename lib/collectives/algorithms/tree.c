/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binomial tree: reduce to rank 0, then broadcast (Thakur, Rabenseifner and Gropp 2005, sections
 * 4.2 and 4.4; PS-style aggregation without a bottleneck).
 *
 * In round k of the reduction the ranks whose lowest set bit is k send what they have gathered to
 * the rank 2^k below. The broadcast runs backwards, the largest subtree first. A rank sends to one
 * child after the other: sent at once, the messages would share its link, and the subtree that
 * needs the most rounds would start last. Each piece of a segmented message takes the same way as
 * soon as it can.
 *
 * Cost, p ranks, n bytes:  ceil(log2 p) (2 alpha + 2n beta + n gamma)
 *
 * Restrictions: none; no halves.
 *
 * p = 5, sender and receiver:
 *
 *   reduce     round 0: 1 to 0, 3 to 2    1: 2 to 0    2: 4 to 0
 *   broadcast  round 2: 0 to 4            1: 0 to 2    0: 0 to 1, 2 to 3
 */
#include "collectives/algorithm.h"
#include "collectives/parts.h"

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	double bytes = (double)args->count_elems * (double)args->elem_bytes;
	struct gf_cost total = {0};

	if (!args->count_elems)
		return (struct gf_cost){0};
	for (int distance = 1; distance < args->ranks; distance *= 2) {
		struct gf_cost_round round = {args->ranks, distance, 2, 1, true};
		struct gf_link_cost link = gf_cost_link(net, &round, bytes);

		total = gf_cost_plus(total, 1, gf_cost_send_both(&link, bytes));
		if (distance > args->ranks / 2)
			break;
	}
	return total;
}

static void build_piece(struct gf_schedule *s, struct gf_range piece)
{
	/* above which bits a rank has no children: its lowest, or all */
	int rank = s->rank, top = rank ? rank & -rank : 1 << gf_log2_up(s->ranks), distance;
	size_t before;

	for (distance = 1; distance < top; distance *= 2)
		if (rank + distance < s->ranks)
			gf_schedule_recv_reduce(s, rank + distance, piece);
	if (rank) {
		gf_schedule_send(s, rank - top, piece);
		gf_schedule_recv(s, rank - top, piece);
	}
	before = s->nsteps;
	for (distance = top / 2; distance; distance /= 2) {
		if (rank + distance >= s->ranks)
			continue;
		gf_schedule_send(s, rank + distance, piece);
		if (s->nsteps - before > 1)
			gf_schedule_after(s, s->nsteps - 2);
	}
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	struct gf_range rest = gf_data(0, args->count_elems), piece;

	(void)rank;
	while (rest.count) {
		piece = gf_piece_take(&rest, args->segment_elems);
		build_piece(s, piece);
	}
}

/* MANUAL
 * Sums go up a binomial tree, and the result comes down. */
const struct gf_algorithm gf_algorithm_tree = {
	.name = "tree",
	.description = "binomial tree: reduce to rank 0, broadcast back",
	.place = 40,
	.traits = GF_ALGORITHM_OWN_STEPS,
	.cost = cost,
	.build = build,
};
