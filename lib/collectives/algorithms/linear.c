/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Linear, or flat tree: Open MPI's and MPICH's basic algorithm (Thakur, Rabenseifner and Gropp
 * 2005, section 4, compare trees with it).
 *
 * Every rank sends its message to rank 0, which adds them in the order of the ranks and sends the
 * sum to all. Rank 0's link carries everything twice. But no rank waits for more than two messages
 * in a row, no message is passed on, and 2(p-1) messages are the fewest possible. So it is the
 * fastest for a few ranks and the shortest messages, where handling a message costs more than its
 * way.
 *
 * Cost, p ranks, n bytes:
 *   (p-1) (alpha + n beta + n gamma) + alpha + (p-1) n beta
 * (rank 0 takes one message after the other, and sends all at once).
 *
 * Restrictions: none; no halves.
 *
 * p = 4; the ranks whose contributions each rank holds:
 *
 *            start   1       2        3          back
 *   rank 0   0       0,1     0,1,2    0,1,2,3    all
 *   rank k   k       -       -        -          all
 */
#include "collectives/algorithm.h"
#include "collectives/parts.h"

/* Out of a unit of u ranks with rank 0 in it go p - u messages. */
static struct gf_cost back(const struct gf_coll_args *args, const struct gf_cost_net *net,
			   double bytes)
{
	struct gf_cost_round far = {args->ranks, 1, args->ranks, 1};
	long long p = args->ranks, unit = 1;
	struct gf_link_cost way = gf_cost_link(net, &far, bytes);
	double beta, most = 0;

	for (size_t i = 0; i < net->nlevels && unit < p; i++) {
		beta = gf_cost_level(net, i, bytes).beta_s_per_byte * (double)(p - unit);
		most = beta > most ? beta : most;
		unit *= i + 1 < net->nlevels ? net->sizes[i] : p;
	}
	way.beta_s_per_byte = most;
	return gf_cost_send(&way, bytes);
}

/* One after the other, level by level: ranks that meet rank 0 at the same one have the same way to
 * it. */
static struct gf_cost there(const struct gf_coll_args *args, const struct gf_cost_net *net,
			    double bytes)
{
	long long p = args->ranks, unit = 1, next;
	struct gf_cost total = {0};
	double beta_s_per_byte = 0;

	for (size_t i = 0; i < net->nlevels && unit < p; i++, unit = next) {
		struct gf_link_cost way = gf_cost_level(net, i, bytes);

		next = i + 1 < net->nlevels ? unit * net->sizes[i] : p;
		next = next < p ? next : p;
		if (way.beta_s_per_byte < beta_s_per_byte)
			way.beta_s_per_byte = beta_s_per_byte;
		beta_s_per_byte = way.beta_s_per_byte;
		total = gf_cost_plus(total, (double)(next - unit),
				     gf_cost_send_reduce(&way, bytes));
	}
	return total;
}

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	double bytes = (double)args->count_elems * (double)args->elem_bytes;

	if (!args->count_elems || args->ranks < 2)
		return (struct gf_cost){0};
	return gf_cost_plus(there(args, net, bytes), 1, back(args, net, bytes));
}

static void build_piece(struct gf_schedule *s, struct gf_range piece)
{
	if (s->rank) {
		gf_schedule_send(s, 0, piece);
		gf_schedule_recv(s, 0, piece);
		return;
	}
	for (int rank = 1; rank < s->ranks; rank++)
		gf_schedule_recv_reduce(s, rank, piece);
	for (int rank = 1; rank < s->ranks; rank++)
		gf_schedule_send(s, rank, piece);
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	struct gf_range rest = gf_data(0, args->count_elems);

	(void)rank;
	while (rest.count)
		build_piece(s, gf_piece_take(&rest, args->segment_elems));
}

/* MANUAL
 * All ranks send to rank 0, which answers. */
const struct gf_algorithm gf_algorithm_linear = {
	.name = "linear",
	.description = "all send to rank 0 and get the sum from it",
	.place = 50,
	.traits = GF_ALGORITHM_OWN_STEPS,
	.cost = cost,
	.build = build,
};
