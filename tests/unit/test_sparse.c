/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "cost/pipe.h"
#include "cost/sparse.h"
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

static void test_pipe(void)
{
	static const struct {
		double compute, communication, steps;
		int staleness;
		double total;
	} cases[] = {
		{10, 14, 100, 1, 2400}, {10, 14, 100, 2, 1410},
		{10, 14, 100, 3, 1410}, {14, 10, 100, 2, 1410},
		{10, 14, 1, 2, 24},     {10, 14, 0, 2, 0},
	};
	struct gf_link_cost link = {2, 3, 5};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_pipe_times t = {
			cases[i].compute / 4,
			cases[i].compute / 4,
			cases[i].compute / 2,
			cases[i].communication,
		};

		EXPECT_NEAR(
			gf_pipe_total_s(&t, cases[i].steps, cases[i].staleness),
			cases[i].total, TOLERANCE, "case %zu", i);
		EXPECT_NEAR(gf_pipe_synchronous_s(&t, 100), 2400, TOLERANCE,
			    "case %zu", i);
		EXPECT_NEAR(gf_pipe_ideal_s(&t, 100, 2), 1200, TOLERANCE,
			    "case %zu", i);
		EXPECT_NEAR(gf_pipe_efficiency(&t),
			    fmin(1, cases[i].compute / cases[i].communication),
			    TOLERANCE, "case %zu", i);
	}
	/* 2*3*2 + 2*(3/4)*8*3 + (3/4)*8*5 + 7; twelve more rounds in thirds */
	EXPECT_NEAR(gf_pipe_ring_s(&link, 4, 8, 7), 85, TOLERANCE, "ring");
	EXPECT_NEAR(gf_pipe_ring_segments_s(&link, 4, 8, 3, 7), 123, TOLERANCE,
		    "segments");
}

int main(void)
{
	test_sparse();
	test_pipe();
	return TEST_END();
}
