/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gTop-k all-reduce (Shi et al. 2019, "A distributed synchronous SGD algorithm with global top-k
 * sparsification for low bandwidth networks", Algorithm 3 and Eq. 7).
 *
 * An element here is one sparse set, elem_bytes its bound, and DATA is one of them. A step reduces
 * by a merge that keeps the k largest of the sum. The merge commutes (ties go to the lower index)
 * but does not associate, as the addition of floats does not: with the merge in place of +, the
 * schedule is the binomial tree's. In round j rank r merges the set that rank r + 2^j sends; a rank
 * without a partner waits. Then the result is broadcast.
 *
 * Cost, p ranks, k values and k indices of w bytes:
 *   2 ceil(log2 p) alpha + 4 k ceil(log2 p) w beta
 *
 * Restrictions: count_elems is 1; a sparse all-reduce, in gf_sparse_algorithms. Any p.
 *
 * p = 4; the ranks whose sets each rank has merged:
 *
 *            start  round 0  round 1   broadcast
 *   rank 0   0      0,1      0,1,2,3   to 2, then to 1
 *   rank 1   1      -        -
 *   rank 2   2      2,3      -         to 3
 *   rank 3   3      -        -
 */

#include "collectives/algorithm.h"
#include "lists/gf_algorithms.h"

static int applicable(const struct gf_coll_args *args, struct gf_error *err)
{
	if (args->count_elems != 1)
		return gf_error_set(err, -EINVAL, "gtopk: want one set per rank, got %zu",
				    args->count_elems);
	return 0;
}

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	return gf_algorithm_tree.cost(args, net);
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	gf_algorithm_tree.build(args, rank, s);
}

const struct gf_algorithm gf_sparse_gtopk = {
	.name = "gtopk",
	.description = "tree of merges that keep the k largest, broadcast back",
	.place = 20,
	.traits = GF_ALGORITHM_SAME_BITS | GF_ALGORITHM_SETS,
	.applicable = applicable,
	.cost = cost,
	.build = build,
};
