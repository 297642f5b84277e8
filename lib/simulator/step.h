/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/simulator: predicts how long an iteration of a plan takes, by a model of its steps and
 * messages. */
#ifndef GF_SIMULATOR_STEP_H
#define GF_SIMULATOR_STEP_H

#include <stdbool.h>
#include <stddef.h>

#include "documents/plan.h"
#include "documents/profile.h"
#include "simulator/step_state.h"

/*
 * The time model of one training iteration, and the only source of every `predicted` number:
 * gf-time(7).
 *
 * Compute: forward, then backward; tensor i's gradient is ready when backward has done ready_s[i]
 * of its work. While at least one message is active, compute advances at 1/overlap_slowdown, or
 * 1/compute_slowdown of the message that slows it most. Once a message is ready (released by
 * backward), issuing it is issue_s + holds_s of work for backward, before anything later.
 * A message: startup a, which occupies a lane but uses no bandwidth and is not slowed by others;
 * then its bytes drain at 1/(gamma_n*b), with n messages in transfer. Both take message_slowdown
 * times as long while compute runs, and the startup takes startup_extra_s longer besides. Starts:
 * in plan order; normal when ready and every earlier one has ended, simultaneous when ready and
 * fewer than `lanes` are active.
 *
 * A split message (dear) is a reduce-scatter in backward and an all-gather in the next forward,
 * each with a startup and a cost per byte of its own: in steady state the all-gathers of the step
 * before run one after the other from the start of forward, last message first, and forward waits
 * at need_s (unknown: forward mirrors backward) for the tensor it needs. While it does not wait, it
 * and the all-gather slow each other as above. So the two kinds are never in flight together.
 */
struct gf_sim_message {
	size_t first, last; /* tensors */
	enum gf_mode mode;
	enum gf_release release;
	enum gf_half half;
	double startup_s, per_byte_s; /* of this message's algorithm, both halves together */
	/* Of these, the all-gather's of a split message; else 0. */
	double gather_startup_s, gather_per_byte_s;
	/* What a byte takes of the network, which others share: the startup of a line through the
	 * costs of short messages has bytes in it, and what has bytes in it drains. Less than the
	 * rest of per_byte_s, as 0: no more than that. */
	double load_per_byte_s;
	double bytes; /* on the wire */
	/* By which it holds up backward, beside issue_s; a later step's where its own has nothing
	 * left to do (gf_sim_held_late_s). */
	double holds_s;
	const struct gf_contention *contention;  /* NULL: gamma_n = n */
	const struct gf_beside_backward *mutual; /* NULL: nothing is known */
};

struct gf_sim_input {
	const struct gf_model_profile *model;
	const struct gf_sim_message *messages;
	size_t nmessages;
	int lanes;
	double update_s; /* the model's, or less of it (gf_plan_update_s) */
	bool serial;     /* steps under way at once: messages wait for all of the step before's */
	/* Of a plan with shards (gf_shard_order), whose messages are all split; NULL: there are
	 * none. update_s is then that of a rank's parts. */
	const struct gf_shard_work *works;
	size_t nworks;
};

/* When a step with shards does what: per work, and per stage of compute (2 nmessages). */
struct gf_sim_shard_times {
	double *start_s, *end_s; /* start_s: to be freed, with all that follows it */
	double *begin_s, *done_s;
};

/* Room for a step of the input; without shards all are NULL. */
struct gf_sim_shard_times gf_sim_shard_times_new(const struct gf_sim_input *in);

struct gf_sim_result {
	double iteration_s;
	double compute_s;      /* forward + backward + update, alone */
	double exposed_comm_s; /* iteration_s - compute_s */
	double forward_end_s, backward_end_s;
	struct gf_predicted_message *messages; /* caller's, nmessages */
	struct gf_sim_shard_times *shards;     /* caller's; NULL: not wanted */
	struct gf_memory_use memory;           /* by gf_predict_plan, if the plan tells it */
};

void gf_sim_step(const struct gf_sim_input *in, struct gf_sim_result *out);

/*
 * With shards the all-gathers carry parameters. A step is its works in their order; each starts by
 * the rule above once it is open, and compute stands still where a stage needs a gather that has
 * not ended. So gathers and reduce-scatters may be in flight together. The update follows the last
 * reduce-scatter, and the next step's gathers follow the update. gf_sim_step comes here
 * (shard_step.c).
 */
void gf_sim_shard_step(const struct gf_sim_input *in, struct gf_sim_result *out);
/* Per work: the compute, from the start of forward, after which it is open, and the compute that
 * waits for it, which is INFINITY of a reduce-scatter. */
void gf_sim_shard_gates(const struct gf_sim_input *in, double *open_s, double *need_s);
/* The i-th work as gf_sim_start takes it, but for what opens it. */
struct gf_sim_start gf_sim_shard_start(const struct gf_sim_input *in, size_t i);

/* The all-gather of a split message of the step before. */
struct gf_sim_gather {
	size_t message;
	double need_s;             /* forward's work before it first uses it */
	double startup_s, drain_s; /* alone */
	/* By gf_sim_forward_end_s. Forward stands still for it from wait_s to end_s. */
	double start_s, wait_s, end_s;
};

/* In the order in which they run; returns how many. out: room for in->nmessages. */
size_t gf_sim_gathers(const struct gf_sim_input *in, struct gf_sim_gather *out);
/* When forward ends, whose compute takes `factor` times as long, beside these all-gathers; says
 * when each of them runs. */
double gf_sim_forward_end_s(const struct gf_sim_input *in, double factor,
			    struct gf_sim_gather *gathers, size_t n);

/*
 * The work that backward, from start_s on, has done at n moments that do not decrease, if messages
 * were active as `messages` says (in->nmessages of them, whose starts do not decrease): issuing
 * messages is a part of that work.
 */
void gf_sim_work_done(const struct gf_sim_input *in, const struct gf_predicted_message *messages,
		      double start_s, const double *at_s, size_t n, double *work_s);

/* When backward makes each tensor's gradient (ntensors of them), in a step whose messages and ends
 * `out` has. */
void gf_sim_gradients(const struct gf_sim_input *in, const struct gf_sim_result *out,
		      double *gradient_s);

/* The message as gf_sim_start (simulator/step_state.h) takes it. */
struct gf_sim_start gf_sim_start_of(const struct gf_model_profile *model,
				    const struct gf_sim_message *m);
/* By how much backward is held up once the message is ready. */
double gf_sim_issue_s(const struct gf_model_profile *model, const struct gf_sim_message *m);
/* By how much backward is held up by all messages: its work is that much longer. */
double gf_sim_issues_s(const struct gf_sim_input *in);
/* What messages hold up after their own step's backward: the backward of a later step, where
 * gradients are stale. */
double gf_sim_held_late_s(const struct gf_sim_input *in);
/* The work of backward, and of issuing messages, after which message m may start. Those before it
 * in the plan take issued_s to issue, and all of them issues_s. */
double gf_sim_ready_work_s(const struct gf_model_profile *model, const struct gf_sim_message *m,
			   double issued_s, double issues_s);
/* May messages in flight slow backward? */
bool gf_sim_slows(const struct gf_sim_input *in);

/*
 * Completes a result whose messages' starts and ends come from elsewhere (a replay): their ready
 * times, backward's end and the iteration. out->forward_end_s is given; backward takes `factor`
 * times the model's.
 */
void gf_sim_conclude(const struct gf_sim_input *in, double factor, struct gf_sim_result *out);
/* When forward, without waiting, first uses a tensor, or any tensor of a message. Without need_s in
 * the profile, forward mirrors backward. */
double gf_sim_need_of_s(const struct gf_model_profile *model, size_t tensor);
double gf_sim_need_s(const struct gf_model_profile *model, const struct gf_sim_message *m);

#endif
