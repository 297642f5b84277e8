/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cost: what messages and layers cost: alpha, beta and gamma, least
 * squares, data sheets of GPUs. */
#ifndef GF_COST_PRIMITIVES_H
#define GF_COST_PRIMITIVES_H

#include <stdbool.h>
#include <stddef.h>

#include "doc/cost_line.h"

/*
 * The alpha-beta-gamma model (Hockney 1994; Thakur, Rabenseifner, Gropp 2005):
 * a round that moves m bytes costs alpha + beta*m, reducing them gamma*m.
 */
struct gf_link_cost {
	double alpha_s;          /* per round */
	double beta_s_per_byte;  /* transfer */
	double gamma_s_per_byte; /* local reduction */
	/* In a network: the lines that take alpha's and beta's place, each from
	 * some size of the round's message on; borrowed, none is common. */
	const struct gf_cost_line *larger;
	size_t nlarger;
};

/*
 * Helps to turn a closed form into straight lines over the message's size.
 * Every round is charged by the line that would apply if its messages were
 * `scale` times as long; [from_scale, below_scale) is narrowed to the scales at
 * which all rounds keep these lines.
 */
struct gf_line_choice {
	double scale, from_scale, below_scale;
};

/*
 * A network of levels, innermost first. sizes[i] groups meet at level i; the
 * ranks inside one group one level down share link[i]'s bandwidth (that is
 * what a topology's bandwidth means). nlevels = 1: uniform.
 */
struct gf_cost_net {
	size_t nlevels;
	const int *sizes;
	const struct gf_link_cost *links;
	struct gf_line_choice
		*choice; /* NULL: rounds are as long as they are */
};

/*
 * A round in which ranks send to a neighbour at the same time. Groups of
 * `factor` ranks lie `stride` apart; of the `stride` groups that begin at
 * consecutive ranks the first `active` take part; each member sends to the
 * next in its group, the last to the first. A ring of all p ranks: stride 1,
 * factor p; an exchange over distance d: stride d, factor 2; a ring of the
 * masters of groups of g: stride g, factor p/g, active 1. One way, the last
 * member of a group does not send: a tree's pairs.
 */
struct gf_cost_round {
	int ranks, stride, factor, active;
	bool one_way;
};

/* A level's cost for messages of the given bytes. */
struct gf_link_cost gf_cost_level(const struct gf_cost_net *net, size_t level,
				  double bytes);

/*
 * The cost of each of the round's messages, of the given size. The latency is
 * the greatest of the levels where two ranks meet, because a round ends with
 * its slowest message. The rate is the least of bandwidth/(messages that share
 * it) over the levels crossed (BlueConnect's Eq. 7 with the minimum over 0 <= j
 * <= i). Groups need not coincide with levels. Ranks beyond the product of the
 * sizes meet at the outermost level. nlevels 1 reads no sizes. The result has
 * one line, which holds for messages of that size.
 */
struct gf_link_cost gf_cost_link(const struct gf_cost_net *net,
				 const struct gf_cost_round *round,
				 double bytes);

/*
 * Rings: `sends` rounds in a row on the way round the round's groups (factor -
 * 1 of a half, twice as many of an all-reduce), of which so many reduce. No
 * round waits for all: a rank goes on when its neighbour has sent. So the time
 * is that of the slowest chain of hops. A chain goes on to the next rank, for
 * the hop's latency and transfer, or it waits at a link for the transfer
 * before. Chains that go round add the hops' latencies up (as NCCL's tuning
 * does); those that wait cross the slowest link alone.
 */
double gf_cost_ring_s(const struct gf_cost_net *net,
		      const struct gf_cost_round *round, double bytes,
		      int sends, int reduces);

/* One round of m bytes on a link, with and without reduction. */
double gf_cost_send_s(const struct gf_link_cost *link, double bytes);
double gf_cost_send_reduce_s(const struct gf_link_cost *link, double bytes);

#endif
