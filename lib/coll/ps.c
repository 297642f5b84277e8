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
 *   s > 0:  c (alpha + ceil(s/c) m beta + m gamma) + alpha + max(c, s) m beta
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

static double cost_s(const struct gf_coll_args *args,
		     const struct gf_net_cost *net)
{
	int servers = args->servers ? args->servers : args->ranks;
	int workers = args->ranks - args->servers;
	/* s messages at a time, into or out of any unit of s or more ranks */
	struct gf_net_round round = {args->ranks, servers,
				     (args->ranks + servers - 1) / servers,
				     servers};
	struct gf_net_round all = {args->ranks, 1, args->ranks, 1};
	struct gf_link_cost link =
		gf_net_link(net, args->servers ? &round : &all);
	size_t parts = (size_t)servers, longest;
	double bytes, shared, rounds, back;

	longest = (args->count_elems + parts - 1) / parts;
	bytes = (double)longest * (double)args->elem_bytes;
	shared = args->servers ? (servers + workers - 1) / workers : 1;
	rounds = args->servers ? workers : workers - 1;
	back = args->servers && servers > workers ? servers : rounds;
	if (!longest || !rounds)
		return 0;
	return rounds * (gf_cost_send_s(&link, shared * bytes) +
			 link.gamma_s_per_byte * bytes) +
	       gf_cost_send_s(&link, back * bytes);
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
	.description = "parameter servers: --servers of their own, or all ranks",
	.cost_s = cost_s,
	.build = build,
};
