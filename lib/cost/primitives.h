/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/cost: what a message or a layer costs: alpha, beta and gamma, least squares, data sheets of
 * GPUs. */
#ifndef GF_COST_PRIMITIVES_H
#define GF_COST_PRIMITIVES_H

#include <stdbool.h>
#include <stddef.h>

#include "documents/cost_line.h"

/*
 * The alpha-beta-gamma model (Hockney 1994; Thakur, Rabenseifner, Gropp 2005): a round that moves m
 * bytes costs alpha + beta*m, reducing them gamma*m.
 */
struct gf_link_cost {
	double alpha_s;          /* per round */
	double beta_s_per_byte;  /* transfer */
	double gamma_s_per_byte; /* local reduction */
	/* In a network: the lines that take alpha's and beta's place, each from some size of the
	 * round's message on; borrowed, none is common. */
	const struct gf_cost_line *larger;
	size_t nlarger;
	/* These figures hold for messages of the round that are less than so many times as long; 0:
	 * for all longer ones. */
	double below_scale;
};

/*
 * What a message costs, as two points of a straight line: its own size, and twice that by the same
 * lines of the levels.
 */
struct gf_cost {
	double s, twice_s;
	double below_scale; /* as that of a link */
};

/* A cost in messages of a range of sizes. */
struct gf_line {
	double from_bytes, below_bytes; /* INFINITY: of all larger ones */
	double startup_s, per_byte_s;
};

/*
 * A network of levels, innermost first. sizes[i] groups meet at level i; the ranks inside one group
 * one level down share link[i]'s bandwidth (that is what a topology's bandwidth means). nlevels =
 * 1: uniform.
 */
struct gf_cost_net {
	size_t nlevels;
	const int *sizes;
	const struct gf_link_cost *links;
	/* Rounds are charged by the lines that count if their messages are so many times as long;
	 * NULL: as long as they are. */
	const double *scale;
};

/*
 * A round in which ranks send to a neighbour at the same time. Groups of `factor` ranks lie
 * `stride` apart; of the `stride` groups that begin at consecutive ranks the first `active` take
 * part; each member sends to the next in its group, the last to the first. A ring of all p ranks:
 * stride 1, factor p; an exchange over distance d: stride d, factor 2; a ring of the masters of
 * groups of g: stride g, factor p/g, active 1. One way, the last member of a group does not send: a
 * tree's pairs.
 */
struct gf_cost_round {
	int ranks, stride, factor, active;
	bool one_way;
};

/* A level's cost for messages of the given bytes. */
struct gf_link_cost gf_cost_level(const struct gf_cost_net *net, size_t level, double bytes);

/*
 * The cost of each of the round's messages, of the given size. The latency is the greatest of the
 * levels where two ranks meet, because a round ends with its slowest message. The rate is the least
 * of bandwidth/(messages that share it) over the levels crossed (BlueConnect's Eq. 7 with the
 * minimum over 0 <= j <= i). Groups need not coincide with levels. Ranks beyond the product of the
 * sizes meet at the outermost level. nlevels 1 reads no sizes. The result has one line, which holds
 * for messages of that size.
 */
struct gf_link_cost gf_cost_link(const struct gf_cost_net *net, const struct gf_cost_round *round,
				 double bytes);

/*
 * Rings: a reduce-scatter round the round's groups, an all-gather, or one after the other, of
 * factor - 1 rounds each. No round waits for all: a rank goes on when its neighbour has sent. So
 * the time is that of the slowest chain of hops. A chain goes on to the next rank, for the hop's
 * latency and transfer, or it waits at a link for the transfer before. Chains that go round add the
 * hops' latencies up (as NCCL's tuning does); those that wait cross the slowest link alone.
 */
struct gf_cost gf_cost_ring(const struct gf_cost_net *net, const struct gf_cost_round *round,
			    double bytes, bool reduces, bool gathers);

/* One round of m bytes on a link: without reduction, with it, and one of each.
 */
struct gf_cost gf_cost_send(const struct gf_link_cost *link, double bytes);
struct gf_cost gf_cost_send_reduce(const struct gf_link_cost *link, double bytes);
struct gf_cost gf_cost_send_both(const struct gf_link_cost *link, double bytes);

/* The cost of a and then of b so many times. */
struct gf_cost gf_cost_plus(struct gf_cost a, double times, struct gf_cost b);

/* The cost by a line, also at sizes for which it does not hold. */
double gf_line_s(const struct gf_line *l, double bytes);
bool gf_line_holds(const struct gf_line *l, double bytes);

#endif
