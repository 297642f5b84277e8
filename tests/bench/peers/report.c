/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>

#include "arena.h"
#include "cost/stat.h"

static double median_s(struct contestant *c)
{
	return c->n ? gf_stat_median(c->times, (size_t)c->n) : INFINITY;
}

/* The fastest of a standing and family; the default is a peer, too. NULL: nobody. */
static struct contestant *best(struct arena *a, enum standing standing, int family)
{
	struct contestant *found = NULL, *c;

	for (c = a->list; c < a->list + a->n; c++)
		if ((c->standing == standing || (c->standing == DEFAULT && standing == PEER)) &&
		    c->family == family && (!found || median_s(c) < median_s(found)))
			found = c;
	return found;
}

/* 0: unknown */
static double limit_s(struct arena *a)
{
	double bytes = (double)a->count * sizeof(float);
	double hosts = (double)a->comm->ranks / a->comm->local_ranks;
	struct contestant *memory = best(a, LIMIT, 0);

	if (a->o.link > 0 && hosts > 1)
		return bytes * 2 * (hosts - 1) / hosts / a->o.link;
	return memory ? median_s(memory) : 0;
}

static double spread_percent(struct contestant *c)
{
	return 100 * gf_stat_spread(c->times, (size_t)c->n) / median_s(c);
}

static void print_all(struct arena *a, double limit)
{
	struct contestant *c;

	for (c = a->list; c < a->list + a->n; c++)
		if (c->out)
			printf("%38s%-24s %10.4f ms  out of the race\n", "", c->name,
			       c->heat_s * 1e3);
		else
			printf("%38s%-24s %10.4f ms  +- %3.0f %%  %4.2f x default  %4.0f %% of the "
			       "limit  cpu %8.4f ms\n",
			       "", c->name, median_s(c) * 1e3, spread_percent(c),
			       median_s(&a->list[0]) / median_s(c), 100 * limit / median_s(c),
			       c->processor_s * 1e3);
}

void print_heading(const struct arena *a)
{
	printf("%d ranks, %d per host; median ms; limit by %s\n"
	       "%10s  %9s  %9s  %9s %-15s %9s %5s %-24s %5s %5s %6s %5s %6s\n",
	       a->comm->ranks, a->comm->local_ranks, a->o.link > 0 ? "the link" : "the memory",
	       "bytes", "limit", "default", "best", "peer", "ours", "", "by", "x def", "x bst",
	       "limit", "cpu/d", "regret");
}

static void print_row(struct arena *a, struct contestant *ours, double limit)
{
	struct contestant *peer = best(a, PEER, 0);
	double ours_s = median_s(ours), share = limit / ours_s;

	printf("%10zu  %9.4f  %9.4f  %9.4f %-15s %9.4f +-%2.0f%% %-24s %5.2f %5.2f %5.0f%%%s %5.2f "
	       "%5.0f%%\n",
	       a->count * sizeof(float), limit * 1e3, median_s(&a->list[0]) * 1e3,
	       median_s(peer) * 1e3, peer->name, ours_s * 1e3, spread_percent(ours), ours->name,
	       median_s(&a->list[0]) / ours_s, median_s(peer) / ours_s, 100 * share,
	       share > 1.005 ? " (invalid: above the limit)" : "",
	       ours->processor_s / a->list[0].processor_s,
	       100 * (ours_s / median_s(best(a, OURS, ours->family)) - 1));
}

void print_race(struct arena *a)
{
	double limit = limit_s(a);
	struct contestant *c;

	for (c = a->list; c < a->list + a->n; c++)
		if (c->leads)
			print_row(a, c, limit);
	if (a->o.verbose)
		print_all(a, limit);
	fflush(stdout);
}
