/* SPDX-License-Identifier: BSD-3-Clause */
#include "../../share/tools/tables/asc_printed.h"
#include "base/array.h"
#include "planner/workbench.h"
#include "planner_cases.h"
#include "test.h"

/* tests/data/vectors.md, six: [0] [1-2] [3] [4] [5], all simultaneous. */
static void test_six(void)
{
	static const size_t last[] = {0, 2, 3, 4, 5};
	struct problem_store s;
	struct gf_plan p;
	size_t i;

	store_case(&s, &six, 2);
	EXPECT(!gf_policy_run(&gf_policy_asc_printed, &s.problem, &p, NULL), "six");
	EXPECT_NEAR(p.predicted->iteration_s, 45, 1e-9, "six");
	EXPECT(p.nmessages == GF_ARRAY_LENGTH(last), "%zu messages", p.nmessages);
	for (i = 0; i < p.nmessages && i < GF_ARRAY_LENGTH(last); i++)
		EXPECT(p.messages[i].last == last[i] && p.messages[i].mode == GF_MODE_SIMULTANEOUS,
		       "message %zu ends with tensor %zu", i, p.messages[i].last);
	gf_plan_release(&p);
}

/* --- Algorithm 1, line by line ------------------------------------------- */

struct printed {
	size_t L;
	double a, b, gamma;
	double t_b[CASE_TENSORS + 2], m[CASE_TENSORS + 2]; /* 1..L */
	double tau_b[CASE_TENSORS + 2];
	double t_c[CASE_TENSORS + 2], tau_c[CASE_TENSORS + 2];
	char s[CASE_TENSORS + 2];
};

static double printed_penalty(const struct printed *p, size_t l)
{
	double base = p->a + p->b * p->m[l + 1];

	if (base <= 0)
		return 0;
	return (p->gamma - 1) * p->b * p->m[l + 1] * (1 - (p->tau_c[l] - p->tau_c[l + 1]) / base);
}

static void calc_comm_time(struct printed *p)
{
	size_t l;

	memset(p->t_c, 0, sizeof(p->t_c));
	memset(p->tau_c, 0, sizeof(p->tau_c));
	for (l = p->L; l >= 1; l--) {
		if (p->s[l] == 'n') {
			p->tau_c[l] = p->tau_b[l] + p->t_b[l];
			p->t_c[l] = p->a + p->b * p->m[l];
		} else if (p->s[l] == 'm') {
			p->m[l - 1] += p->m[l];
			p->m[l] = 0;
			p->tau_c[l - 1] = fmax(p->tau_c[l], p->tau_b[l - 1] + p->t_b[l - 1]);
			p->t_c[l - 1] = p->a + p->b * p->m[l - 1];
		} else {
			p->tau_c[l] = p->tau_b[l] + p->t_b[l];
			p->t_c[l] = p->a + p->b * p->m[l] + printed_penalty(p, l);
		}
	}
}

static void determine_layer_type(struct printed *p)
{
	size_t l;

	for (l = p->L - 1; l >= 1; l--)
		p->tau_b[l] = p->tau_b[l + 1] + p->t_b[l + 1];
	memset(p->s, 'n', sizeof(p->s));
	calc_comm_time(p);
	for (l = p->L; l >= 2; l--) {
		double next = p->tau_b[l - 1] + p->t_b[l - 1];

		if (p->tau_c[l] + p->t_c[l] <= p->tau_b[l] + p->t_b[l - 1])
			continue;
		p->s[l] = next < p->tau_c[l] + p->a && !(p->tau_c[l] + p->t_b[l] + p->t_c[l] +
								 printed_penalty(p, l) <
							 next)
				  ? 'm'
				  : 's';
		calc_comm_time(p);
	}
	p->s[1] = 's';
}

static void test_line_by_line(void)
{
	struct problem_store s;
	size_t seed, i, k;

	for (seed = 1; seed <= 200; seed++) {
		struct printed p = {.L = 3 + seed % 13};
		struct gf_workbench w;
		struct gf_draft d;

		store_random(&s, seed, p.L, 2);
		s.network.nallreduce = 1;
		s.costs[0].contention.nentries = 1;
		p.a = s.costs[0].startup_s;
		p.b = s.costs[0].per_byte_s;
		p.gamma = s.gamma[0][0][1];
		for (i = 0; i < p.L; i++) {
			double before = i ? s.tensors[i - 1].ready_s : 0;

			p.t_b[p.L - i] = s.tensors[i].ready_s - before;
			p.m[p.L - i] = 4.0 * (double)s.tensors[i].count_elems;
		}
		determine_layer_type(&p);
		EXPECT(gf_workbench_init(&w, &s.problem, NULL) == 0, "work");
		gf_draft_make(&d, &w, &gf_policy_asc_printed, 2);
		for (i = 0; i < d.nsends; i++)
			for (k = d.sends[i].first; k <= d.sends[i].last; k++) {
				char want = k < d.sends[i].last                 ? 'm'
					    : d.sends[i].mode == GF_MODE_NORMAL ? 'n'
										: 's';

				EXPECT(p.s[p.L - k] == want, "seed %zu tensor %zu: want %c, got %c",
				       seed, k, p.s[p.L - k], want);
			}
		gf_draft_release(&d);
		gf_workbench_release(&w);
	}
}

int main(void)
{
	test_six();
	test_line_by_line();
	return TEST_END();
}
