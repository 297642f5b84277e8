/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recursive halving and doubling (Rabenseifner 2004, "Optimization of
 * collective reduction operations"; Thakur, Rabenseifner, Gropp 2005, section
 * 4.5), with the distance doubling while the message halves.
 *
 * In round k of the reduce-scatter partners 2^k ranks apart exchange halves of
 * the part that they still hold, and add: after log2 p rounds each rank owns
 * the sum of 1/p of the message. The all-gather runs the same rounds backwards.
 * It sends as few bytes as a ring, in log2 p rounds; on a hierarchy the long
 * messages stay between neighbours. If p is no power of two, the ranks beyond
 * the largest one, p', fold their share into a rank of the core first and get
 * the result back last.
 *
 * Cost, p ranks, n bytes:
 *   p = p':  2 log2 p alpha + 2(p-1)/p n beta + (p-1)/p n gamma
 *   else     the same with p', + 2 alpha + 2n beta + n gamma
 * (each half rounded up to whole elements; each round at the rate of the
 * levels that its distance crosses, all ranks sending at once).
 *
 * Restrictions: none.
 *
 * p = 4, n = 4; the elements of which each rank holds a sum, and over which
 * ranks:
 *
 *            start  round 0       round 1   all-gather
 *   rank 0   0-3    0-1 of 0,1    0 of all  0-1   0-3
 *   rank 1   0-3    2-3 of 0,1    2 of all  2-3   0-3
 *   rank 2   0-3    0-1 of 2,3    1 of all  0-1   0-3
 *   rank 3   0-3    2-3 of 2,3    3 of all  2-3   0-3
 */
#include "coll/algorithms.h"
#include "coll/parts.h"

static double cost_s(const struct gf_coll_args *args,
		     const struct gf_net_cost *net)
{
	int core = gf_fold_core(args->ranks), distance;
	size_t left = args->count_elems;
	double bytes = (double)left * (double)args->elem_bytes, total = 0;
	struct gf_net_round fold = {args->ranks, core, 2, args->ranks - core};
	struct gf_link_cost link = gf_net_link(net, &fold, bytes);

	if (!left)
		return 0;
	if (core < args->ranks && args->half != GF_COLL_ALL_GATHER)
		total += gf_cost_send_reduce_s(&link, bytes);
	if (core < args->ranks && args->half != GF_COLL_REDUCE_SCATTER)
		total += gf_cost_send_s(&link, bytes);
	for (distance = 1; distance < core; distance *= 2) {
		struct gf_net_round round = {core, distance, 2, distance};

		left = (left + 1) / 2;
		bytes = (double)left * (double)args->elem_bytes;
		link = gf_net_link(net, &round, bytes);
		if (args->half != GF_COLL_ALL_GATHER)
			total += gf_cost_send_reduce_s(&link, bytes);
		if (args->half != GF_COLL_REDUCE_SCATTER)
			total += gf_cost_send_s(&link, bytes);
	}
	return total;
}

static struct gf_group core_of(const struct gf_coll_args *args, int rank)
{
	return (struct gf_group){0, 1, gf_fold_core(args->ranks), rank};
}

static struct gf_range owned(const struct gf_coll_args *args, int rank)
{
	struct gf_group core = core_of(args, rank);

	if (rank >= core.size)
		return gf_data(0, 0);
	return gf_halving_part(&core, gf_data(0, args->count_elems),
			       gf_log2_up(core.size));
}

static void build(const struct gf_coll_args *args, int rank,
		  struct gf_schedule *s)
{
	struct gf_range data = gf_data(0, args->count_elems);
	struct gf_group core = core_of(args, rank);
	size_t segment = args->segment_elems;
	struct gf_cut cut = {.segment_elems = segment};

	if (args->half != GF_COLL_ALL_GATHER) {
		gf_fold_in(s, data, segment);
		if (rank < core.size)
			gf_halving_reduce_scatter(s, &core, data, &cut);
	}
	if (args->half != GF_COLL_REDUCE_SCATTER) {
		if (rank < core.size)
			gf_doubling_all_gather(s, &core, data, &cut);
		gf_fold_out(s, data, segment);
	}
}

const struct gf_algorithm gf_algorithm_rhd = {
	.name = "rhd",
	.description = "recursive halving and doubling (Rabenseifner)",
	.cost_s = cost_s,
	.owned = owned,
	.build = build,
};
