/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/sparse_costs.h"

int gf_cost_topk_sets(int ranks, int round)
{
	long long reached = 1LL << round;

	if (reached >= ranks)
		return 0;
	return (int)(reached < ranks - reached ? reached : ranks - reached);
}

double gf_cost_gtopk_s(const struct gf_link_cost *link, int ranks,
		       double value_bytes)
{
	int rounds = 0;

	while (gf_cost_topk_sets(ranks, rounds))
		rounds++;
	return 2 * rounds * gf_cost_send_s(link, 2 * value_bytes);
}
