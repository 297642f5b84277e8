/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring (Patarasuk and Yuan, 2009, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations"; BlueConnect's Eq. 3, GradientFlow's baseline).
 *
 * The message is cut into p parts. In the reduce-scatter each rank passes a partial sum on to its
 * right neighbour and adds its own share to the one that comes from the left: after p - 1 rounds
 * rank r owns the sum of part r. In the all-gather the sums go round once more. Every link carries
 * the same load in every round, and no rank sends more than 2(p-1)/p of the message, the least that
 * is possible. With segments, a part is passed on piece by piece.
 *
 * Cost, p ranks, n bytes, alpha per round, beta per byte, gamma per byte
 * reduced:  2(p-1) alpha + 2(p-1)/p n beta + (p-1)/p n gamma
 * (n/p rounded up to whole elements). On levels, a round is no barrier: the latencies are those of
 * the hops that a part passes, added up, and the slowest link, which carries one message at a time
 * (Eq. 3's min W), bounds the rate.
 *
 * Restrictions: none. Any p, any n: parts may be empty.
 *
 * p = 4, what a rank sends to its right neighbour in each round (part: whose contributions it holds
 * by then):
 *
 *            reduce-scatter          |  all-gather
 *   rank 0   3: 0    2: 3+0   1: 2+3+0  |  0   3   2
 *   rank 1   0: 1    3: 0+1   2: 3+0+1  |  1   0   3
 *   rank 2   1: 2    0: 1+2   3: 0+1+2  |  2   1   0
 *   rank 3   2: 3    1: 2+3   0: 1+2+3  |  3   2   1
 */
#include "collectives/algorithm.h"
#include "collectives/parts.h"

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	struct gf_cost_round all = {args->ranks, 1, args->ranks, 1};

	if (!args->count_elems)
		return (struct gf_cost){0};
	return gf_cost_ring(net, &all, gf_part_bytes(args, args->ranks),
			    args->half != GF_COLL_ALL_GATHER, args->half != GF_COLL_REDUCE_SCATTER);
}

static struct gf_range owned(const struct gf_coll_args *args, int rank)
{
	return gf_range_part(gf_data(0, args->count_elems), args->ranks, rank);
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	struct gf_group all = {0, 1, args->ranks, rank};
	struct gf_range data = gf_data(0, args->count_elems);
	struct gf_cut cut = {.segment_elems = args->segment_elems};

	if (args->half != GF_COLL_ALL_GATHER)
		gf_ring_reduce_scatter(s, &all, data, &cut);
	if (args->half != GF_COLL_REDUCE_SCATTER)
		gf_ring_all_gather(s, &all, data, &cut);
}

/* MANUAL
 * Parts of the message pass round all ranks twice; ring has halves. */
const struct gf_algorithm gf_algorithm_ring = {
	.name = "ring",
	.description = "parts of the message pass round all ranks twice",
	.place = 10,
	.traits = GF_ALGORITHM_OWN_STEPS | GF_ALGORITHM_HALVES,
	.cost = cost,
	.owned = owned,
	.build = build,
};
