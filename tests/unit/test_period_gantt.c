/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/array.h"
#include "base/heap.h"
#include "simulator/gantt.h"
#include "simulator/period_time.h"
#include "test.h"

#define ROUNDING 1e-9

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

/* A picture without gaps in the group's row. */
static double drawn_s(const struct gf_period *p, const struct gf_outer_time *times,
		      size_t *exchanges)
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
static void test_length(void)
{
	static const double exchanges_s[] = {0, 3, 9, 17, 100};
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
			struct gf_period_time t;
			size_t exchanges;

			gf_sim_period(&p, &model, &step, times, &t);
			EXPECT_NEAR(drawn_s(&p, times, &exchanges), t.period_s, ROUNDING,
				    "delay %zu, exchange %g", delay, exchanges_s[i]);
			EXPECT(exchanges == (i ? 2 : 0), "%zu of 2 exchanges", exchanges);
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
		EXPECT(t->first_step == cases[i].first && t->last_step == cases[i].last,
		       "case %zu: steps %zu to %zu", i, t->first_step, t->last_step);
		EXPECT_NEAR(t->applied_s, cases[i].applied_s, ROUNDING, "case %zu", i);
		EXPECT(t->nbars == cases[i].bars, "case %zu: %zu bars", i, t->nbars);
		gf_gantt_free(t);
	}
}

int main(void)
{
	test_length();
	test_part();
	return TEST_END();
}
