/* SPDX-License-Identifier: BSD-3-Clause */
/* The step model under shards beside one written apart, and what a rank holds. */
#include "base/rng.h"
#include "documents/plan.h"
#include "shard_model.h"
#include "simulator/memory.h"
#include "test.h"

#define TOLERANCE 1e-9

struct rig {
	struct shard_model own;
	struct gf_tensor tensors[MODEL_UNITS];
	struct gf_model_profile model;
	struct gf_message messages[MODEL_UNITS];
	struct gf_sim_message priced[MODEL_UNITS];
	struct gf_contention_entry gammas;
	struct gf_contention contention;
	struct gf_shard shard;
	struct gf_shard_work works[3 * MODEL_UNITS];
	struct gf_sim_input in;
};

static double between(struct gf_rng *rng, double low, double high)
{
	return low + (high - low) * gf_rng_uniform(rng);
}

static void fill(struct rig *g, struct gf_rng *rng)
{
	struct shard_model *m = &g->own;
	double work_s = 0;
	int i;

	memset(g, 0, sizeof(*g));
	m->units = 1 + (int)gf_rng_below(rng, MODEL_UNITS);
	m->lanes = 1 + (int)gf_rng_below(rng, 3);
	m->dropped = gf_rng_below(rng, 3) > 0;
	m->ahead = m->dropped ? (int)gf_rng_below(rng, 5) : 0;
	m->update_s = between(rng, 0, 2);
	m->gamma[0] = 1;
	for (i = 1; i < 4; i++)
		m->gamma[i] = m->gamma[i - 1] * between(rng, 1, 1.6);
	for (i = 0; i < m->units; i++) {
		work_s += between(rng, 0.1, 2);
		m->made_s[i] = work_s;
	}
	m->backward_s = work_s;
	m->forward_s = work_s / 2;
	for (i = 0; i < m->units; i++) {
		m->need_s[i] = m->forward_s * (1 - m->made_s[i] / m->backward_s);
		m->keep[i] = m->dropped && gf_rng_below(rng, 3) == 0;
		m->alone[i] = gf_rng_below(rng, 2);
		m->bytes[i] = 4.0 * (double)(1 + gf_rng_below(rng, 1000));
		m->startup_s[0][i] = between(rng, 0, 0.3);
		m->startup_s[1][i] = between(rng, 0, 0.3);
		m->drain_s[0][i] = between(rng, 0.01, 2);
		m->drain_s[1][i] = between(rng, 0.01, 2);
	}
}

/* The same for lib/simulator. */
static void pose(struct rig *g)
{
	const struct shard_model *m = &g->own;
	int i;

	g->model = (struct gf_model_profile){
		.forward_s = m->forward_s,
		.backward_s = m->backward_s,
		.overlap_slowdown = 1,
		.tensors = g->tensors,
		.ntensors = (size_t)m->units,
	};
	g->gammas = (struct gf_contention_entry){.gamma = (double *)m->gamma, .ngamma = 4};
	g->contention = (struct gf_contention){&g->gammas, 1};
	for (i = 0; i < m->units; i++) {
		g->tensors[i] = (struct gf_tensor){
			.count_elems = (size_t)(m->bytes[i] / 4),
			.ready_s = m->made_s[i],
			.need_s = NAN,
		};
		g->messages[i].keep = m->keep[i];
		g->priced[i] = (struct gf_sim_message){
			.first = (size_t)i,
			.last = (size_t)i,
			.mode = m->alone[i] ? GF_MODE_NORMAL : GF_MODE_SIMULTANEOUS,
			.half = GF_HALF_SPLIT,
			.startup_s = m->startup_s[0][i] + m->startup_s[1][i],
			.per_byte_s = (m->drain_s[0][i] + m->drain_s[1][i]) / m->bytes[i],
			.gather_startup_s = m->startup_s[1][i],
			.gather_per_byte_s = m->drain_s[1][i] / m->bytes[i],
			.bytes = m->bytes[i],
			.contention = &g->contention,
		};
	}
	g->shard = (struct gf_shard){
		.method = m->dropped ? 3 : 1, .group_ranks = 4, .ahead = (size_t)m->ahead};
	g->in = (struct gf_sim_input){
		.model = &g->model,
		.messages = g->priced,
		.nmessages = (size_t)m->units,
		.lanes = m->lanes,
		.update_s = m->update_s,
		.works = g->works,
		.nworks = gf_shard_order(&g->shard, g->messages, (size_t)m->units, 1, g->works),
	};
}

static void test_beside_own(void)
{
	struct gf_rng rng;
	struct rig g;
	int i;

	gf_rng_init(&rng, 58, 0);
	for (i = 0; i < 4000; i++) {
		struct gf_predicted_message messages[MODEL_UNITS];
		double times[4][3 * MODEL_UNITS];
		struct gf_sim_shard_times at = {times[0], times[1], times[2], times[3]};
		struct gf_sim_result got = {.messages = messages, .shards = &at};
		const struct gf_memory_plan wish = {0};
		struct gf_memory_use use;
		double held;

		fill(&g, &rng);
		pose(&g);
		shard_simulate(&g.own);
		gf_sim_step(&g.in, &got);
		EXPECT_NEAR(got.iteration_s, g.own.iteration_s, TOLERANCE,
			    "case %d: %d units, %d lanes, %d ahead", i, g.own.units, g.own.lanes,
			    g.own.ahead);
		if (test_failures)
			return;
		if (!g.own.dropped)
			continue;
		gf_sim_memory(&(struct gf_memory_setting){&g.model, &g.shard, &wish, false, 1},
			      &g.in, &at, &use);
		held = use.gathered_bytes + use.gradients_bytes - use.parameters_bytes;
		EXPECT(fabs(held - 0.75 * g.own.peak_bytes) <= 3, "case %d: want %g held, got %g",
		       i, 0.75 * g.own.peak_bytes, held);
	}
}

/* Two units of 400 bytes on 4 ranks; forward 1 s each, backward 2 s each, and gathers of 1 s. */
static void test_by_hand(void)
{
	struct gf_tensor tensors[2] = {
		{.count_elems = 100, .ready_s = 2, .need_s = NAN, .activation_bytes = 50},
		{.count_elems = 100, .ready_s = 4, .need_s = NAN, .activation_bytes = 70},
	};
	const struct gf_model_profile model = {.forward_s = 2,
					       .backward_s = 4,
					       .overlap_slowdown = 1,
					       .tensors = tensors,
					       .ntensors = 2};
	const struct gf_message messages[2] = {{0}};
	struct gf_sim_message priced[2];
	struct gf_shard shard = {.method = 3, .group_ranks = 4, .ahead = 0};
	struct gf_shard_work works[6];
	struct gf_predicted_message at_s[2];
	double t[4][6];
	struct gf_sim_shard_times times = {t[0], t[1], t[2], t[3]};
	struct gf_sim_result got = {.messages = at_s, .shards = &times};
	const struct gf_memory_plan wish = {.state_bytes = 8};
	struct gf_sim_input in = {&model, priced, 2, 1, 0.5, .works = works};
	struct gf_memory_use use;
	size_t i;

	for (i = 0; i < 2; i++)
		priced[i] = (struct gf_sim_message){i,
						    i,
						    .half = GF_HALF_SPLIT,
						    .startup_s = 2,
						    .gather_startup_s = 1,
						    .bytes = 400};
	in.nworks = gf_shard_order(&shard, messages, 2, 1, works);
	EXPECT(in.nworks == 5, "got %zu", in.nworks);
	/* gather 1, forward 1, gather 0, forward 0, backward 0; its scatter, after the gather of 1
	 */
	gf_sim_step(&in, &got);
	EXPECT_NEAR(at_s[0].ready_s, 6, TOLERANCE, "scatter of 0");
	EXPECT_NEAR(at_s[0].start_s, 7, TOLERANCE, "scatter of 0");
	EXPECT_NEAR(at_s[1].start_s, 9, TOLERANCE, "scatter of 1");
	EXPECT_NEAR(got.iteration_s, 10.5, TOLERANCE, "step");
	gf_sim_memory(&(struct gf_memory_setting){&model, &shard, &wish, false, 1}, &in, &times,
		      &use);
	EXPECT_NEAR(use.parameters_bytes, 200, TOLERANCE, "parameters");
	EXPECT_NEAR(use.state_bytes, 400, TOLERANCE, "state");
	/* at 7 both gradients and the unit 1 are there, and what unit 1 keeps */
	EXPECT_NEAR(use.gradients_bytes, 200 + 600, TOLERANCE, "gradients");
	EXPECT_NEAR(use.gathered_bytes, 300, TOLERANCE, "gathered");
	EXPECT_NEAR(use.activations_bytes, 70, TOLERANCE, "activations");
	EXPECT_NEAR(use.peak_bytes, 200 + 800 + 400 + 300 + 70, TOLERANCE, "peak");
}

int main(void)
{
	test_by_hand();
	test_beside_own();
	return TEST_END();
}
