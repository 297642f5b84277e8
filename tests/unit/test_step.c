/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/array.h"
#include "simulator/step.h"
#include "test.h"

#define TOLERANCE 1e-9
#define MOST      8

/* What each message of a step does: b = 1, gamma = 1, 1.5, 2.25. */
struct step_case {
	const char *name;
	struct {
		int lanes;
		double forward_s, backward_s, update_s, slowdown;
	};
	struct {
		size_t ntensors;
		double ready_s[MOST];
		size_t nmessages;
	};
	struct {
		size_t first, last;
		enum gf_mode mode;
		enum gf_release release;
		enum gf_half half;
		double a, bytes;
		double ready_s, start_s, end_s; /* wanted */
		double gather;                  /* of a split one, its all-gather's share */
	} messages[MOST];
	double iteration_s; /* wanted */
};

#define N            GF_MODE_NORMAL
#define S            GF_MODE_SIMULTANEOUS
#define READY        GF_RELEASE_READY
#define BACKWARD_END GF_RELEASE_BACKWARD_END
#define ALL          GF_HALF_ALL
#define SPLIT        GF_HALF_SPLIT

static const struct step_case cases[] = {
	{"nothing to send", {1, 2, 3, 1, 1}, {1, {3}, 0}, {{0}}, 6},
	{"alone: a + b*m", {1, 0, 0, 0, 1}, {1, {0}, 1}, {{0, 0, N, READY, ALL, 2, 5, 0, 0, 7}}, 7},
	{"two equal at once: a + gamma*b*m",
	 {2, 0, 0, 0, 1},
	 {2, {0, 0}, 2},
	 {{0, 0, S, READY, ALL, 1, 4, 0, 0, 7}, {1, 1, S, READY, ALL, 1, 4, 0, 0, 7}},
	 7},
	{"one lane makes simultaneous wait",
	 {1, 0, 0, 0, 1},
	 {2, {0, 0}, 2},
	 {{0, 0, S, READY, ALL, 1, 4, 0, 0, 5}, {1, 1, S, READY, ALL, 1, 4, 0, 5, 10}},
	 10},
	{"a startup slows nobody and is not slowed",
	 {2, 0, 2, 0, 1},
	 {2, {0, 2}, 2},
	 /* alone to 3, the other's startup ends at 3; 2 left each at 1.5 */
	 {{0, 0, N, READY, ALL, 1, 4, 0, 0, 6}, {1, 1, S, READY, ALL, 1, 4, 2, 2, 8}},
	 8},
	{"three lanes, the third joins",
	 {3, 0, 3, 0, 1},
	 {3, {0, 0, 3}, 3},
	 /* 0..3 two at 1.5: 2 gone; three at 2.25 to 7.5; alone to 9.5 */
	 {{0, 0, S, READY, ALL, 0, 4, 0, 0, 7.5},
	  {1, 1, S, READY, ALL, 0, 4, 0, 0, 7.5},
	  {2, 2, S, READY, ALL, 0, 4, 3, 3, 9.5}},
	 9.5},
	{"normal waits for all, later ones behind it",
	 {2, 0, 0, 0, 1},
	 {3, {0, 0, 0}, 3},
	 {{0, 0, N, READY, ALL, 1, 1, 0, 0, 2},
	  {1, 1, N, READY, ALL, 1, 1, 0, 2, 4.5},
	  {2, 2, S, READY, ALL, 1, 2, 0, 2, 5.5}},
	 5.5},
	{"backward_end releases late",
	 {1, 1, 4, 0.5, 1},
	 {2, {1, 2}, 2},
	 {{0, 0, N, BACKWARD_END, ALL, 1, 1, 5, 5, 7}, {1, 1, N, BACKWARD_END, ALL, 1, 1, 5, 7, 9}},
	 9.5},
	{"compute hides everything",
	 {1, 1, 9, 1, 1},
	 {2, {1, 2}, 2},
	 {{0, 0, N, READY, ALL, 1, 1, 2, 2, 4}, {1, 1, N, READY, ALL, 1, 1, 3, 4, 6}},
	 11},
	{"six, optimal on two lanes",
	 {2, 3, 17, 0, 1},
	 {6, {1, 4, 6, 9, 12, 17}, 4},
	 {{0, 0, N, READY, ALL, 3, 6, 4, 4, 14.5},
	  {1, 1, S, READY, ALL, 3, 12, 7, 7, 26.5},
	  {2, 3, S, READY, ALL, 3, 18, 12, 14.5, 43},
	  {4, 5, S, READY, ALL, 3, 9, 20, 26.5, 43}},
	 43},
	{"overlap slows backward by half",
	 {1, 0, 10, 0, 2},
	 {2, {2, 6}, 2},
	 /* work 2 at 2; busy 2..6 does 2; idle to 8 reaches 6; busy 8..12 */
	 {{0, 0, N, READY, ALL, 1, 3, 2, 2, 6}, {1, 1, N, READY, ALL, 1, 3, 8, 8, 12}},
	 14},
	{"ready while another is in flight, slowed",
	 {2, 0, 4, 0, 2},
	 {2, {2, 4}, 2},
	 {{0, 0, N, READY, ALL, 1, 9, 2, 2, 14.5}, {1, 1, S, READY, ALL, 1, 9, 6, 6, 18.5}},
	 18.5},
	{"split: half in backward, half in the next forward",
	 {1, 4, 4, 0, 1},
	 {2, {2, 4}, 2},
	 /* all-gathers end at 2 (needed at 0) and 4 (needed at 2): 2 late */
	 {{0, 0, N, READY, SPLIT, 2, 2, 8, 8, 10, 0.5},
	  {1, 1, N, READY, SPLIT, 2, 2, 10, 10, 12, 0.5}},
	 12},
	{"split: halves of their own cost",
	 {1, 4, 4, 0, 1},
	 {2, {2, 4}, 2},
	 /* all-gathers end at 1 (needed at 0) and 2 (needed at 3): 1 late */
	 {{0, 0, N, READY, SPLIT, 2, 2, 7, 7, 10, 0.25},
	  {1, 1, N, READY, SPLIT, 2, 2, 9, 10, 13, 0.25}},
	 13},
};

static const struct gf_contention_entry gammas = {
	.gamma = (double[]){1, 1.5, 2.25},
	.ngamma = 3,
};
static const struct gf_contention contention = {
	(struct gf_contention_entry *)&gammas,
	1,
};

static void run_case(const struct step_case *c)
{
	struct gf_tensor tensors[MOST] = {{0}};
	struct gf_model_profile model = {
		.forward_s = c->forward_s,
		.backward_s = c->backward_s,
		.update_s = c->update_s,
		.overlap_slowdown = c->slowdown,
		.tensors = tensors,
		.ntensors = c->ntensors,
	};
	struct gf_sim_message messages[MOST];
	struct gf_predicted_message got[MOST];
	struct gf_sim_input in = {&model, messages, c->nmessages, c->lanes, model.update_s};
	struct gf_sim_result out = {.messages = got};
	size_t i;

	for (i = 0; i < c->ntensors; i++) {
		tensors[i].ready_s = c->ready_s[i];
		tensors[i].need_s = NAN;
	}
	for (i = 0; i < c->nmessages; i++)
		messages[i] = (struct gf_sim_message){
			.first = c->messages[i].first,
			.last = c->messages[i].last,
			.mode = c->messages[i].mode,
			.release = c->messages[i].release,
			.half = c->messages[i].half,
			.startup_s = c->messages[i].a,
			.per_byte_s = 1,
			.gather_startup_s = c->messages[i].gather * c->messages[i].a,
			.gather_per_byte_s = c->messages[i].gather,
			.bytes = c->messages[i].bytes,
			.contention = &contention,
		};
	gf_sim_step(&in, &out);
	EXPECT_NEAR(out.iteration_s, c->iteration_s, TOLERANCE, "%s", c->name);
	EXPECT_NEAR(out.compute_s, c->forward_s + c->backward_s + c->update_s, TOLERANCE, "%s",
		    c->name);
	EXPECT_NEAR(out.exposed_comm_s, c->iteration_s - out.compute_s, TOLERANCE, "%s", c->name);
	for (i = 0; i < c->nmessages; i++) {
		EXPECT_NEAR(got[i].ready_s, c->messages[i].ready_s, TOLERANCE, "%s, message %zu",
			    c->name, i);
		EXPECT_NEAR(got[i].start_s, c->messages[i].start_s, TOLERANCE, "%s, message %zu",
			    c->name, i);
		EXPECT_NEAR(got[i].end_s, c->messages[i].end_s, TOLERANCE, "%s, message %zu",
			    c->name, i);
	}
}

int main(void)
{
	size_t i;

	for (i = 0; i < GF_ARRAY_LENGTH(cases); i++)
		run_case(&cases[i]);
	return TEST_END();
}
