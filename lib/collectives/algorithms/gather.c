/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Top-k all-gather (gTop-k's TopKAllReduce, Shi et al. 2019, Algorithm 1 and Eq. 6; Bruck et al.
 * 1997, "Efficient algorithms for all-to-all communications in multiport message-passing systems",
 * section IV).
 *
 * An element here is a slot for one rank's sparse set, elem_bytes its bound; DATA is one slot per
 * rank, and rank r begins with slot r. In round k a rank sends all its slots, r to r + 2^k - 1
 * round the ring, to rank r - 2^k. The slots double every round; the last round carries the rest.
 * Scratch holds them in that order, so every message is one range; at the end they are copied to
 * their places. The caller then adds the sets up in slot order: the same sums on every rank.
 *
 * Cost, p ranks, k values and k indices of w bytes:
 *   ceil(log2 p) alpha + 2 (p-1) k w beta
 *
 * Restrictions: count_elems is the number of ranks; a sparse all-reduce, in
 * gf_sparse_algorithms. Any p.
 *
 * p = 5, slots that a rank holds (after the last round: all):
 *
 *            start  round 0  round 1
 *   rank 0   0      0 1      0 1 2 3
 *   rank 1   1      1 2      1 2 3 4
 *   rank 2   2      2 3      2 3 4 0
 *   rank 3   3      3 4      3 4 0 1
 *   rank 4   4      4 0      4 0 1 2
 */

#include "collectives/algorithm.h"

static int applicable(const struct gf_coll_args *args, struct gf_error *err)
{
	if (args->count_elems != (size_t)args->ranks)
		return gf_error_set(err, -EINVAL, "gather: want one slot per rank (%d), got %zu",
				    args->ranks, args->count_elems);
	return 0;
}

static struct gf_range within(struct gf_range range, size_t first, size_t count)
{
	return (struct gf_range){range.buffer, range.first + first, count};
}

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

/* A round's slowest message: out of a unit of u ranks go min(d, u) messages, because every rank
 * sends d ranks down. */
static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	int distance, p = args->ranks;
	struct gf_cost total = {0};

	for (distance = 1; distance < p; distance *= 2) {
		struct gf_cost_round round = {p, distance, (p - 1) / distance + 1, distance};
		double bytes = (double)smaller(distance, p - distance) * (double)args->elem_bytes;
		struct gf_link_cost link = gf_cost_link(net, &round, bytes);

		total = gf_cost_plus(total, 1, gf_cost_send(&link, bytes));
	}
	return total;
}

static struct gf_range owned(const struct gf_coll_args *args, int rank)
{
	(void)args;
	return gf_data((size_t)rank, 1);
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	int distance, p = args->ranks, slots;
	size_t n = (size_t)p, r = (size_t)rank;
	struct gf_range held;

	if (p == 1)
		return;
	held = gf_schedule_scratch(s, n);
	gf_schedule_copy(s, within(held, 0, 1), gf_data(r, 1));
	for (distance = 1; distance < p; distance *= 2) {
		slots = smaller(distance, p - distance);
		gf_schedule_send(s, (rank + p - distance) % p, within(held, 0, (size_t)slots));
		/* the last message may hold old slots only: not before its turn, or it would slow
		 * the ones that others wait for */
		if (distance > 1)
			gf_schedule_after(s, s->nsteps - 2);
		gf_schedule_recv(s, (rank + distance) % p,
				 within(held, (size_t)distance, (size_t)slots));
	}
	gf_schedule_copy(s, gf_data(r, n - r), within(held, 0, n - r));
	gf_schedule_copy(s, gf_data(0, r), within(held, n - r, r));
}

const struct gf_algorithm gf_sparse_gather = {
	.name = "gather",
	.description = "every rank's top k to every rank, in log2 p rounds",
	.place = 10,
	.traits = GF_ALGORITHM_SAME_BITS | GF_ALGORITHM_SETS,
	.applicable = applicable,
	.cost = cost,
	.owned = owned,
	.build = build,
};
