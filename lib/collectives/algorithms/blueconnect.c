/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BlueConnect (Cho, Finkler, Kung and Hunter 2019, "BlueConnect: decomposing all-reduce for deep
 * learning on heterogeneous network hierarchy").
 *
 * p = p_0 p_1 ... p_(k-1) and rank r = d_0 + d_1 p_0 + d_2 p_0 p_1 + ... In stage i the ranks that
 * differ only in digit i reduce-scatter the part that they have in common, 1/(p_0 ... p_(i-1)) of
 * the message. The all-gathers follow in reverse. With one factor per level of the network every
 * stage stays within its level, all ranks send all the time, and the slow outer levels carry
 * little. Each stage has an implementation of its own: a ring; recursive halving if p_i is a power
 * of two; a direct exchange through the memory of a host (shm); or one call of MPI or NCCL, which
 * is taken for a ring.
 *
 * Cost (Eq. 7, with the minimum over 0 <= j <= i: as printed, j < i, it would contradict Eq. 6), n
 * bytes, level bandwidths w_j:
 *   2 sum_i T(p_i, n / (p_0 ... p_(i-1)), min_j w_j / (p_0 ... p_(j-1)))
 *   T = (p-1) alpha + (p-1)/p n / w (ring), log2 p alpha + ... (halving),
 *   + (p-1)/p n gamma in the first half; shm: a ring with one alpha on the way
 *   back
 * Factors need not coincide with levels: the rate is the least of w_j / (messages that share the
 * link), counted.
 *
 * Restrictions: none; without factors there is one stage of p.
 *
 * p = 12 = 3 x 2 x 2, n = 12: groups of each stage, and the element whose sum a rank owns between
 * the halves:
 *
 *   stage 0  {0,1,2} {3,4,5} {6,7,8} {9,10,11}
 *   stage 1  {0,3} {1,4} {2,5} {6,9} {7,10} {8,11}
 *   stage 2  {0,6} {1,7} {2,8} {3,9} {4,10} {5,11}
 *   rank     0  1  2  3  4  5  6  7  8  9 10 11
 *   owns     0  4  8  2  6 10  1  5  9  3  7 11
 *
 * With two copies, of ranks 0 to 5 and 6 to 11, stage 2 is of the reduce-scatter alone, there and
 * back: ranks r and r + 6 then own the same part. The all-gather has stages 1 and 0.
 */

#include "collectives/algorithm.h"
#include "collectives/parts.h"
#include "documents/algorithm_traits.h"

static int nstages(const struct gf_coll_args *args)
{
	return args->nfactors ? (int)args->nfactors : 1;
}

static int factor(const struct gf_coll_args *args, int stage)
{
	return args->nfactors ? args->factors[stage] : args->ranks;
}

/* The stages that halves are of; those further out reduce over copies. */
static int ninner(const struct gf_coll_args *args)
{
	int stage = 0, ranks = 1;

	while (stage < nstages(args) && ranks < gf_coll_sharers(args))
		ranks *= factor(args, stage++);
	return stage;
}

static int applicable(const struct gf_coll_args *args, struct gf_error *err)
{
	int stage, ranks = 1;

	for (stage = 0; stage < ninner(args); stage++)
		ranks *= factor(args, stage);
	if (ranks == gf_coll_sharers(args))
		return 0;
	return gf_error_set(err, -EINVAL,
			    "factors: want inner ones whose product is the %d ranks of a copy",
			    gf_coll_sharers(args));
}

/* The stage's algorithm has that trait. */
static bool has(const struct gf_coll_args *args, int stage, unsigned trait)
{
	const char *name = args->stage_algorithms && args->nfactors
				   ? args->stage_algorithms[stage]
				   : gf_stage_unsaid(factor(args, stage), false);

	return gf_stage_has(name, trait);
}

static bool halves(const struct gf_coll_args *args, int stage)
{
	return has(args, stage, GF_STAGE_HALVES);
}

static struct gf_cost ring(const struct gf_coll_args *args, const struct gf_cost_net *net,
			   struct gf_cost_round round, size_t elems)
{
	size_t p = (size_t)round.factor, part = (elems + p - 1) / p;

	return gf_cost_ring(net, &round, (double)part * (double)args->elem_bytes,
			    args->half != GF_COLL_ALL_GATHER, args->half != GF_COLL_REDUCE_SCATTER);
}

static struct gf_cost halving(const struct gf_coll_args *args, const struct gf_cost_net *net,
			      struct gf_cost_round stage, size_t elems)
{
	struct gf_cost total = {0};

	for (int d = 1; d < stage.factor; d *= 2) {
		struct gf_cost_round round = {args->ranks, stage.stride * d, 2, stage.stride * d};
		struct gf_link_cost link;
		double bytes;

		elems = (elems + 1) / 2;
		bytes = (double)elems * (double)args->elem_bytes;
		link = gf_cost_link(net, &round, bytes);
		if (args->half != GF_COLL_ALL_GATHER)
			total = gf_cost_plus(total, 1, gf_cost_send_reduce(&link, bytes));
		if (args->half != GF_COLL_REDUCE_SCATTER)
			total = gf_cost_plus(total, 1, gf_cost_send(&link, bytes));
	}
	return total;
}

static struct gf_cost direct(const struct gf_coll_args *args, const struct gf_cost_net *net,
			     struct gf_cost_round round, size_t elems)
{
	size_t p = (size_t)round.factor, part = (elems + p - 1) / p;
	double bytes = (double)part * (double)args->elem_bytes;
	struct gf_link_cost link = gf_cost_link(net, &round, bytes);
	struct gf_cost total = {0};

	if (args->half != GF_COLL_ALL_GATHER)
		total = gf_cost_plus(total, (double)(p - 1), gf_cost_send_reduce(&link, bytes));
	if (args->half != GF_COLL_REDUCE_SCATTER)
		total = gf_cost_plus(total, 1, gf_cost_send(&link, (double)(p - 1) * bytes));
	return total;
}

typedef void stage_fn(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
		      const struct gf_cut *cut);

static void call_reduce_scatter(struct gf_schedule *s, const struct gf_group *g,
				struct gf_range range, const struct gf_cut *cut)
{
	(void)cut;
	gf_schedule_call(s, GF_STEP_REDUCE_SCATTER, g, range);
}

static void call_all_gather(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
			    const struct gf_cut *cut)
{
	(void)cut;
	gf_schedule_call(s, GF_STEP_ALL_GATHER, g, range);
}

static const struct way {
	unsigned trait;
	struct gf_cost (*cost)(const struct gf_coll_args *args, const struct gf_cost_net *net,
			       struct gf_cost_round round, size_t elems);
	stage_fn *build[2]; /* there and back */
} ways[] = {
	{GF_STAGE_HALVES, halving, {gf_halving_reduce_scatter, gf_doubling_all_gather}},
	{GF_STAGE_ONE_HOST, direct, {gf_direct_reduce_scatter, gf_direct_all_gather}},
	{GF_STAGE_CALL, ring, {call_reduce_scatter, call_all_gather}},
	{0, ring, {gf_ring_reduce_scatter, gf_ring_all_gather}},
};

static const struct way *way_of(const struct gf_coll_args *args, int stage)
{
	size_t i = 0;

	while (ways[i].trait && (!has(args, stage, ways[i].trait) ||
				 (ways[i].trait == GF_STAGE_CALL && !args->calls)))
		i++;
	return &ways[i];
}

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	size_t elems = args->count_elems;
	struct gf_cost total = {0};
	int stage, stride = 1;

	for (stage = 0; elems && stage < nstages(args); stage++) {
		int p = factor(args, stage);
		struct gf_cost_round round = {args->ranks, stride, p, stride};
		struct gf_coll_args at = *args;

		if (stage >= ninner(args)) { /* there and back before the gather */
			if (args->half == GF_COLL_ALL_GATHER)
				break;
			at.half = GF_COLL_WHOLE;
		}
		total = gf_cost_plus(total, 1, way_of(args, stage)->cost(&at, net, round, elems));
		elems = (elems + (size_t)p - 1) / (size_t)p;
		stride *= p;
	}
	return total;
}

static struct gf_group group_of(const struct gf_coll_args *args, int stage, int rank)
{
	int i, stride = 1, p = factor(args, stage), me;

	for (i = 0; i < stage; i++)
		stride *= factor(args, i);
	me = rank / stride % p;
	return (struct gf_group){rank - me * stride, stride, p, me};
}

/* The range that a rank holds when `stage` begins. */
static struct gf_range held_at(const struct gf_coll_args *args, int stage, int rank)
{
	struct gf_range range = gf_data(0, args->count_elems);

	for (int i = 0; i < stage; i++) {
		struct gf_group g = group_of(args, i, rank);

		range = halves(args, i) ? gf_halving_part(&g, range, gf_log2_up(g.size))
					: gf_range_part(range, g.size, g.me);
	}
	return range;
}

static struct gf_range owned(const struct gf_coll_args *args, int rank)
{
	return held_at(args, ninner(args), rank);
}

/* Pieces go in the order in which the stage further out wants them, or hands them back: the wires
 * are busy from the first piece on. */
static void build_stage(const struct gf_coll_args *args, int stage, bool back,
			struct gf_schedule *s)
{
	struct gf_group g = group_of(args, stage, s->rank), next;
	bool halved = halves(args, stage);
	/* Doubling passes on what it received together with its own: in pieces other than those it
	 * was rounded in, a lossy codec would round it again. */
	struct gf_cut cut = {.segment_elems = s->lossy && halved ? 0 : args->segment_elems,
			     .back = back};

	/* Ranks of a group have other places further out. By the parts of halving these cut the
	 * same values in other pieces, and would round them apart. */
	if (stage + 1 < nstages(args) && !(s->lossy && halves(args, stage + 1))) {
		next = group_of(args, stage + 1, s->rank);
		cut.next = &next;
		cut.halves = halves(args, stage + 1);
	}
	gf_schedule_stage(s, stage);
	way_of(args, stage)->build[back](s, &g, held_at(args, stage, s->rank), &cut);
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	(void)rank;
	if (args->half != GF_COLL_ALL_GATHER)
		for (int stage = 0; stage < nstages(args); stage++)
			build_stage(args, stage, false, s);
	for (int stage = nstages(args) - 1; stage >= 0; stage--)
		if (args->half == GF_COLL_WHOLE ||
		    args->half ==
			    (stage < ninner(args) ? GF_COLL_ALL_GATHER : GF_COLL_REDUCE_SCATTER))
			build_stage(args, stage, true, s);
}

/* MANUAL
 * Reduce-scatters from the innermost factor outwards, then all-gathers back.
 * It takes any factors, each with an algorithm of its own, and has halves. */
const struct gf_algorithm gf_algorithm_blueconnect = {
	.name = "blueconnect",
	.description = "reduce-scatter level by level, all-gather back",
	.place = 70,
	.traits = GF_ALGORITHM_OWN_STEPS | GF_ALGORITHM_HALVES | GF_ALGORITHM_LEVELS |
		  GF_ALGORITHM_STAGES | GF_ALGORITHM_COPIES,
	.applicable = applicable,
	.cost = cost,
	.owned = owned,
	.build = build,
};
