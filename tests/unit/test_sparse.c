/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "collectives/algorithm.h"
#include "test.h"

#define TOLERANCE 1e-12

/* Of the k values of one rank, with as many bytes of indices, on a uniform network (gTop-k, Table
 * I: Eqs. 6 and 7). */
static double set_s(const char *algorithm, const struct gf_link_cost *link, int ranks,
		    double value_bytes)
{
	const struct gf_link_cost whole = {link->alpha_s, value_bytes * link->beta_s_per_byte, 0};
	const struct gf_cost_net net = {.nlevels = 1, .links = &whole};
	const struct gf_coll_args args = {
		.ranks = ranks, .count_elems = 1, .elem_bytes = 2, /* of value_bytes each */
	};

	return gf_sparse_find(algorithm)->cost(&args, &net).s;
}

static double topk_s(const struct gf_link_cost *link, int ranks, double bytes)
{
	return set_s("gather", link, ranks, bytes);
}

static double gtopk_s(const struct gf_link_cost *link, int ranks, double bytes)
{
	return set_s("gtopk", link, ranks, bytes);
}

/* gTop-k section V: 1 GbE, alpha = 0.436 ms, beta = 9e-6 ms per byte, 100 MiB of gradients of which
 * a thousandth travels. */
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
		EXPECT_NEAR(1e3 * topk_s(&link, cases[i].ranks, bytes), cases[i].topk_ms, TOLERANCE,
			    "%d ranks", cases[i].ranks);
		EXPECT_NEAR(1e3 * gtopk_s(&link, cases[i].ranks, bytes), cases[i].gtopk_ms,
			    TOLERANCE, "%d ranks", cases[i].ranks);
	}
	/* they cross at 8 ranks */
	for (p = 2; p <= 64; p *= 2)
		EXPECT((topk_s(&link, p, bytes) < gtopk_s(&link, p, bytes)) == (p < 8), "%d ranks",
		       p);
	/* ranks that are not a power of two send no set twice */
	EXPECT_NEAR(topk_s(&link, 6, bytes), 3 * link.alpha_s + 10 * bytes * link.beta_s_per_byte,
		    TOLERANCE, "6 ranks");
	/* a rank without a partner waits a round */
	EXPECT_NEAR(gtopk_s(&link, 5, bytes), gtopk_s(&link, 8, bytes), TOLERANCE, "5 and 8");
}

int main(void)
{
	test_sparse();
	return TEST_END();
}
