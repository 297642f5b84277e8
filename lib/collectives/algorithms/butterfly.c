/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Butterfly, or recursive doubling (Thakur, Rabenseifner and Gropp 2005, section 4.5;
 * GradientFlow's baseline).
 *
 * In round k partners 2^k ranks apart exchange the whole message and both add: after log2 p rounds
 * every rank has the sum. No algorithm has fewer rounds, and none sends more bytes: it is for short
 * messages. Both partners keep the sum, and IEEE addition commutes, so all ranks add by the same
 * tree. If p is no power of two, the ranks beyond the largest one, p', fold in first and get the
 * result back last.
 *
 * Cost, p ranks, n bytes:
 *   p = p':  log2 p (alpha + n beta + n gamma)
 *   else     the same with p', + 2 alpha + 2n beta + n gamma
 *
 * Restrictions: none; no halves (no rank ever owns a part).
 *
 * p = 5 (core 0..3); the ranks whose contributions each rank holds:
 *
 *            start  fold   round 0   round 1      back
 *   rank 0   0      0,4    0,4,1     0,4,1,2,3    all
 *   rank 1   1      1      0,4,1     0,4,1,2,3    all
 *   rank 2   2      2      2,3       0,4,1,2,3    all
 *   rank 3   3      3      2,3       0,4,1,2,3    all
 *   rank 4   4      -      -         -            all
 */
#include "collectives/algorithm.h"
#include "collectives/parts.h"

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	double bytes = (double)args->count_elems * (double)args->elem_bytes;
	int core = gf_fold_core(args->ranks), distance;
	struct gf_cost_round fold = {args->ranks, core, 2, args->ranks - core};
	struct gf_link_cost link = gf_cost_link(net, &fold, bytes);
	struct gf_cost total = {0};

	if (!args->count_elems)
		return total;
	if (core < args->ranks)
		total = gf_cost_send_both(&link, bytes);
	for (distance = 1; distance < core; distance *= 2) {
		struct gf_cost_round round = {core, distance, 2, distance};

		link = gf_cost_link(net, &round, bytes);
		total = gf_cost_plus(total, 1, gf_cost_send_reduce(&link, bytes));
	}
	return total;
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	struct gf_range data = gf_data(0, args->count_elems);
	struct gf_cut cut = {.segment_elems = args->segment_elems};
	int core = gf_fold_core(args->ranks), distance;

	gf_fold_in(s, data, args->segment_elems);
	for (distance = 1; rank < core && distance < core; distance *= 2)
		gf_exchange_reduce(s, rank ^ distance, gf_pieces_of(data, &cut), rank ^ distance,
				   gf_pieces_of(data, &cut));
	gf_fold_out(s, data, args->segment_elems);
}

/* MANUAL
 * Recursive doubling: partners exchange whole messages, in the fewest rounds.
 * It folds. */
const struct gf_algorithm gf_algorithm_butterfly = {
	.name = "butterfly",
	.description = "recursive doubling: whole messages, fewest rounds",
	.place = 30,
	.traits = GF_ALGORITHM_OWN_STEPS | GF_ALGORITHM_ONE_ORDER | GF_ALGORITHM_ONE_ROUNDING,
	.cost = cost,
	.build = build,
};
