/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recursive halving and doubling (Rabenseifner 2004, "Optimization of collective reduction
 * operations"; Thakur, Rabenseifner, Gropp 2005, section 4.5), with the distance doubling while the
 * message halves.
 *
 * In round k of the reduce-scatter partners 2^k ranks apart exchange halves of the part that they
 * still hold, and add: after log2 p rounds each rank owns the sum of 1/p of the message. The
 * all-gather runs the same rounds backwards. It sends as few bytes as a ring, in log2 p rounds; on
 * a hierarchy the long messages stay between neighbours. If p is no power of two, the ranks beyond
 * the largest one, p', fold their share into a rank of the core first and get the result back last.
 *
 * Cost, p ranks, n bytes:
 *   p = p':  2 log2 p alpha + 2(p-1)/p n beta + (p-1)/p n gamma
 *   else     the same with p', + 2 alpha + 2n beta + n gamma
 * (each half rounded up to whole elements; each round at the rate of the levels that its distance
 * crosses, all ranks sending at once).
 *
 * Restrictions: none.
 *
 * p = 4, n = 4; the elements of which each rank holds a sum, and over which ranks:
 *
 *            start  round 0       round 1   all-gather
 *   rank 0   0-3    0-1 of 0,1    0 of all  0-1   0-3
 *   rank 1   0-3    2-3 of 0,1    2 of all  2-3   0-3
 *   rank 2   0-3    0-1 of 2,3    1 of all  0-1   0-3
 *   rank 3   0-3    2-3 of 2,3    3 of all  2-3   0-3
 */
#include "collectives/algorithm.h"
#include "collectives/parts.h"

static struct gf_cost_round round_at(int core, int k)
{
	return (struct gf_cost_round){core, 1 << k, 2, 1 << k};
}

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	return gf_halving_cost(args, net, round_at);
}

static struct gf_group core_of(const struct gf_coll_args *args, int rank)
{
	return (struct gf_group){0, 1, gf_fold_core(args->ranks), rank};
}

static struct gf_range owned(const struct gf_coll_args *args, int rank)
{
	return gf_halving_owned(args, rank, core_of);
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	(void)rank;
	gf_halving_build(s, args, core_of);
}

/* MANUAL
 * Recursive halving and doubling: partners exchange halves of what they hold, near ranks first.
 * It folds, and has halves. */
const struct gf_algorithm gf_algorithm_rhd = {
	.name = "rhd",
	.description = "recursive halving and doubling (Rabenseifner)",
	.place = 20,
	.traits = GF_ALGORITHM_OWN_STEPS | GF_ALGORITHM_HALVES | GF_ALGORITHM_FOLDS |
		  GF_ALGORITHM_ONE_ORDER,
	.cost = cost,
	.owned = owned,
	.build = build,
};
