/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Library: the transport's own all-reduce (MPI_Iallreduce, ncclAllReduce).
 *
 * It has no steps: an executor hands the whole message over. The library does not tell which
 * algorithm it uses, so the closed form here is the cheapest of those that MPI and NCCL choose
 * from.
 *
 * Restrictions: sums in an order of its own, which MPI does not promise to be the same on every
 * rank; needs a transport that offers it; no halves.
 */
#include "collectives/algorithm.h"
#include "lists/gf_algorithms.h"

static const struct gf_algorithm *const candidates[] = {
	&gf_algorithm_ring, &gf_algorithm_rhd, &gf_algorithm_butterfly, &gf_algorithm_tree, NULL};

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	struct gf_cost best = candidates[0]->cost(args, net);

	for (size_t i = 1; candidates[i]; i++) {
		struct gf_cost one = candidates[i]->cost(args, net);

		if (one.s < best.s)
			best = one;
	}
	return best;
}

/* MANUAL
 * The all-reduce of MPI, UCX's transport or NCCL. */
const struct gf_algorithm gf_algorithm_library = {
	.name = "library",
	.description = "the transport's own all-reduce (MPI, NCCL)",
	.place = 110,
	.traits = GF_ALGORITHM_ON_REQUEST | GF_ALGORITHM_TOLD,
	.cost = cost,
	.stands_for = candidates,
};
