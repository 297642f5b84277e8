/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "cost/sparse_costs.h"
#include "test.h"

#define TOLERANCE 1e-12

static double topk_s(const struct gf_link_cost *link, int ranks, double bytes)
{
	double total = 0;
	int round, sets;

	for (round = 0; (sets = gf_cost_topk_sets(ranks, round)); round++)
		total += gf_cost_send_s(link, sets * 2 * bytes);
	return total;
}

/* gTop-k section V: 1 GbE, alpha = 0.436 ms, beta = 9e-6 ms per byte, 100 MiB
 * of gradients of which a thousandth travels. */
static void test_sparse(void)
{
	static const struct {
		int ranks;
		double topk_ms, gtopk_ms;
	} cases[] = {
		{1, 0, 0},
		{2, 2.3234368, 4.6468736},
		{4, 6.5343104, 9.2937472},
		{32, 60.6905408, 23.234368},
	};
	struct gf_link_cost link = {0.436e-3, 9e-9, 0};
	double bytes = 104857600 * 0.001;
	size_t i;
	int p;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		EXPECT_NEAR(1e3 * topk_s(&link, cases[i].ranks, bytes),
			    cases[i].topk_ms, TOLERANCE, "%d ranks",
			    cases[i].ranks);
		EXPECT_NEAR(1e3 * gf_cost_gtopk_s(&link, cases[i].ranks, bytes),
			    cases[i].gtopk_ms, TOLERANCE, "%d ranks",
			    cases[i].ranks);
	}
	/* they cross at 8 ranks */
	for (p = 2; p <= 64; p *= 2)
		EXPECT((topk_s(&link, p, bytes) <
			gf_cost_gtopk_s(&link, p, bytes)) == (p < 8),
		       "%d ranks", p);
	/* ranks that are not a power of two send no set twice */
	EXPECT_NEAR(topk_s(&link, 6, bytes),
		    3 * link.alpha_s + 10 * bytes * link.beta_s_per_byte,
		    TOLERANCE, "6 ranks");
	/* a rank without a partner waits a round */
	EXPECT_NEAR(gf_cost_gtopk_s(&link, 5, bytes),
		    gf_cost_gtopk_s(&link, 8, bytes), TOLERANCE, "5 and 8");
}

int main(void)
{
	test_sparse();
	return TEST_END();
}
