/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct (Thakur, Rabenseifner, Gropp 2005, "Optimization of collective communication operations in
 * MPICH": the pairwise exchange that MPICH's reduce-scatter uses for long messages; then an
 * all-gather in which every rank sends to every other).
 *
 * The message is cut into p parts, and rank r owns part r. In round k of the reduce-scatter each
 * rank sends part r - k straight to rank r - k, its owner, which adds it to what it has: first its
 * own, then those of ranks r + 1, r + 2, ... In the all-gather every owner sends the sum to all
 * others at once. Ranks send as much as in a ring, in half as many rounds, and pass nothing on. So
 * a codec rounds a value twice, on the way to its owner and on the way back, however many ranks
 * there are, and sums are whole in between; a ring rounds the partial sum at every hop.
 *
 * Cost, p ranks, n bytes, alpha per round, beta per byte, gamma per byte reduced:
 *   (p-1) (alpha + n/p beta + n/p gamma) + alpha + (p-1) n/p beta
 * (n/p rounded up to whole elements). A level's link that u ranks share carries min(k, p - k, u)
 * messages in round k and u (p - u) on the way back: on a hierarchy far more than in a ring, where
 * ranks only tell the next one.
 *
 * Restrictions: none. Each rank has p - 1 peers.
 *
 * p = 4, what a rank sends in each round (part k to rank k), whose contributions its own part holds
 * by then, and what it sends to all:
 *
 *            reduce-scatter                 |  all-gather
 *   rank 0   3: 0+1   2: 0+1+2   1: 0+1+2+3  |  0
 *   rank 1   0: 1+2   3: 1+2+3   2: 1+2+3+0  |  1
 *   rank 2   1: 2+3   0: 2+3+0   3: 2+3+0+1  |  2
 *   rank 3   2: 3+0   1: 3+0+1   0: 3+0+1+2  |  3
 */
#include "collectives/algorithm.h"
#include "collectives/parts.h"

/* The sum of x over from < x <= to. */
static double sum_between(long long from, long long to)
{
	return (double)(to - from) * ((double)from + (double)to + 1) / 2;
}

/* Seconds per byte in round x, of rounds 1 to `last`, added up: the most of beta times min(x, u) on
 * any level where units of u ranks meet. A level is full from round u on; `full` is the most that
 * those have reached, `steep` the slope of the others. */
static double rounds_beta(const struct gf_cost_net *net, int ranks, double bytes, long long last)
{
	double total = 0, full = 0, beta, steep;
	long long unit = 1, from = 0, to, turn;

	for (size_t i = 0; i < net->nlevels && unit < ranks; i++) {
		long long outer = unit;

		steep = 0;
		for (size_t k = i; k < net->nlevels && outer < ranks; k++) {
			beta = gf_cost_level(net, k, bytes).beta_s_per_byte;
			steep = beta > steep ? beta : steep;
			outer *= k + 1 < net->nlevels ? net->sizes[k] : ranks;
		}
		to = unit < last ? unit : last;
		turn = steep * (double)to > full ? (long long)(full / steep) : to;
		turn = turn > from ? turn : from;
		total += full * (double)(turn - from) + steep * sum_between(turn, to);
		beta = gf_cost_level(net, i, bytes).beta_s_per_byte;
		full = beta * (double)unit > full ? beta * (double)unit : full;
		from = to;
		unit *= i + 1 < net->nlevels ? net->sizes[i] : ranks;
	}
	return total + full * (double)(last - from);
}

/* A rank takes one message after the other, from near and far; the last one has the fewest near. */
static struct gf_cost reduce_scatter(const struct gf_coll_args *args, const struct gf_cost_net *net,
				     double bytes)
{
	long long p = args->ranks, unit = 1, near = 1, next;
	struct gf_link_cost all = {0};
	struct gf_cost total = {0};

	for (size_t i = 0; i < net->nlevels && unit < p; i++, near = next) {
		struct gf_link_cost link = gf_cost_level(net, i, bytes);

		unit *= i + 1 < net->nlevels ? net->sizes[i] : p;
		next = unit < p ? (p - 1) % unit + 1 : p;
		link.beta_s_per_byte = link.gamma_s_per_byte;
		total = gf_cost_plus(total, (double)(next - near), gf_cost_send(&link, bytes));
	}
	all.beta_s_per_byte = rounds_beta(net, args->ranks, bytes, p / 2) +
			      rounds_beta(net, args->ranks, bytes, (p - 1) / 2);
	return gf_cost_plus(total, 1, gf_cost_send(&all, bytes));
}

static struct gf_cost all_gather(const struct gf_coll_args *args, const struct gf_cost_net *net,
				 double bytes)
{
	struct gf_cost_round ring = {args->ranks, 1, args->ranks, 1};
	struct gf_link_cost link = gf_cost_link(net, &ring, bytes);
	long long p = args->ranks, unit = 1;
	double most = 0, beta;

	for (size_t i = 0; i < net->nlevels && unit < p; i++) {
		beta = gf_cost_level(net, i, bytes).beta_s_per_byte * (double)unit *
		       (double)(p - unit);
		most = beta > most ? beta : most;
		unit *= i + 1 < net->nlevels ? net->sizes[i] : p;
	}
	link.beta_s_per_byte = most;
	return gf_cost_send(&link, bytes);
}

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	double bytes = gf_part_bytes(args, args->ranks);
	struct gf_cost total = {0};

	if (!args->count_elems || args->ranks < 2)
		return total;
	if (args->half != GF_COLL_ALL_GATHER)
		total = reduce_scatter(args, net, bytes);
	if (args->half != GF_COLL_REDUCE_SCATTER)
		total = gf_cost_plus(total, 1, all_gather(args, net, bytes));
	return total;
}

static struct gf_range owned(const struct gf_coll_args *args, int rank)
{
	return gf_range_part(gf_data(0, args->count_elems), args->ranks, rank);
}

static struct gf_pieces part_of(const struct gf_group *g, struct gf_range range, int place,
				const struct gf_cut *cut)
{
	return gf_pieces_of(gf_range_part(range, g->size, place), cut);
}

void gf_direct_reduce_scatter(struct gf_schedule *s, const struct gf_group *g,
			      struct gf_range range, const struct gf_cut *cut)
{
	const int p = g->size;

	for (int k = 1; k < p; k++) {
		int owner = (g->me - k + p) % p;

		gf_send_cut(s, gf_group_rank(g, owner), part_of(g, range, owner, cut));
	}
	for (int k = 1; k < p; k++)
		gf_recv_reduce_cut(s, gf_group_rank(g, (g->me + k) % p),
				   part_of(g, range, g->me, cut));
}

void gf_direct_all_gather(struct gf_schedule *s, const struct gf_group *g, struct gf_range range,
			  const struct gf_cut *cut)
{
	const int p = g->size;

	for (int k = 1; k < p; k++)
		gf_send_cut(s, gf_group_rank(g, (g->me + k) % p), part_of(g, range, g->me, cut));
	for (int k = 1; k < p; k++) {
		int owner = (g->me - k + p) % p;

		gf_recv_cut(s, gf_group_rank(g, owner), part_of(g, range, owner, cut));
	}
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	const struct gf_group all = {0, 1, args->ranks, rank};
	const struct gf_range data = gf_data(0, args->count_elems);
	const struct gf_cut cut = {.segment_elems = args->segment_elems};

	if (args->half != GF_COLL_ALL_GATHER)
		gf_direct_reduce_scatter(s, &all, data, &cut);
	if (args->half != GF_COLL_REDUCE_SCATTER)
		gf_direct_all_gather(s, &all, data, &cut);
}

/* MANUAL
 * Each part goes straight to the rank that owns it, and the sum to all ranks.
 * It has halves. */
const struct gf_algorithm gf_algorithm_direct = {
	.name = "direct",
	.description = "each part straight to its owner, the sum back to all",
	.place = 80,
	.traits = GF_ALGORITHM_OWN_STEPS | GF_ALGORITHM_HALVES,
	.cost = cost,
	.owned = owned,
	.build = build,
};
