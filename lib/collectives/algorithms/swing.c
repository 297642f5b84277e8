/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Swing (De Sensi, Bonato, Saam, Hoefler 2024, "Swing: Short-cutting Rings for Higher Bandwidth
 * Allreduce", sections 3.1 and 3.2, its bandwidth-optimal form).
 *
 * In round k of the reduce-scatter a rank exchanges halves of the part that it still holds with a
 * partner at distance
 *   rho(k) = 1 - 2 + 4 - ... = (1 - (-2)^(k+1)) / 3     1, -1, 3, -5, 11, ...
 * to the right of even ranks and to the left of odd ones, around the ring of ranks. The all-gather
 * runs the same rounds backwards. Swing has the rounds and the bytes of recursive halving, whose
 * distances are 1, 2, 4, 8, 16: on a ring or torus its messages cross fewer links. On a hierarchy
 * they cross more than those of rhd, whose partners stay in one group while they can.
 *
 * Which half a rank keeps: let u = 3r/2 of an even rank r, (3r - 1)/2 of an odd one. The u of
 * partners in round k differ by (-2)^k. So they agree in the bits below k, and differ in bit k. A
 * rank keeps in round k the half that bit k of u names, and in the last round the half that its
 * parity names, since u counts modulo p/2 around the ring.
 *
 * Cost, p ranks, n bytes:
 *   p = p':  2 log2 p alpha + 2(p-1)/p n beta + (p-1)/p n gamma
 *   else     that of p', the power of two below, + 2 alpha + 2n beta + n gamma
 * (each half rounded up to whole elements). On levels |rho(k) - 1| of the
 * messages of a round leave a unit of ranks, or all of them do: as many as those of a one-way ring
 * with that stride.
 *
 * Restrictions: none. Ranks beyond p' fold in first and get the sum back last.
 *
 * p = 8, the partner in each round and the place (bit k: the half of round k):
 *
 *   rank      0   1   2   3   4   5   6   7
 *   round 0   1   0   3   2   5   4   7   6
 *   round 1   7   2   1   4   3   6   5   0
 *   round 2   3   6   5   0   7   2   1   4
 *   place     0   5   3   4   2   7   1   6
 */
#include <stdlib.h>

#include "collectives/algorithm.h"
#include "collectives/parts.h"

/* rho(k) */
static int distance(int k)
{
	int rho = 1, power = 1, i;

	for (i = 1; i <= k; i++) {
		power *= -2;
		rho += power;
	}
	return rho;
}

static int partner(const struct gf_group *g, int rank, int round)
{
	int to = rank + (rank & 1 ? -distance(round) : distance(round));

	return (to % g->size + g->size) % g->size;
}

static struct gf_group core_of(const struct gf_coll_args *args, int rank)
{
	struct gf_group core = {0, 1, gf_fold_core(args->ranks), 0, partner};
	int odd = rank & 1;

	if (core.size > 1)
		core.me = (3 * rank - odd) / 2 % (core.size / 2) + odd * (core.size / 2);
	return core;
}

static struct gf_cost_round round_at(int core, int k)
{
	int stride = abs(distance(k) - 1);

	if (!stride) /* even ranks and their right neighbours */
		return (struct gf_cost_round){core, 1, 2, 1};
	return (struct gf_cost_round){core, stride, (core - 1) / stride + 1, stride,
				      .one_way = true};
}

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	return gf_halving_cost(args, net, round_at);
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
 * Halving whose partners lie at distances 1, 1, 3, 5, 11, ... on a ring of the ranks, left and
 * right by turns.
 * It folds, and has halves. */
const struct gf_algorithm gf_algorithm_swing = {
	.name = "swing",
	.description = "halving with partners left and right by turns (Swing)",
	.place = 90,
	.traits = GF_ALGORITHM_OWN_STEPS | GF_ALGORITHM_HALVES | GF_ALGORITHM_FOLDS,
	.cost = cost,
	.owned = owned,
	.build = build,
};
