/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/primitives.h"

#include <stdlib.h>

#include "base/heap.h"

double gf_cost_send_s(const struct gf_link_cost *link, double bytes)
{
	return link->alpha_s + link->beta_s_per_byte * bytes;
}

double gf_cost_send_reduce_s(const struct gf_link_cost *link, double bytes)
{
	return gf_cost_send_s(link, bytes) + link->gamma_s_per_byte * bytes;
}

static long long smaller(long long a, long long b)
{
	return a < b ? a : b;
}

/* The most messages that leave, or enter, one unit of consecutive ranks,
 * counted one by one: for groups that lie across the units' borders. */
static long long count_crossing(const struct gf_net_round *round,
				long long unit)
{
	long long span = (long long)round->stride * round->factor, most = 0;
	size_t units = (size_t)(round->ranks / unit + 1), u;
	long long *out = gf_xcalloc(2 * units, sizeof(*out));
	long long r;

	for (r = 0; r < round->ranks; r++) {
		long long next = r % span + round->stride < span
					 ? r + round->stride
					 : r + round->stride - span;

		if (r % round->stride >= round->active ||
		    next >= round->ranks || next / unit == r / unit)
			continue;
		out[2 * (r / unit)]++;
		out[2 * (next / unit) + 1]++;
	}
	for (u = 0; u < 2 * units; u++)
		if (out[u] > most)
			most = out[u];
	free(out);
	return most;
}

/* How many of the round's messages share the link of one unit. */
static long long crossing(const struct gf_net_round *round, long long unit)
{
	long long stride = round->stride, span = stride * round->factor;

	if (round->factor < 2 || unit % span == 0)
		return 0;
	if (stride % unit == 0)
		return smaller(unit, round->active);
	if (unit % stride == 0 && span % unit == 0)
		return round->active;
	return count_crossing(round, unit);
}

struct gf_link_cost gf_net_link(const struct gf_net_cost *net,
				const struct gf_net_round *round)
{
	struct gf_link_cost cost = net->links[0];
	long long unit = 1;
	size_t i;

	for (i = 0; i < net->nlevels; i++) {
		long long messages = crossing(round, unit);
		double beta = net->links[i].beta_s_per_byte * (double)messages;

		if (messages) {
			cost.alpha_s = net->links[i].alpha_s;
			cost.gamma_s_per_byte = net->links[i].gamma_s_per_byte;
			if (beta > cost.beta_s_per_byte)
				cost.beta_s_per_byte = beta;
		}
		if (i + 1 == net->nlevels || unit >= round->ranks)
			break;
		unit *= net->sizes[i];
	}
	return cost;
}
