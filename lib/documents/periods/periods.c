/* SPDX-License-Identifier: BSD-3-Clause */
/* Every period that a plan may name, each a table of its keys, its defaults and an entry. */
#include "documents/periods/period.h"
#include "documents/plan_parts.h"

/* The keys of every outer exchange, before an entry's own and after them. */
#define AT(member) offsetof(struct gf_period, member)

static const struct gf_field first_fields[] = {
	{GF_MEMBER(group_ranks, GF_FIELD_INT, GF_REQUIRED), .low = 1, .high = GF_RANKS_MAX},
	{GF_MEMBER(steps, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_SIZE, .unit = "H",
	 .help = "steps from one outer exchange to the next"},
	{NULL},
};

static const struct gf_record first_record = {
	GF_RECORD(struct gf_period, first_fields),
};

static const struct gf_field predicted_fields[] = {
	{GF_MEMBER(period_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(exchange_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_SUM_S},
	{GF_MEMBER(exposed_s, GF_FIELD_REAL, GF_OMITTED), .high = GF_MAX_TIME_SUM_S},
	{NULL},
};

static const struct gf_record predicted_record = {
	GF_RECORD(struct gf_period, predicted_fields),
};

static const struct gf_field last_fields[] = {
	{GF_MEMBER(lanes, GF_FIELD_INT, GF_DEFAULTED), .low = 1, .high = GF_MAX_COUNT, .absent = 1},
	{GF_MEMBERS(messages, GF_FIELD_LIST, GF_REQUIRED), .record = &gf_message_record,
	 .schema = "\"minItems\": 1"},
	{GF_INCLUDE(predicted_record)},
	{NULL},
};

static const struct gf_record last_record = {
	GF_RECORD(struct gf_period, last_fields),
};

/* An outer step has these unless it is the mean of the parameters. */
static const struct gf_field outer_step_fields[] = {
	{GF_MEMBER(outer_rate, GF_FIELD_REAL, GF_REQUIRED), .low = GF_MIN_RATE, .high = 1e6,
	 .unit = "R", .help = "the outer step's rate"},
	{GF_MEMBER(outer_momentum, GF_FIELD_REAL, GF_REQUIRED), .high = 0.9999, .unit = "M",
	 .help = "the outer step's momentum, Nesterov's"},
	{NULL},
};

static const struct gf_record outer_step_record = {
	GF_RECORD(struct gf_period, outer_step_fields),
};

/* A record of these fields. */
#define RECORD(fields)                                                                             \
	&(const struct gf_record)                                                                  \
	{                                                                                          \
		GF_RECORD(struct gf_period, fields)                                                \
	}

static const struct gf_field every_fields[] = {{NULL}};

const struct gf_period_plan gf_period_plan_every = {
	.name = "every",
	.description = "all ranks exchange gradients in every step",
	.place = 10,
	.source = "synchronous SGD",
	.traits = GF_PERIOD_EVERY | GF_PERIOD_SERVERS,
	.record = RECORD(every_fields),
	.defaults = &(const struct gf_period){0},
};

/* The mean of the parameters: documents/periods/period.h with r = 1, m = 0, a = 0. */
static const struct gf_field local_sgd_fields[] = {
	{GF_INCLUDE(first_record)},
	{GF_INCLUDE(last_record)},
	{NULL},
};

/* MANUAL
 * All ranks average their parameters. */
const struct gf_period_plan gf_period_plan_local_sgd = {
	.name = "local-sgd",
	.description = "groups average their parameters every H steps",
	.place = 20,
	.source = "Local SGD (Stich 2019)",
	.record = RECORD(local_sgd_fields),
	.defaults =
		&(const struct gf_period){
			.steps = 16,
			.fragments = 1,
			.outer_rate = 1,
			.lanes = 1,
		},
};

/*
 * Local SGD after a beginning in which groups average their parameters in every step. The mean over
 * groups then goes the way of synchronous SGD: SGD's step is linear in gradient and velocity.
 */
static const struct gf_field post_local_fields[] = {
	{GF_INCLUDE(first_record)},
	{GF_MEMBER(begin_steps, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE, .unit = "N",
	 .help = "the first N steps have an exchange in each"},
	{GF_INCLUDE(last_record)},
	{NULL},
};

/* MANUAL
 * The same, and after every step at the beginning.
 * @key begin_steps
 * the number of steps at the beginning */
const struct gf_period_plan gf_period_plan_post_local = {
	.name = "post-local",
	.description = "local-sgd after a beginning that averages every step",
	.place = 30,
	.source = "Post-local SGD (Lin et al. 2020)",
	.record = RECORD(post_local_fields),
	.defaults =
		&(const struct gf_period){
			.steps = 16,
			.begin_steps = 1000,
			.fragments = 1,
			.outer_rate = 1,
			.lanes = 1,
		},
};

/* Douillard et al. 2023, algorithm 1: an outer step with Nesterov's momentum on the mean change of
 * parameters, 0.7 and 0.9 as published. */
static const struct gf_field diloco_fields[] = {
	{GF_INCLUDE(first_record)},
	{GF_INCLUDE(outer_step_record)},
	{GF_INCLUDE(last_record)},
	{NULL},
};

/* MANUAL
 * An outer optimiser with Nesterov's momentum applies the mean change of parameters.
 * The optimiser of the steps between is the training's, and its state stays with its rank.
 * @key outer_rate
 * the rate; 1 of the periods without this key
 * @key outer_momentum
 * its momentum, Nesterov's; 0 of the periods without this key */
const struct gf_period_plan gf_period_plan_diloco = {
	.name = "diloco",
	.description = "an outer step with momentum on the change of H steps",
	.place = 40,
	.source = "DiLoCo (Douillard et al. 2023)",
	.record = RECORD(diloco_fields),
	.defaults =
		&(const struct gf_period){
			.steps = 100,
			.fragments = 1,
			.outer_rate = 0.7,
			.outer_momentum = 0.9,
			.lanes = 1,
		},
};

/* Douillard et al. 2025, algorithm 2: the fragments of a model in turn, each beside the next
 * `delay` steps, whose parameters it is mixed into. */
static const struct gf_field streaming_fields[] = {
	{GF_INCLUDE(first_record)},
	{GF_MEMBER(fragments, GF_FIELD_SIZE, GF_REQUIRED), .low = 1, .high = GF_MAX_COUNT,
	 .unit = "N", .help = "parts of the model that are exchanged in turn"},
	{GF_MEMBER(delay, GF_FIELD_SIZE, GF_REQUIRED), .high = GF_MAX_SIZE, .unit = "STEPS",
	 .help = "steps beside which a fragment is exchanged"},
	{GF_MEMBER(mix, GF_FIELD_REAL, GF_REQUIRED), .high = 1, .unit = "SHARE",
	 .help = "of its own parameters that a rank keeps"},
	{GF_INCLUDE(outer_step_record)},
	{GF_INCLUDE(last_record)},
	{NULL},
};

/* MANUAL
 * The same, one fragment of the model at a time.
 * A fragment is exchanged beside the next
 * .Cm delay
 * steps and then mixed into the parameters.
 * @key fragments
 * a divisor of
 * .Cm steps ,
 * at most the number of messages.
 * With F fragments an exchange begins every
 * .Cm steps
 * / F steps, of each fragment in turn.
 * Of n messages, fragment f has the messages from f n / F to (f + 1) n / F - 1, rounded down
 * @key delay
 * fewer steps than to the next exchange; 0 waits for the exchange in its own step
 * @key mix
 * the share of its own parameters that a rank keeps */
const struct gf_period_plan gf_period_plan_streaming = {
	.name = "streaming",
	.description = "diloco of a fragment at a time, beside the next steps",
	.place = 50,
	.source = "Streaming DiLoCo (Douillard et al. 2025)",
	.record = RECORD(streaming_fields),
	.defaults =
		&(const struct gf_period){
			.steps = 100,
			.fragments = 4,
			.delay = 5,
			.mix = 0.5,
			.outer_rate = 0.7,
			.outer_momentum = 0.9,
			.lanes = 1,
		},
};
