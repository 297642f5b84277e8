/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameter server (Li et al. 2014, "Scaling distributed machine learning with the parameter
 * server"; Pipe-SGD's PS-Sync baseline).
 *
 * s servers hold 1/s of the message each. Every worker sends each server its share of that part; a
 * server adds them one worker after the other, so that sums have one order, and sends the result to
 * all. Server j begins with worker j: in each round every worker is busy with another server.
 *   args.servers = s > 0: the last s ranks serve, contribute nothing and need
 *   no result (PS-Sync: one server, p workers on p + 1 ranks).
 *   args.servers = 0: every rank works and serves its 1/p, which is direct
 *   (direct.c).
 *
 * Cost, c workers, s servers, n bytes, m = n/s:
 *   c (alpha + ceil(s/c) m beta) + (c-1) m gamma + alpha + max(c, s) m beta
 * A server's link carries every worker's share: one server costs
 * 2 c n beta, where a ring of c costs at most 2n beta.
 *
 * Restrictions: 0 <= s < p; no halves.
 *
 * p = 4 with one server (rank 3), n = 2; data at the server, and at the workers:
 *
 *            start   round 0  round 1  round 2      back
 *   rank 3   -       of 0     of 0,1   of 0,1,2     -
 *   rank 0-2 own     own      own      own          of 0,1,2
 */
#include "collectives/algorithm.h"
#include "collectives/parts.h"
#include "lists/gf_algorithms.h"

/* The last s ranks serve: s messages at a time, one per server, into or out of any unit of s or
 * more ranks. */
static struct gf_cost some_serve(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	int servers = args->servers, workers = args->ranks - servers;
	struct gf_cost_round round = {args->ranks, servers, (args->ranks + servers - 1) / servers,
				      servers};
	double bytes = gf_part_bytes(args, servers);
	struct gf_link_cost link = gf_cost_link(net, &round, bytes);
	double shared = (servers + workers - 1) / workers;
	double back = servers > workers ? servers : workers;
	struct gf_link_cost sums = {.beta_s_per_byte = (workers - 1) * link.gamma_s_per_byte};
	struct gf_cost total = {0};

	total = gf_cost_plus(total, workers, gf_cost_send(&link, shared * bytes));
	total = gf_cost_plus(total, 1, gf_cost_send(&sums, bytes));
	return gf_cost_plus(total, 1, gf_cost_send(&link, back * bytes));
}

static struct gf_cost cost(const struct gf_coll_args *args, const struct gf_cost_net *net)
{
	if (!args->count_elems || args->ranks < 2)
		return (struct gf_cost){0};
	return args->servers ? some_serve(args, net) : gf_algorithm_direct.cost(args, net);
}

/* A server's: takes worker after worker, then tells them all. */
static void serve(const struct gf_coll_args *args, struct gf_schedule *s, int server,
		  struct gf_range part)
{
	int workers = args->ranks - args->servers, k;

	gf_recv_pieces(s, server % workers, part, args->segment_elems);
	for (k = 1; k < workers; k++)
		gf_recv_reduce_pieces(s, (server + k) % workers, part, args->segment_elems);
	for (k = 0; k < workers; k++)
		gf_send_pieces(s, (server + k) % workers, part, args->segment_elems);
}

/* A worker's with each server, in the rounds in which it takes this worker. */
static void work(const struct gf_coll_args *args, struct gf_schedule *s,
		 void (*move)(struct gf_schedule *s, int peer, struct gf_range range,
			      size_t segment_elems))
{
	struct gf_range data = gf_data(0, args->count_elems);
	int servers = args->servers, workers = args->ranks - servers, k;

	for (k = 0; k < servers; k++) {
		int server = ((s->rank - k) % servers + servers) % servers;

		move(s, workers + server, gf_range_part(data, servers, server),
		     args->segment_elems);
	}
}

static void build(const struct gf_coll_args *args, int rank, struct gf_schedule *s)
{
	struct gf_range data = gf_data(0, args->count_elems);
	int servers = args->servers, workers = args->ranks - servers;

	if (!servers) {
		gf_algorithm_direct.build(args, rank, s);
		return;
	}
	s->contributors = workers;
	if (rank >= workers) {
		serve(args, s, rank - workers, gf_range_part(data, servers, rank - workers));
		return;
	}
	work(args, s, gf_send_pieces);
	work(args, s, gf_recv_pieces);
}

/* MANUAL
 * Servers add what the workers send
 * .Pq Cm servers . */
const struct gf_algorithm gf_algorithm_ps = {
	.name = "ps",
	.description = "parameter servers: ranks of their own, or all ranks",
	.place = 100,
	.traits = GF_ALGORITHM_OWN_STEPS | GF_ALGORITHM_SERVERS | GF_ALGORITHM_ON_REQUEST,
	.cost = cost,
	.build = build,
};
