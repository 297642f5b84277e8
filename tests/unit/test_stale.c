/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "base/rng.h"
#include "simulator/pipeline.h"
#include "test.h"

#define TOLERANCE 1e-9
#define RANKS     7
#define MESSAGES  4
#define STEPS     60

static double draw(struct gf_rng *rng, double low, double high)
{
	return low + (high - low) * gf_rng_uniform(rng);
}

/* Messages one at a time, each when the last rank has made it. */
struct serial {
	double ended_s[RANKS]; /* the last step of each rank */
	double exchanged_s[STEPS];
	double free_s; /* the network */
};

static double serial_step(struct serial *s, const struct gf_sim_input *in, int staleness,
			  size_t step, const double *factor)
{
	const struct gf_model_profile *m = in->model;
	double begun_s = 0, from[RANKS];
	size_t i, r;

	for (r = 0; r < RANKS; r++) {
		from[r] = s->ended_s[r];
		if (step >= (size_t)staleness)
			from[r] = fmax(from[r], s->exchanged_s[step - (size_t)staleness]);
		begun_s = fmax(begun_s, from[r]);
		s->ended_s[r] = from[r] + m->update_s + factor[r] * (m->forward_s + m->backward_s);
	}
	for (i = 0; i < in->nmessages; i++) {
		const struct gf_sim_message *x = &in->messages[i];
		double ready_s = m->tensors[x->last].ready_s, start_s = 0;

		if (x->release == GF_RELEASE_BACKWARD_END)
			ready_s = m->backward_s;
		for (r = 0; r < RANKS; r++)
			start_s = fmax(start_s, from[r] + m->update_s +
							factor[r] * (m->forward_s + ready_s));
		s->free_s = fmax(s->free_s, start_s) + x->startup_s + x->per_byte_s * x->bytes;
	}
	s->exchanged_s[step] = s->free_s;
	return begun_s;
}

/* Ranks that are not alike, step by step, against the recurrence. */
static void test_uneven_ranks(void)
{
	struct gf_tensor tensors[MESSAGES] = {{0}};
	struct gf_sim_message messages[MESSAGES] = {{0}};
	struct gf_model_profile model = {
		.tensors = tensors, .ntensors = MESSAGES, .overlap_slowdown = 1};
	struct gf_sim_input in = {&model, messages, MESSAGES, 1};
	double factor[RANKS];
	struct gf_rng rng;
	size_t round, step, i;

	gf_rng_init(&rng, 11, 0);
	for (round = 0; round < 200; round++) {
		int staleness = 1 + (int)(round % 4);
		struct serial want = {{0}};
		struct gf_pipeline p;

		model.update_s = in.update_s = draw(&rng, 0, 1);
		model.forward_s = draw(&rng, 0, 3);
		model.backward_s = 0;
		for (i = 0; i < MESSAGES; i++) {
			tensors[i].ready_s = model.backward_s += draw(&rng, 0, 2);
			messages[i] = (struct gf_sim_message){
				.first = i,
				.last = i,
				.release = round % 5 ? GF_RELEASE_READY : GF_RELEASE_BACKWARD_END,
				.startup_s = draw(&rng, 0, 1),
				.per_byte_s = 0.1,
				.bytes = draw(&rng, 0, round % 3 ? 20 : 5),
			};
		}
		gf_pipeline_init(&p, &in, staleness, RANKS);
		for (step = 0; step < STEPS; step++) {
			double begun_s, want_s;

			for (i = 0; i < RANKS; i++)
				factor[i] = draw(&rng, 0.5, 1.5);
			begun_s = gf_pipeline_step(&p, factor);
			want_s = serial_step(&want, &in, staleness, step, factor);
			EXPECT_NEAR(begun_s, want_s, TOLERANCE * (1 + want_s),
				    "round %zu, step %zu", round, step);
		}
		EXPECT_NEAR(gf_pipeline_finish(&p), want.free_s, TOLERANCE * (1 + want.free_s),
			    "round %zu", round);
		gf_pipeline_release(&p);
	}
}

/*
 * Forward takes 1 and backward 4, of which each second beside a message does half. The message, two
 * steps stale, is made in the middle of backward.
 *
 * It takes 3: from 3 to 6 backward does 1.5, and ends at 6.5.
 * It takes 7: these run beside backward's end and the next forward and backward, which lose 3.5,
 * and so a step takes 8.5. It takes 12: longer than forward and backward, slowed.
 */
static void test_slowed(void)
{
	static const struct {
		double bytes, want_s;
	} cases[] = {{3, 6.5}, {0, 5}, {7, 8.5}, {12, 12}};
	struct gf_tensor tensor = {.ready_s = 2};
	struct gf_model_profile model = {.tensors = &tensor,
					 .ntensors = 1,
					 .forward_s = 1,
					 .backward_s = 4,
					 .overlap_slowdown = 2};
	struct gf_sim_message message = {.per_byte_s = 1};
	struct gf_sim_input in = {&model, &message, 1, 1};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		message.bytes = cases[i].bytes;
		EXPECT_NEAR(gf_pipeline_pace_s(&in, 2), cases[i].want_s, TOLERANCE, "%g bytes",
			    cases[i].bytes);
	}
}

/* A message of 7 seconds of latency, which a lane of its own hides beside the one before, in a step
 * of 5: but not if the step needs what the step before left. */
static void test_lone_steps(void)
{
	static const struct {
		bool serial;
		int lanes;
		double want_s;
	} cases[] = {{false, 1, 7}, {false, 2, 5}, {true, 1, 7}, {true, 2, 7}};
	struct gf_tensor tensor = {.ready_s = 2};
	struct gf_model_profile model = {.tensors = &tensor,
					 .ntensors = 1,
					 .forward_s = 1,
					 .backward_s = 4,
					 .overlap_slowdown = 1};
	struct gf_sim_message message = {.startup_s = 7, .mode = GF_MODE_SIMULTANEOUS};
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++) {
		struct gf_sim_input in = {&model, &message, 1, cases[i].lanes, 0, cases[i].serial};

		EXPECT_NEAR(gf_pipeline_pace_s(&in, 3), cases[i].want_s, TOLERANCE,
			    "%d lanes, serial %d", cases[i].lanes, cases[i].serial);
	}
}

/* A time that is often 0. */
static double some_s(struct gf_rng *rng, double most_s)
{
	return fmax(0, most_s * (1.5 * gf_rng_uniform(rng) - 0.5));
}

/* Startups of none and compute that ends as it begins make no time that is no number. */
static void test_numbers(void)
{
	enum { TRIALS = 20000, MOST = 4 };
	struct gf_rng rng;

	gf_rng_init(&rng, 3, 0);
	for (int trial = 0; trial < TRIALS; trial++) {
		struct gf_tensor tensors[MOST] = {{0}};
		struct gf_sim_message messages[MOST] = {{0}};
		double slowdown = 1 + some_s(&rng, 2);
		struct gf_beside_backward mutual = {&slowdown, 1, 1 + some_s(&rng, 1),
						    some_s(&rng, 1), NULL};
		struct gf_model_profile model = {.tensors = tensors,
						 .ntensors =
							 1 + (size_t)(MOST * gf_rng_uniform(&rng)),
						 .forward_s = some_s(&rng, 1),
						 .overlap_slowdown = slowdown,
						 .issue_s = some_s(&rng, 0.1)};
		struct gf_sim_input in = {&model, messages, model.ntensors,
					  1 + (int)(3 * gf_rng_uniform(&rng)), some_s(&rng, 1)};
		double pace_s;

		for (size_t i = 0; i < model.ntensors; i++) {
			model.backward_s += some_s(&rng, 1);
			tensors[i] = (struct gf_tensor){.ready_s = model.backward_s, .need_s = NAN};
			messages[i] = (struct gf_sim_message){
				.first = i,
				.last = i,
				.mode = gf_rng_uniform(&rng) < 0.5 ? GF_MODE_NORMAL
								   : GF_MODE_SIMULTANEOUS,
				.startup_s = some_s(&rng, 1),
				.per_byte_s = 1,
				.bytes = some_s(&rng, 2),
				.mutual = gf_rng_uniform(&rng) < 0.8 ? &mutual : NULL,
			};
		}
		pace_s = gf_pipeline_pace_s(&in, 2 + trial % 2);
		EXPECT(isfinite(pace_s) && pace_s >= model.forward_s + model.backward_s - TOLERANCE,
		       "trial %d: a step of %g", trial, pace_s);
	}
}

static void test_busy(void)
{
	static const struct gf_predicted_message gaps[] = {
		{0, 1, 3}, {0, 2, 4}, {0, 6, 9}, {0, 7, 8}};

	EXPECT_NEAR(gf_sim_busy_s(gaps, 0), 0, TOLERANCE, "none");
	EXPECT_NEAR(gf_sim_busy_s(gaps, 4), 6, TOLERANCE, "1-4, 6-9");
}

int main(void)
{
	test_uneven_ranks();
	test_slowed();
	test_lone_steps();
	test_numbers();
	test_busy();
	return TEST_END();
}
