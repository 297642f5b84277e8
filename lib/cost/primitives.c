/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/primitives.h"

#include <math.h>
#include <stdbool.h>

/* A scale at which a line begins is a quotient: it may miss it by so much. */
static const double rounding = 1e-12;

double gf_cost_send_s(const struct gf_link_cost *link, double bytes)
{
	return link->alpha_s + link->beta_s_per_byte * bytes;
}

double gf_cost_send_reduce_s(const struct gf_link_cost *link, double bytes)
{
	return gf_cost_send_s(link, bytes) + link->gamma_s_per_byte * bytes;
}

static long long greatest_divisor(long long a, long long b)
{
	while (b) {
		long long rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static long long smaller(long long a, long long b)
{
	return a < b ? a : b;
}

static long long larger(long long a, long long b)
{
	return a > b ? a : b;
}

/* The number of ranks among 0..x - 1 in groups that take part. */
static long long taking_part(const struct gf_net_round *round, long long x)
{
	return x / round->stride * round->active +
	       smaller(x % round->stride, round->active);
}

/* The number of ranks among from..to - 1 that send to the first of their group
 * (`last`): the groups' last members, which lie in the last `stride` of a span.
 * The others send forward. */
static long long count(const struct gf_net_round *round, bool last,
		       long long from, long long to)
{
	long long span = (long long)round->stride * round->factor;
	long long ahead = taking_part(round, span - round->stride);
	long long forward, all;

	if (from >= to)
		return 0;
	forward = (to / span - from / span) * ahead +
		  smaller(taking_part(round, to % span), ahead) -
		  smaller(taking_part(round, from % span), ahead);
	all = taking_part(round, to) - taking_part(round, from);
	return last ? all - forward : forward;
}

/* The messages that leave, or enter, the unit of ranks from `first` on. */
static long long crossing_of(const struct gf_net_round *round, long long unit,
			     long long first)
{
	long long ranks = round->ranks, ahead = round->stride;
	long long back = (long long)round->stride * (round->factor - 1);
	long long next = first + unit, end = smaller(next, ranks);
	long long out, in;

	out = count(round, false, larger(first, next - ahead),
		    smaller(end, ranks - ahead)) +
	      count(round, true, first, smaller(end, first + back));
	in = count(round, false, larger(0, first - ahead),
		   smaller(first, end - ahead)) +
	     count(round, true, larger(next, first + back),
		   smaller(ranks, end + back));
	return larger(out, in);
}

/*
 * How many of the round's messages share the link of one unit: the most of any.
 *
 * A unit of no more than `stride` ranks keeps none of its messages; the first
 * has as many as can be. In larger ones only ranks near the ends of a span (its
 * groups' ranks, all of them) matter: units well inside it are alike, and the
 * first of those stands for them. A unit's place in its span is periodic, and
 * ranks that are missing at the end only take messages away, so one period is
 * enough. The loop therefore visits units near one end of a span each. There
 * are no more of them than spans, than units, or than places of an end in a
 * unit: some hundreds among 10^5 ranks.
 */
static long long crossing(const struct gf_net_round *round, long long unit)
{
	long long stride = round->stride, span = stride * round->factor;
	long long most = smaller(unit, round->active), at, first = 0, period;

	if (round->factor < 2 || unit % span == 0)
		return 0;
	if (unit <= stride && stride + most <= round->ranks)
		return most;
	period = smaller(span / greatest_divisor(span, unit) * unit,
			 round->ranks);
	for (most = 0; first < period; first += unit) {
		most = larger(most, crossing_of(round, unit, first));
		at = first % span;
		if (unit >= stride && at >= stride &&
		    at + unit <= span - stride)
			first += (span - stride - unit - at) / unit * unit;
	}
	return most;
}

/* Whether messages that enter level i have their two ranks meet there: not
 * where it joins nothing, or the shortest of them goes beyond its groups. */
static bool meets(const struct gf_net_cost *net,
		  const struct gf_net_round *round, size_t i, long long unit)
{
	return i + 1 == net->nlevels || unit >= round->ranks ||
	       (net->sizes[i] > 1 && round->stride < unit * net->sizes[i]);
}

struct gf_link_cost gf_net_level(const struct gf_net_cost *net, size_t level,
				 double bytes)
{
	struct gf_link_cost link = net->links[level];
	struct gf_cost_lines lines = {
		{0, link.alpha_s, link.beta_s_per_byte, NULL},
		link.larger,
		link.nlarger};
	struct gf_line_choice *c = net->choice;
	struct gf_cost_line line;
	double below;

	link.larger = NULL;
	link.nlarger = 0;
	if (!lines.nlarger || !(bytes > 0))
		return link;
	line = gf_cost_line_at(
		&lines, bytes * (c ? c->scale : 1) * (1 + rounding), 1, &below);
	link.alpha_s = line.startup_s;
	link.beta_s_per_byte = line.per_byte_s;
	if (c) {
		c->from_scale =
			fmax(c->from_scale, (double)line.from_bytes / bytes);
		c->below_scale = fmin(c->below_scale, below / bytes);
	}
	return link;
}

struct gf_link_cost gf_net_link(const struct gf_net_cost *net,
				const struct gf_net_round *round, double bytes)
{
	struct gf_link_cost cost = {0}, level;
	double alpha_s = -1; /* no two ranks met */
	bool crossed = false;
	long long unit = 1;
	size_t i;

	for (i = 0; i < net->nlevels; i++) {
		long long messages = crossing(round, unit);

		if (messages) {
			level = gf_net_level(net, i, bytes);
			crossed = true;
			if (meets(net, round, i, unit))
				alpha_s = fmax(alpha_s, level.alpha_s);
			cost.gamma_s_per_byte = level.gamma_s_per_byte;
			cost.beta_s_per_byte =
				fmax(cost.beta_s_per_byte,
				     level.beta_s_per_byte * (double)messages);
		}
		if (i + 1 == net->nlevels || unit >= round->ranks)
			break;
		unit *= net->sizes[i];
	}
	if (!crossed)
		return gf_net_level(net, 0, bytes);
	cost.alpha_s =
		alpha_s >= 0 ? alpha_s : gf_net_level(net, 0, bytes).alpha_s;
	return cost;
}
