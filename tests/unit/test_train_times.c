/* SPDX-License-Identifier: BSD-3-Clause */
/* The times that are recorded of steps, and their outputs: report, trace, log.
 */
#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "base/file.h"
#include "base/heap.h"
#include "cost/stat.h"
#include "ranks.h"
#include "runtime/traces/rank_traces.h"
#include "trainer/run_report.h"
#include "two_messages.h"

#define TOLERANCE 1e-9

/* Step s: loading an eighth, forward 1, backward 2, waiting s, update .5; message 0 from .5 to 1.5
 * after forward, message 1 up to the end of the waiting. */
static void record(struct gf_timeline *t, size_t step, double waiting)
{
	struct gf_step_times *s = gf_timeline_next(t, step);
	double at = 100. * (double)step;

	s->load_s = .125;
	s->start_s = at;
	s->applied_start_s = at;
	s->forward_s = at + 1;
	s->backward_s = at + 3;
	s->exchanged_s = at + 3 + waiting;
	s->end_s = s->exchanged_s + .5;
	s->gradient_s[0] = at + 1.5;
	s->gradient_s[1] = at + 2.5;
	s->messages[0] = (struct gf_message_times){at + 1.5, at + 1.5, at + 2.5};
	s->messages[1] = (struct gf_message_times){at + 2.5, at + 2.5, s->exchanged_s};
}

static void test_timeline(void)
{
	static const struct {
		size_t steps, kept, settled, oldest;
	} cases[] = {
		{0, 0, 0, 0},    {1, 1, 0, 1},      {2, 2, 1, 1},     {19, 19, 9, 1},
		{20, 20, 10, 1}, {512, 512, 10, 1}, {515, 512, 7, 4}, {600, 512, 0, 89},
	};
	size_t i, step;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_timeline t;

		gf_timeline_init(&t, 2, 2);
		for (step = 1; step <= cases[i].steps; step++)
			record(&t, step, 1);
		EXPECT(gf_timeline_count(&t) == cases[i].kept &&
			       gf_timeline_settled(&t) == cases[i].settled,
		       "%zu steps: %zu kept, settled from %zu", cases[i].steps,
		       gf_timeline_count(&t), gf_timeline_settled(&t));
		if (cases[i].kept)
			EXPECT(gf_timeline_at(&t, 0)->step == cases[i].oldest &&
				       gf_timeline_last(&t)->step == cases[i].steps,
			       "%zu steps", cases[i].steps);
		gf_timeline_release(&t);
	}
}

static void test_report(void)
{
	struct gf_plan plan = two_messages();
	struct gf_train_result result = {0};
	struct gf_report r;
	char *text;
	size_t step;

	gf_timeline_init(&result.timeline, 2, 2);
	text = gf_report_text(&plan, plan.predicted, &result);
	EXPECT_TEXT(text, "");
	free(text);
	/* wild while warming up, then 2, 4, 3, 2, 4, 3, ...: median 3 */
	for (step = 1; step <= 10; step++)
		record(&result.timeline, step, 50);
	for (; step <= 25; step++)
		record(&result.timeline, step, 2. + (double)(step * 2 % 3));
	/* recorded by hand, so not closed */
	gf_timeline_close(&result.timeline);
	EXPECT_NEAR(result.timeline.parts.load_s, .125, TOLERANCE, "of one");
	gf_report_make(&plan, plan.predicted, &result.timeline, &r);
	EXPECT(r.nsteps == 15 && r.nmessages == 2 && r.has_prediction, "%zu", r.nsteps);
	EXPECT_NEAR(r.iteration_s, 6.5, TOLERANCE, "iteration");
	EXPECT_NEAR(r.load_s, .125, TOLERANCE, "loading");
	EXPECT_NEAR(r.forward_s, 1, TOLERANCE, "forward");
	EXPECT_NEAR(r.backward_s, 2, TOLERANCE, "backward");
	EXPECT_NEAR(r.wait_s, 3, TOLERANCE, "waiting");
	EXPECT_NEAR(r.update_s, .5, TOLERANCE, "update");
	EXPECT_NEAR(r.messages[1].measured.end_s, 6, TOLERANCE, "end");
	EXPECT_NEAR(r.messages[1].predicted.end_s, 5.5, TOLERANCE, "end");
	gf_report_release(&r);
	result.test = (struct gf_train_row){.part = "test", .correct = 3, .samples = 8};
	text = gf_report_text(&plan, plan.predicted, &result);
	EXPECT(strstr(text, "measured/predicted 1.083\n") &&
		       strstr(text, "\ntest accuracy 37.50 % (3 of 8)\n"),
	       "%s", text);
	EXPECT(!strstr(text, "warm-up"), "%s", text);
	free(text);
	/* steps 11 to 25 count */
	result.warmup_steps = 15;
	text = gf_report_text(&plan, plan.predicted, &result);
	EXPECT(strstr(text, "\n5 of the 15 steps are in the selection's warm-up"), "%s", text);
	free(text);
	gf_timeline_release(&result.timeline);
	gf_plan_release(&plan);
}

/* Messages of the step before: their times are counted from its start. */
static void test_stale_report(void)
{
	struct gf_plan plan = two_messages();
	struct gf_train_result result = {0};
	struct gf_step_times *s;
	struct gf_report r;
	size_t step, i;

	gf_timeline_init(&result.timeline, 2, 2);
	for (step = 1; step <= 20; step++) {
		record(&result.timeline, step, 1);
		s = &result.timeline.ring[step - 1];
		s->applied_start_s = step > 12 ? s->start_s - 100 : NAN;
		for (i = 0; i < 2; i++)
			s->messages[i] = step > 12 ? (struct gf_message_times){s->start_s - 98,
									       s->start_s - 97,
									       s->start_s + 1}
						   : (struct gf_message_times){NAN, NAN, NAN};
	}
	gf_report_make(&plan, NULL, &result.timeline, &r);
	EXPECT_NEAR(r.messages[0].measured.ready_s, 2, TOLERANCE, "ready");
	EXPECT_NEAR(r.messages[1].measured.start_s, 3, TOLERANCE, "start");
	EXPECT_NEAR(r.messages[1].measured.end_s, 101, TOLERANCE, "end");
	gf_report_release(&r);
	gf_timeline_release(&result.timeline);
	gf_plan_release(&plan);
}

static void test_median(void)
{
	double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};

	EXPECT_NEAR(gf_stat_median(odd, 3), 2, TOLERANCE, "odd");
	EXPECT_NEAR(gf_stat_median(even, 4), 2.5, TOLERANCE, "even");
}

static void test_prediction(void)
{
	struct gf_plan plan = two_messages();
	const struct gf_training four = {.batch = 4, .accumulate = 1};
	const struct gf_training eight = {.batch = 8, .accumulate = 1};
	const struct gf_training thrice = {.batch = 4, .accumulate = 3};
	struct gf_prediction own = {0};
	struct gf_error why;

	EXPECT(gf_train_prediction(&plan, &four, false, &own, &why) == plan.predicted, "%s",
	       why.text);
	EXPECT(!gf_train_prediction(&plan, &eight, false, &own, &why), "other");
	EXPECT_TEXT(why.text, "the plan's times are for batch 4, this run has 8");
	/* Without slowdown: 0 goes from 1.5 to 2.5, 1 is ready at 3, not 4, and takes .5 + 8 *
	 * .125. */
	EXPECT(gf_train_prediction(&plan, &eight, true, &own, &why) == &own, "%s", why.text);
	EXPECT_NEAR(own.messages[0].end_s, 2.5, TOLERANCE, "message 0");
	EXPECT_NEAR(own.messages[1].start_s, 3, TOLERANCE, "message 1");
	EXPECT_NEAR(own.messages[1].end_s, 4.5, TOLERANCE, "message 1");
	EXPECT_NEAR(own.iteration_s, 5, TOLERANCE, "iteration");
	free(own.messages);
	/* two batches more in front, 3 s each. 0 goes from 7.5 to 8.5 and halves backward's speed,
	 * so that 1 is ready at 9.5: to 11 */
	EXPECT(gf_train_prediction(&plan, &thrice, false, &own, &why) == &own, "%s", why.text);
	EXPECT_NEAR(own.messages[0].start_s, 7.5, TOLERANCE, "accumulated");
	EXPECT_NEAR(own.messages[1].ready_s, 9.5, TOLERANCE, "accumulated");
	EXPECT_NEAR(own.iteration_s, 11.5, TOLERANCE, "accumulated");
	free(own.messages);
	gf_network_free(plan.network);
	plan.network = NULL;
	EXPECT(!gf_train_prediction(&plan, &four, true, &own, &why) && why.text[0], "no costs");
	gf_plan_release(&plan);
}

/* A machine that is slower than the profile's, 1 s forward and 2 backward, by 10 % and then by 20:
 * forward takes 1.15, message 0 goes from 1.725 to 2.725 and halves backward's speed, message 1
 * goes from 3.95 to 5.45, and the update takes .575. */
static void test_speed(void)
{
	static const struct {
		double batch, first_s, last_s, iteration_s; /* of steps */
		const char *says[2];                        /* NULL: no word */
	} cases[] = {
		{4,
		 3.3,
		 3.6,
		 6.5,
		 {"the slowest rank is 15.0 % slower than in the profile (at "
		  "the start 10.0 % slower, at the end 20.0 % slower): by that a step is "
		  "predicted 6.02 s, measured/predicted 1.079",
		  "the exchange took 1.24 x as long as predicted"}},
		{4, 3.3, 3.6, 5.5, {NULL, "the exchange took 0.738 x as long"}},
		{4, 3, 3, 6.5, {"0.0 % slower", "took 1.50 x as long"}},
		{4, 3, 2.4, 6.5, {"is 10.0 % faster", NULL}},
		{4,
		 7.5,
		 9,
		 12,
		 {"the slowest rank is 2.8 x slower than in the profile (at the start 2.5 x "
		  "slower, at "
		  "the end 3.0 x slower): this run or the profile was measured on a busy machine, "
		  "and the comparison means nothing",
		  NULL}},
		{4, 1.2, 1.2, 2, {"is 2.5 x faster than", NULL}},
		{4, 3, 0, 6.5, {NULL, NULL}},
		{8, 3, 3, 6.5, {NULL, NULL}},
	};
	struct gf_plan plan = two_messages();
	size_t i, k, step;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		const struct gf_training training = {.batch = (size_t)cases[i].batch,
						     .accumulate = 1};
		struct gf_train_result result = {.speed = {.first = {.slowest_s = cases[i].first_s},
							   .last = {.slowest_s = cases[i].last_s}}};
		char *text;

		gf_timeline_init(&result.timeline, 2, 2);
		for (step = 1; step <= 20; step++)
			record(&result.timeline, step, cases[i].iteration_s - 3.5);
		if (gf_speed_wanted(&plan, &training))
			gf_speed_compare(&plan, &training, &result.speed);
		text = gf_report_text(&plan, plan.predicted, &result);
		for (k = 0; k < 2; k++)
			EXPECT(!cases[i].says[k] || strstr(text, cases[i].says[k]),
			       "case %zu: want %s, got %s", i, cases[i].says[k], text);
		if (!cases[i].says[0] && !cases[i].says[1])
			EXPECT(!strstr(text, "slowest"), "case %zu: %s", i, text);
		free(text);
		gf_timeline_release(&result.timeline);
	}
	gf_plan_release(&plan);
}

/* --- trace ------------------------------------------------------------------
 */

struct tracing {
	char *text;
};

static void trace_rank(struct gf_comm *comm, void *ctx)
{
	struct tracing *c = ctx;
	struct gf_plan plan = two_messages();
	struct gf_clock_offset offset = {.offset_s = comm->rank * 1000.};
	const struct gf_speed speed = {.first = {50, 3}};
	struct gf_timeline timeline;
	struct gf_error err = {""};
	char *text = NULL;
	size_t step;

	gf_timeline_init(&timeline, 2, 2);
	for (step = 1; step <= 3; step++) {
		record(&timeline, step, 1);
		if (step == 2)
			timeline.ring[1].late[1] = (struct gf_step_wait){200.25, 200.5};
		/* the other rank's clock is ahead */
		if (comm->rank == 1) {
			struct gf_step_times *s = &timeline.ring[step - 1];
			double *t[] = {&s->start_s,      &s->forward_s, &s->backward_s,
				       &s->exchanged_s,  &s->end_s,     &s->gradient_s[0],
				       &s->gradient_s[1]};
			size_t i;

			for (i = 0; i < GF_ARRAY_LENGTH(t); i++)
				*t[i] += 1000;
			for (i = 0; i < 2; i++) {
				s->late[i].start_s += 1000;
				s->late[i].end_s += 1000;
				s->messages[i].ready_s += 1000;
				s->messages[i].start_s += 1000;
				s->messages[i].end_s += 1000;
			}
		}
	}
	EXPECT(gf_train_trace(comm, &plan, plan.predicted, &timeline, &speed, &offset, &text,
			      &err) == 0,
	       "%s", err.text);
	EXPECT(!text == (comm->rank != 0), "rank %d", comm->rank);
	if (text)
		c->text = text;
	gf_timeline_release(&timeline);
	gf_plan_release(&plan);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

static void test_trace(void)
{
	static const struct {
		const char *what;
		size_t times;
	} cases[] = {
		/* 3 steps on 2 ranks, and the prediction */
		{"\"name\": \"forward\"", 9},
		{"\"cat\": \"alone\"", 2},
		{"\"cat\": \"backward\"", 27},
		{"\"cat\": \"ready\"", 18},
		{"\"name\": \"message 1\"", 9},
		{"\"ph\": \"f\"", 18},
		/* one of them, within forward */
		{"\"cat\": \"late\"", 2},
		{"\"name\": \"wait for message 1\", \"ts\": 200250000.000, \"dur\": 250000.000", 2},
		{"{\"name\": \"predicted\"}", 1},
		{"{\"name\": \"rank 1\"}", 1},
		/* all begin at the same times on rank 0's clock */
		{"\"name\": \"forward\", \"ts\": 200000000.000", 3},
		{"{\"message\": 1, \"first\": 1, \"last\": 1, \"bytes\": 8, \"algorithm\": "
		 "\"ring\"}",
		 9},
	};
	struct tracing tracing = {NULL};
	struct gf_json *root = NULL;
	struct gf_error err = {""};
	size_t i;

	on_ranks(2, trace_rank, &tracing);
	if (!tracing.text)
		return;
	EXPECT(gf_json_parse(tracing.text, strlen(tracing.text), "trace", &root, &err) == 0, "%s",
	       err.text);
	gf_json_free(root);
	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		EXPECT(count(tracing.text, cases[i].what) == cases[i].times, "%s: %zu times",
		       cases[i].what, count(tracing.text, cases[i].what));
	free(tracing.text);
}

/* Threads of one process share one clock: whatever the exchange measures, the offset is 0 and the
 * origin is the same. */
static void clock_rank(struct gf_comm *comm, void *ctx)
{
	double *origins = ctx;
	struct gf_clock_offset o = {1, 1, 0};
	struct gf_error err = {""};

	EXPECT(gf_trace_compare_clocks(comm, &o, &err) == 0, "%s", err.text);
	EXPECT(o.offset_s == 0 && o.uncertainty_s < 10, "rank %d: %g", comm->rank, o.offset_s);
	origins[comm->rank] = o.origin_s;
}

static void test_clocks(void)
{
	double origins[3] = {0};

	on_ranks(3, clock_rank, origins);
	EXPECT(origins[0] > 0 && origins[0] == origins[1] && origins[0] == origins[2], "%g %g %g",
	       origins[0], origins[1], origins[2]);
}

/* --- log --------------------------------------------------------------------
 */

/* The second writer is refused, and leaves the file as it is. */
static void check_log_writers(struct gf_train_config *config)
{
	char path[] = "/tmp/test_log.XXXXXX", *text;
	struct gf_train_row row = {.part = "test", .samples = 1};
	struct gf_train_log first = {0}, second = {0};
	struct gf_error err = {""};
	size_t size, before, resume;

	close(mkstemp(path));
	for (resume = 0; resume < 2; resume++) {
		config->resume = resume;
		EXPECT(!gf_train_log_open(&first, path, 1, config, &err) &&
			       !gf_train_log_row(&first, &row, &err) &&
			       !gf_file_read(path, &text, &before, &err),
		       "%s", err.text);
		free(text);
		EXPECT(gf_train_log_open(&second, path, 1, config, &err) == -EBUSY, "two writers");
		EXPECT(strstr(err.text, path) && !second.stream, "%s", err.text);
		EXPECT(!gf_file_read(path, &text, &size, &err) && size == before,
		       "%zu bytes, not %zu", size, before);
		free(text);
		gf_train_log_close(&first, NULL);
	}
	unlink(path);
}

/* Rows of ten steps and of an epoch; how many are there, and is the growth of a million steps
 * said? */
static void check_log_every(struct gf_train_config *config)
{
	static const struct {
		size_t every, rows;
		bool grows;
	} cases[] = {{1, 11, true}, {3, 4, true}, {10, 2, false}, {0, 1, false}};
	char path[] = "/tmp/test_log.XXXXXX", *text, *growth;
	struct gf_error err = {""};
	size_t i, size, at, rows;

	close(mkstemp(path));
	config->resume = false;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gf_train_row row = {.part = "batch", .samples = 1};
		struct gf_train_log log = {0};

		EXPECT(!gf_train_log_open(&log, path, cases[i].every, config, &err), "%s",
		       err.text);
		growth = gf_train_log_growth(&log, 1000000);
		EXPECT(!growth, "no row yet: %s", growth);
		for (row.step = 1; row.step <= 10; row.step++)
			gf_train_log_row(&log, &row, &err);
		growth = gf_train_log_growth(&log, 1000000);
		EXPECT((growth != NULL) == cases[i].grows, "every %zu: %s", cases[i].every,
		       growth ? growth : "no word");
		free(growth);
		row.part = "train";
		EXPECT(!gf_train_log_row(&log, &row, &err) && !gf_train_log_close(&log, &err) &&
			       !gf_file_read(path, &text, &size, &err),
		       "%s", err.text);
		for (at = rows = 0; at < size; at++)
			rows += text[at] == '\n';
		EXPECT(rows == cases[i].rows, "every %zu: %zu rows, not %zu", cases[i].every, rows,
		       cases[i].rows);
		free(text);
	}
	unlink(path);
}

static void test_log(void)
{
	static const struct gf_train_row row = {
		.part = "test",
		.epoch = 2,
		.step = 9,
		.rate = 0.125,
		.loss = 0.5,
		.correct = 3,
		.samples = 4,
		.seconds = 2,
		.samples_per_s = 2,
	};
	static const char want[] =
		"{\"model\": \"a \\\"b\\\"\", \"method\": \"dense\", \"algorithms\": \"ring\", "
		"\"codecs\": \"f32\", \"staleness\": 1, \"ranks\": 2, \"device\": \"cpu\", "
		"\"precision\": \"f32\", \"optimizer\": \"lars\", \"batch_per_rank\": 8, "
		"\"accumulate\": 2, \"seed\": 7, \"epoch\": 2, \"step\": 9, \"part\": \"test\", "
		"\"learning_rate\": 0.125, \"loss\": 0.5, \"correct\": 3, \"samples\": 4, "
		"\"accuracy\": 0.75, \"time_s\": 2.0, \"samples_per_s\": 2.0}\n";
	char path[] = "/tmp/test_log.XXXXXX", *text, *twice;
	struct gf_plan plan = two_messages();
	struct gf_comm comm = {.ranks = 3};
	char name[] = "a \"b\"", lars[] = "lars";
	struct gf_model model = {.name = name};
	struct gf_train_config config = {
		.comm = &comm,
		.plan = &plan,
		.model = &model,
		.training = {.batch = 8, .accumulate = 2, .seed = 7, .optimizer = lars}};
	struct gf_train_log log = {0};
	struct gf_error err = {""};
	size_t size;
	int round;

	close(mkstemp(path));
	twice = gf_xasprintf("%s%s", want, want);
	/* a new file, then after it, then a new one */
	for (round = 0; round < 3; round++) {
		config.resume = round == 1;
		EXPECT(!gf_train_log_open(&log, path, 1, &config, &err) &&
			       !gf_train_log_row(&log, &row, &err) &&
			       !gf_train_log_close(&log, &err) &&
			       !gf_file_read(path, &text, &size, &err),
		       "%s", err.text);
		EXPECT_TEXT(text, round == 1 ? twice : want);
		free(text);
	}
	free(twice);
	unlink(path);
	EXPECT(gf_train_log_close(&log, &err) == 0, "twice");
	check_log_writers(&config);
	check_log_every(&config);
	EXPECT(gf_train_log_open(&log, "/nonexistent/x", 1, &config, &err) == -ENOENT, "%s",
	       err.text);
	if (access("/dev/full", W_OK) == 0) {
		EXPECT(!gf_train_log_open(&log, "/dev/full", 1, &config, &err), "%s", err.text);
		EXPECT(gf_train_log_row(&log, &row, &err) == -ENOSPC, "full");
		EXPECT(strstr(err.text, "/dev/full: "), "%s", err.text);
		gf_train_log_close(&log, NULL);
	}
	gf_plan_release(&plan);
}

int main(void)
{
	watchdog(120);
	test_timeline();
	test_report();
	test_stale_report();
	test_median();
	test_prediction();
	test_speed();
	test_trace();
	test_clocks();
	test_log();
	return TEST_END();
}
