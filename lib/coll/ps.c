/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameter server (Li et al. 2014, "Scaling distributed machine learning with
 * the parameter server"; Pipe-SGD's PS-Sync baseline).
 *
 * s servers hold 1/s of the message each. Every worker sends each server its
 * share of that part; a server adds them one worker after the other, so that
 * sums have one order, and sends the result to all. Server j begins with
 * worker j: in each round every worker is busy with another server.
 *   args.servers = s > 0: the last s ranks serve, contribute nothing and need
 *   no result (PS-Sync: one server, p workers on p + 1 ranks).
 *   args.servers = 0: every rank works and serves its 1/p: a direct
 *   reduce-scatter and all-gather.
 *
 * Cost, c workers, s servers, n bytes, m = n/s:
 *   s > 0:  c (alpha + ceil(s/c) m beta) + (c-1) m gamma
 *           + alpha + max(c, s) m beta
 *   s = 0:  (p-1) (alpha + m beta + m gamma) + alpha + (p-1) m beta,  m = n/p
 * A server's link carries every worker's share: one server costs
 * 2 c n beta, where a ring of c costs at most 2n beta.
 *
 * Restrictions: 0 <= s < p; no halves.
 *
 * p = 4, one server (rank 3), n = 2; data at the server, and at the workers:
 *
 *            start   round 0  round 1  round 2      back
 *   rank 3   -       of 0     of 0,1   of 0,1,2     -
 *   rank 0-2 own     own      own      own          of 0,1,2
 */
#include "coll/algorithms.h"
#include "coll/parts.h"

/* All ranks serve. In round k everyone sends to the rank k further on: out of
 * a unit of u ranks go min(k, p - k, u) messages. Back, all of a unit's ranks
 * send to all others at once. */
static double all_serve_s(const struct gf_coll_args *args,
			  const struct gf_net_cost *net)
{
	struct gf_net_round ring = {args->ranks, 1, args->ranks, 1};
	double bytes = gf_part_bytes(args, args->ranks), total = 0, back = 0;
	struct gf_link_cost link = gf_net_link(net, &ring, bytes), round = link;
	long long p = args->ranks, unit, k;
	size_t i;

	for (k = 1; k < p; k++) {
		round.beta_s_per_byte = 0;
		for (i = 0, unit = 1; i < net->nlevels && unit < p; i++) {
			long long sharing = k < p - k ? k : p - k;
			double beta =
				gf_net_level(net, i, bytes).beta_s_per_byte;

			sharing = sharing < unit ? sharing : unit;
			if (beta * (double)sharing > round.beta_s_per_byte)
				round.beta_s_per_byte = beta * (double)sharing;
			if (beta * (double)(unit * (p - unit)) > back)
				back = beta * (double)(unit * (p - unit));
			unit *= i + 1 < net->nlevels ? net->sizes[i] : p;
		}
		total += gf_cost_send_reduce_s(&round, bytes);
	}
	return total + link.alpha_s + back * bytes;
}

/* The last s ranks serve: s messages at a time, one per server, into or out of
 * any unit of s or more ranks. */
static double some_serve_s(const struct gf_coll_args *args,
			   const struct gf_net_cost *net)
{
	int servers = args->servers, workers = args->ranks - servers;
	struct gf_net_round round = {args->ranks, servers,
				     (args->ranks + servers - 1) / servers,
				     servers};
	double bytes = gf_part_bytes(args, servers);
	struct gf_link_cost link = gf_net_link(net, &round, bytes);
	double shared = (servers + workers - 1) / workers;
	double back = servers > workers ? servers : workers;

	return workers * gf_cost_send_s(&link, shared * bytes) +
	       (workers - 1) * link.gamma_s_per_byte * bytes +
	       gf_cost_send_s(&link, back * bytes);
}

static double cost_s(const struct gf_coll_args *args,
		     const struct gf_net_cost *net)
{
	if (!args->count_elems || args->ranks < 2)
		return 0;
	return args->servers ? some_serve_s(args, net) : all_serve_s(args, net);
}

static int server_rank(const struct gf_coll_args *args, int server)
{
	return args->servers ? args->ranks - args->servers + server : server;
}

/* A server's: takes worker after worker, then tells them all. */
static void serve(const struct gf_coll_args *args, struct gf_schedule *s,
		  int server, struct gf_range part)
{
	int workers = args->ranks - args->servers, k;

	for (k = 0; k < workers; k++) {
		int worker = (server + k) % workers;

		if (worker == s->rank)
			continue;
		if (args->servers && !k)
			gf_recv_pieces(s, worker, part, args->segment_elems);
		else
			gf_recv_reduce_pieces(s, worker, part,
					      args->segment_elems);
	}
	for (k = 0; k < workers; k++) {
		int worker = (server + k) % workers;

		if (worker != s->rank)
			gf_send_pieces(s, worker, part, args->segment_elems);
	}
}

static void build(const struct gf_coll_args *args, int rank,
		  struct gf_schedule *s)
{
	int servers = args->servers ? args->servers : args->ranks;
	int workers = args->ranks - args->servers, k;
	struct gf_range data = gf_data(0, args->count_elems);

	s->contributors = workers;
	/* server rank - k takes this worker in its round k */
	for (k = 0; rank < workers && k < servers; k++) {
		int server = ((rank - k) % servers + servers) % servers;

		if (server_rank(args, server) != rank)
			gf_send_pieces(s, server_rank(args, server),
				       gf_range_part(data, servers, server),
				       args->segment_elems);
	}
	for (k = 0; k < servers; k++)
		if (server_rank(args, k) == rank)
			serve(args, s, k, gf_range_part(data, servers, k));
	for (k = 0; rank < workers && k < servers; k++) {
		int server = ((rank - k) % servers + servers) % servers;

		if (server_rank(args, server) != rank)
			gf_recv_pieces(s, server_rank(args, server),
				       gf_range_part(data, servers, server),
				       args->segment_elems);
	}
}

const struct gf_algorithm gf_algorithm_ps = {
	.name = "ps",
	.description =
		"parameter servers: ranks of their own, or all ranks",
	.cost_s = cost_s,
	.build = build,
};
