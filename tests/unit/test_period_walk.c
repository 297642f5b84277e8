/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "sim/gantt.h"
#include "sim/period_time.h"
#include "test.h"

#define ROUNDING  1e-9
#define DRAWN     0.01 /* of 10000 periods */
#define DEVIATION 0.03 /* of a standard deviation of those */

static struct gf_tensor tensors[] = {
	{.name = (char *)"a", .count_elems = 1, .dtype = GF_F32},
	{.name = (char *)"b", .count_elems = 3, .dtype = GF_F32},
};
static struct gf_message messages[] = {{.last = 0}, {.first = 1, .last = 1}};
static struct gf_model_profile model = {
	.tensors = tensors,
	.ntensors = 2,
	.forward_s = 1,
	.backward_s = 2,
	.update_s = 0.5,
	.overlap_slowdown = 1.5,
};
static const struct gf_sim_result step = {
	.iteration_s = 3.5,
	.forward_end_s = 1,
	.backward_end_s = 3,
};

/* Mean and standard deviation of so many periods after the first one. */
static double walk(const struct gf_period *p, const struct gf_group_kind *kinds,
		   size_t nkinds, const struct gf_outer_time *times, size_t n,
		   double *deviation)
{
	double sum = 0, squares = 0, before, now;
	struct gf_period_walk w;
	size_t i;

	gf_period_walk_init(&w, p, kinds, nkinds, 1);
	before = gf_period_walk_on(&w, times);
	for (i = 0; i < n; i++, before = now) {
		now = gf_period_walk_on(&w, times);
		sum += now - before;
		squares += (now - before) * (now - before);
	}
	gf_period_walk_release(&w);
	sum /= (double)n;
	*deviation = sqrt(fmax(0, squares / (double)n - sum * sum));
	return sum;
}

/* A picture without gaps in the group's row. */
static double drawn_s(const struct gf_period *p,
		      const struct gf_outer_time *times, size_t *exchanges)
{
	struct gf_gantt *t = gf_xcalloc(1, sizeof(*t));
	double now_s = 0;
	size_t i;

	gf_gantt_period(t, p, &model, &step, times);
	*exchanges = 0;
	for (i = 0; i < t->nbars; i++) {
		*exchanges += t->bars[i].row == 1;
		if (t->bars[i].row)
			continue;
		EXPECT_NEAR(t->bars[i].start_s, now_s, ROUNDING, "bar %zu", i);
		now_s = t->bars[i].end_s;
	}
	EXPECT_NEAR(t->step_end_s[0], now_s, ROUNDING, "the end");
	gf_gantt_free(t);
	return now_s;
}

/* As the closed form has it, whatever the exchange lasts. */
static void test_alike(void)
{
	static const double exchanges_s[] = {0, 3, 9, 17, 100};
	const double steps_s[] = {3.5};
	size_t delay, i;

	for (delay = 0; delay < 5; delay++)
		for (i = 0; i < GF_ARRAY_LENGTH(exchanges_s); i++) {
			const struct gf_period p = {.steps = 10,
						    .fragments = 2,
						    .delay = delay,
						    .messages = messages,
						    .nmessages = 2};
			const struct gf_outer_time times[] = {
				{exchanges_s[i], 0.2, 1.5},
				{exchanges_s[i] / 2, 0.1, 1},
			};
			const struct gf_group_kind alike = {3, steps_s, 1, step,
							    &model};
			struct gf_period_time t;
			double deviation;
			size_t exchanges;

			gf_sim_period(&p, &model, &step, times, &t);
			EXPECT_NEAR(walk(&p, &alike, 1, times, 2, &deviation),
				    t.period_s, ROUNDING,
				    "delay %zu, exchange %g", delay,
				    exchanges_s[i]);
			EXPECT_NEAR(drawn_s(&p, times, &exchanges), t.period_s,
				    ROUNDING, "delay %zu, exchange %g", delay,
				    exchanges_s[i]);
			EXPECT(exchanges == (i ? 2 : 0), "%zu of 2 exchanges",
			       exchanges);
		}
}

static void test_drawn(void)
{
	static const double slow[] = {4}, often[] = {1, 3},
			    pairs[] = {1, 1, 3, 3},
			    rare[] = {1, 0, 0, 0, 0, 0, 0};
	static const struct {
		const char *what;
		size_t steps, delay;
		struct gf_group_kind kinds[2];
		size_t nkinds;
		double mean, deviation;
	} cases[] = {
		{"one group", 1, 0, {{1, often, 2}}, 1, 2, 1},
		/* 3 unless both draw a 1 */
		{"the later of two", 1, 0, {{2, often, 2}}, 1, 2.5, 0.866},
		{"all wait for the slow one",
		 1,
		 0,
		 {{5, often, 2}, {1, slow, 1}},
		 2,
		 4,
		 0},
		/* two steps take 2, 4, 4 or 6 */
		{"two steps", 2, 0, {{2, pairs, 4}}, 1, 4.75, 1.199},
		/* the mean of another program's draws; a group alone takes 4 */
		{"one of two steps catches up",
		 2,
		 1,
		 {{2, pairs, 4}},
		 1,
		 4.304,
		 -1},
		/* 100 blocks of 16 steps, each a variance of 2/7 * 5/7 */
		{"a long period", 1600, 0, {{1, rare, 7}}, 1, 1600 / 7., 4.518},
	};
	const struct gf_outer_time at_once = {0, 0, 1};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_period p = {.steps = cases[i].steps,
					    .fragments = 1,
					    .delay = cases[i].delay};
		struct gf_group_kind kinds[2] = {cases[i].kinds[0],
						 cases[i].kinds[1]};
		double deviation;

		kinds[0].model = kinds[1].model = &model;
		kinds[0].step = kinds[1].step = step;
		EXPECT_NEAR(walk(&p, kinds, cases[i].nkinds, &at_once, 10000,
				 &deviation),
			    cases[i].mean, DRAWN, "%s", cases[i].what);
		if (cases[i].deviation >= 0)
			EXPECT_NEAR(deviation, cases[i].deviation, DEVIATION,
				    "%s", cases[i].what);
	}
}

/* Of a long period the exchange that takes longest, and what is around it. */
static void test_part(void)
{
	static const struct {
		size_t steps, delay, first, last, bars;
		double applied_s;
	} cases[] = {
		{100, 0, 99, 102, 7, 7 + 9},
		{100, 1, 99, 103, 8, 7 + 9},
		{100, 40, 99, 142, 8, 7 + 40 * 3.5 + 2},
		{1000, 499, 1000, 1500, 8, 500 * 3.5 + 2},
	};
	const struct gf_outer_time times[] = {{3, 0.1, 1}, {9, 0.1, 1.5}};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_period p = {.steps = cases[i].steps,
					    .fragments = 2,
					    .delay = cases[i].delay,
					    .messages = messages,
					    .nmessages = 2};
		struct gf_gantt *t = gf_xcalloc(1, sizeof(*t));

		gf_gantt_period(t, &p, &model, &step, times);
		EXPECT(t->first_step == cases[i].first &&
			       t->last_step == cases[i].last,
		       "case %zu: steps %zu to %zu", i, t->first_step,
		       t->last_step);
		EXPECT_NEAR(t->applied_s, cases[i].applied_s, ROUNDING,
			    "case %zu", i);
		EXPECT(t->nbars == cases[i].bars, "case %zu: %zu bars", i,
		       t->nbars);
		gf_gantt_free(t);
	}
}

int main(void)
{
	test_alike();
	test_drawn();
	test_part();
	return TEST_END();
}
