/* SPDX-License-Identifier: BSD-3-Clause */
#include "cost/sparse.h"

static double rounds(int ranks)
{
	long long reached = 1;
	int n = 0;

	for (; reached < ranks; reached *= 2)
		n++;
	return n;
}

double gf_cost_topk_s(const struct gf_link_cost *link, int ranks,
		      double value_bytes)
{
	return rounds(ranks) * link->alpha_s +
	       2 * (double)(ranks - 1) * value_bytes * link->beta_s_per_byte;
}

double gf_cost_gtopk_s(const struct gf_link_cost *link, int ranks,
		       double value_bytes)
{
	return 2 * rounds(ranks) * gf_cost_send_s(link, 2 * value_bytes);
}
