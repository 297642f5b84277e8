/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/primitives.h"

#include <math.h>
#include <stdbool.h>

/* A scale at which a line begins is a quotient: it may miss it by so much. */
static const double rounding = 1e-12;

/* Of two scales; 0 is without end. */
static double first_end(double a, double b)
{
	return a > 0 && b > 0 ? fmin(a, b) : fmax(a, b);
}

struct gf_cost gf_cost_plus(struct gf_cost a, double times, struct gf_cost b)
{
	a.s += times * b.s;
	a.twice_s += times * b.twice_s;
	a.below_scale = first_end(a.below_scale, b.below_scale);
	return a;
}

struct gf_cost gf_cost_send(const struct gf_link_cost *link, double bytes)
{
	return (struct gf_cost){
		link->alpha_s + link->beta_s_per_byte * bytes,
		link->alpha_s + link->beta_s_per_byte * (2 * bytes),
		link->below_scale,
	};
}

struct gf_cost gf_cost_send_reduce(const struct gf_link_cost *link, double bytes)
{
	struct gf_cost cost = gf_cost_send(link, bytes);

	cost.s += link->gamma_s_per_byte * bytes;
	cost.twice_s += link->gamma_s_per_byte * (2 * bytes);
	return cost;
}

struct gf_cost gf_cost_send_both(const struct gf_link_cost *link, double bytes)
{
	return gf_cost_plus(gf_cost_send_reduce(link, bytes), 1, gf_cost_send(link, bytes));
}

double gf_line_s(const struct gf_line *l, double bytes)
{
	return l->startup_s + l->per_byte_s * bytes;
}

bool gf_line_holds(const struct gf_line *l, double bytes)
{
	return l->from_bytes <= bytes && bytes < l->below_bytes;
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
static long long taking_part(const struct gf_cost_round *round, long long x)
{
	return x / round->stride * round->active + smaller(x % round->stride, round->active);
}

/* The number of ranks among from..to - 1 that send to the first of their group (`last`): the
 * groups' last members, which lie in the last `stride` of a span. The others send forward. */
static long long count(const struct gf_cost_round *round, bool last, long long from, long long to)
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
static long long crossing_of(const struct gf_cost_round *round, long long unit, long long first)
{
	long long ranks = round->ranks, ahead = round->stride;
	long long back = (long long)round->stride * (round->factor - 1);
	long long next = first + unit, end = smaller(next, ranks);
	long long out, in;

	out = count(round, false, larger(first, next - ahead), smaller(end, ranks - ahead));
	in = count(round, false, larger(0, first - ahead), smaller(first, end - ahead));
	if (round->one_way)
		return larger(out, in);
	out += count(round, true, first, smaller(end, first + back));
	in += count(round, true, larger(next, first + back), smaller(ranks, end + back));
	return larger(out, in);
}

/*
 * How many of the round's messages share the link of one unit: the most of any.
 *
 * A unit of no more than `stride` ranks keeps none of its messages; the first has as many as can
 * be. In larger ones only ranks near the ends of a span (its groups' ranks, all of them) matter:
 * units well inside it are alike, and the first of those stands for them. A unit's place in its
 * span is periodic, and ranks that are missing at the end only take messages away, so one period is
 * enough. The loop therefore visits units near one end of a span each. There are no more of them
 * than spans, than units, or than places of an end in a unit: some hundreds among 10^5 ranks.
 */
static long long crossing(const struct gf_cost_round *round, long long unit)
{
	long long stride = round->stride, span = stride * round->factor;
	long long most = smaller(unit, round->active), at, first = 0, period;

	if (round->factor < 2 || unit % span == 0)
		return 0;
	if (unit <= stride && stride + most <= round->ranks)
		return most;
	period = smaller(span / greatest_divisor(span, unit) * unit, round->ranks);
	for (most = 0; first < period; first += unit) {
		most = larger(most, crossing_of(round, unit, first));
		at = first % span;
		if (unit >= stride && at >= stride && at + unit <= span - stride)
			first += (span - stride - unit - at) / unit * unit;
	}
	return most;
}

/* Whether messages that enter level i have their two ranks meet there: not where it joins nothing,
 * or the shortest of them goes beyond its groups. */
static bool meets(const struct gf_cost_net *net, const struct gf_cost_round *round, size_t i,
		  long long unit)
{
	return i + 1 == net->nlevels || unit >= round->ranks ||
	       (net->sizes[i] > 1 && round->stride < unit * net->sizes[i]);
}

/* The size of a round's message by which lines are chosen. */
static double chosen_by(const struct gf_cost_net *net, double bytes)
{
	return bytes * (net->scale ? *net->scale : 1) * (1 + rounding);
}

struct gf_link_cost gf_cost_level(const struct gf_cost_net *net, size_t level, double bytes)
{
	struct gf_link_cost link = net->links[level];
	struct gf_cost_lines lines = {
		{0, link.alpha_s, link.beta_s_per_byte, NULL}, link.larger, link.nlarger};
	struct gf_cost_line line;
	double below;

	link.larger = NULL;
	link.nlarger = 0;
	if (!lines.nlarger || !(bytes > 0))
		return link;
	line = gf_cost_line_at(&lines, chosen_by(net, bytes), 1, &below);
	link.alpha_s = line.startup_s;
	link.beta_s_per_byte = line.per_byte_s;
	link.below_scale = isfinite(below) ? below / bytes : 0;
	return link;
}

struct gf_link_cost gf_cost_link(const struct gf_cost_net *net, const struct gf_cost_round *round,
				 double bytes)
{
	struct gf_link_cost cost = {0}, level;
	double alpha_s = -1; /* no two ranks met */
	bool crossed = false;
	long long unit = 1;

	for (size_t i = 0; i < net->nlevels; i++) {
		long long messages = crossing(round, unit);

		if (messages) {
			level = gf_cost_level(net, i, bytes);
			crossed = true;
			if (meets(net, round, i, unit))
				alpha_s = fmax(alpha_s, level.alpha_s);
			cost.gamma_s_per_byte = level.gamma_s_per_byte;
			cost.beta_s_per_byte = fmax(cost.beta_s_per_byte,
						    level.beta_s_per_byte * (double)messages);
			cost.below_scale = first_end(cost.below_scale, level.below_scale);
		}
		if (i + 1 == net->nlevels || unit >= round->ranks)
			break;
		unit *= net->sizes[i];
	}
	if (crossed && alpha_s >= 0) {
		cost.alpha_s = alpha_s;
		return cost;
	}
	level = gf_cost_level(net, 0, bytes);
	if (!crossed)
		return level;
	cost.alpha_s = level.alpha_s;
	cost.below_scale = first_end(cost.below_scale, level.below_scale);
	return cost;
}

/* A cost by the bytes of a round's message. */
struct line {
	double s, per_byte_s;
};

static struct line plus(struct line a, double times, struct line b)
{
	return (struct line){a.s + times * b.s, a.per_byte_s + times * b.per_byte_s};
}

/* A ring's messages, and for how long its chains are the slowest. */
struct ring {
	const struct gf_cost_net *net;
	const struct gf_cost_round *round;
	double bytes;
	double below_scale;
};

/* Whether `a` is the larger line in the ring's messages; below_scale becomes that from which this
 * is no more so. */
static bool exceeds(struct ring *r, struct line a, struct line b)
{
	bool steeper = a.per_byte_s > b.per_byte_s, beyond;
	double meet = (b.s - a.s) / (a.per_byte_s - b.per_byte_s);

	if (a.per_byte_s == b.per_byte_s)
		return a.s > b.s;
	if (!(meet > 0))
		return steeper;
	beyond = chosen_by(r->net, r->bytes) >= meet;
	if (!beyond)
		r->below_scale = first_end(r->below_scale, meet / r->bytes);
	return beyond == steeper;
}

/* How many units a group passes through; 1: it lies in one. */
static double visited(const struct gf_cost_round *round, long long unit)
{
	long long way = (long long)round->stride * (round->factor - 1);
	long long span = way + round->stride, first = unit - 1;

	if (unit >= round->ranks)
		return 1;
	if (unit <= round->stride)
		return round->factor;
	/* groups that fill units begin with one */
	if (unit % span == 0 || span % unit == 0)
		first = round->active - 1;
	return (double)smaller((first + way) / unit + 1, round->factor);
}

/* The levels on a ring's way, from the inside out. */
struct climb {
	size_t level; /* the next one */
	long long unit;
	double passed;   /* units of this level in one of the next */
	double left;     /* of the next that a group passes through */
	struct line hop; /* of two ranks that meet here */
	double gamma_s_per_byte;
};

static bool climb(struct ring *r, struct climb *c)
{
	const struct gf_cost_net *net = r->net;
	const struct gf_cost_round *round = r->round;
	struct gf_link_cost link;
	double beta, before = c->level ? c->left : round->factor;

	if (c->level == net->nlevels || before <= 1)
		return false;
	c->unit = c->level ? c->unit * net->sizes[c->level - 1] : 1;
	link = gf_cost_level(net, c->level++, r->bytes);
	r->below_scale = first_end(r->below_scale, link.below_scale);
	beta = link.beta_s_per_byte * (double)crossing(round, c->unit);
	c->hop.s = link.alpha_s;
	c->hop.per_byte_s = fmax(c->hop.per_byte_s, beta);
	c->gamma_s_per_byte = link.gamma_s_per_byte;
	c->left = c->level < net->nlevels ? visited(round, c->unit * net->sizes[c->level - 1]) : 1;
	c->passed = before / c->left;
	return true;
}

/* Chains of hops, by how much longer they take than as many waits. */
struct chains {
	struct line unit; /* through a unit of the level */
	struct line edge; /* from its edge inwards, as far as that pays */
	struct line best; /* anywhere, short of a lap */
	/* through all hops of the outermost level, as far as two laps have so many: by turns with
	 * inner hops, they have one less */
	struct line all;
	bool pairs;
	/* an innermost hop, and the next one: what two laps have left out */
	struct line left[2];
	int nleft;
};

static struct line paying(struct ring *r, double times, struct line gain)
{
	static const struct line none;

	return times > 0 && exceeds(r, gain, none) ? plus(none, times, gain) : none;
}

/* To a level of so many units, which hops join. */
static void join(struct ring *r, double units, struct line hop, struct chains *c)
{
	struct line step = plus(c->unit, 1, hop);
	struct line two = plus(hop, 2, c->edge);
	struct line far = plus(two, 1, paying(r, units - 2, step));

	if (!c->nleft || exceeds(r, far, c->best))
		c->best = far;
	if (!c->nleft)
		c->pairs = units <= 2;
	c->all = c->pairs ? far : plus(two, 1, paying(r, units - 1, step));
	for (int n = units > 2 ? 2 : 1; n && c->nleft < 2; n--)
		c->left[c->nleft++] = hop;
	c->edge = plus(c->edge, 1, paying(r, units - 1, step));
	c->unit = plus(plus((struct line){0}, units, c->unit), units - 1, hop);
}

/* Levels that join ranks, each at least two units of the one before. */
#define GF_NET_JOINS_MOST 32

struct gf_cost gf_cost_ring(const struct gf_cost_net *net, const struct gf_cost_round *round,
			    double bytes, bool reduces, bool gathers)
{
	int hops = round->factor - 1, sends = (reduces + gathers) * hops;
	struct ring r = {net, round, bytes, 0};
	struct climb at = {0}, met[GF_NET_JOINS_MOST];
	struct chains chains = {0};
	struct line waits = {0}, lap;
	int n = 0, i;
	double slope;

	if (hops < 1)
		return (struct gf_cost){0};
	while (climb(&r, &at))
		if (at.passed > 1)
			met[n++] = at;
	waits.per_byte_s = at.hop.per_byte_s;
	for (i = 0; i < n; i++) {
		struct line hop = plus(met[i].hop, -1, waits);

		hop.per_byte_s += met[i].gamma_s_per_byte * (reduces * hops) / sends;
		join(&r, met[i].passed, hop, &chains);
		if (met[i].left <= 1) /* the last hop closes the circle */
			chains.unit = plus(chains.unit, 1, hop);
	}
	/* if no hop is better waited for, two laps less two hops, or half of that; else, in two
	 * laps, one before the best chain */
	lap = plus(chains.unit, -1, chains.left[0]);
	if (sends >= round->factor)
		lap = plus(plus(lap, 1, chains.unit), -1, chains.left[chains.nleft - 1]);
	if (exceeds(&r, (struct line){0, 0}, chains.left[0]))
		lap = plus(chains.all, sends >= round->factor, paying(&r, 1, chains.unit));
	if (exceeds(&r, lap, chains.best))
		chains.best = lap;
	slope = sends * waits.per_byte_s + chains.best.per_byte_s;
	return (struct gf_cost){chains.best.s + slope * bytes, chains.best.s + slope * (2 * bytes),
				r.below_scale};
}
