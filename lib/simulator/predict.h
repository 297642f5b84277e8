/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_SIMULATOR_PREDICT_H
#define GF_SIMULATOR_PREDICT_H

#include "base/error.h"
#include "documents/plan.h"
#include "documents/selections/selection.h"
#include "simulator/prices/price.h"
#include "simulator/step.h"

/*
 * The prediction of a whole plan, on what it carries or on another fabric: every message priced,
 * the step model run, then selection and staleness.
 *
 * - csc: the steady state, in which `keep` of the chunks travel, rounded up, spread evenly over the
 *   tensors and packed again by the plan's threshold. A message of the plan is reported with the
 *   times of the pack that carries its last tensor.
 * - other selections: what their pure half says that a message sends
 * (documents/selections/selection.h); sets by their algorithms' forms on the levels.
 * - staleness > 1: an iteration takes as long as compute or as the exchange keeps the network busy,
 *   whichever is longer (Pipe-SGD Eq. 4; simulator/pipeline.h); messages are reported as they
 *   follow their own
 * backward pass.
 * - a period: the mean step of H (simulator/period_time.h); messages are
 * reported as they go in a step of a group.
 */

/* The fabric that a plan carries; borrows from it. */
struct gf_fabric gf_plan_fabric(const struct gf_plan *p);
/* Copies a fabric into a plan that has none yet. */
void gf_plan_take_fabric(struct gf_plan *p, const struct gf_fabric *f);

/* The wires of tensors first..last of the plan as one message; returns how many there are. */
size_t gf_plan_wires(const struct gf_plan *p, size_t first, size_t last,
		     struct gf_wire wires[GF_WIRES_MOST]);
/* The numbers that a rank sends as a wire. */
size_t gf_wire_elems(const struct gf_wire *wire);

/* What the plan's selection takes for tensors first..last as one message: choosing, packing,
 * putting the result back. */
double gf_selecting_s(const struct gf_fabric *f, const struct gf_plan *p, size_t first,
		      size_t last);

/*
 * The price of sets of sparse gradients: the transfers, by the links, and what the runtime takes
 * for any message beside its transfers. The latter is the median by which measured all-reduces
 * start up later than their closed forms on the same links; 0 where one of both is unknown.
 */
double gf_price_call_s(const struct gf_fabric *f);

/* Fills in m's startup, price per byte, and what backward and it do to each other, from its bytes;
 * call_s is of gf_price_call_s. -ENOTSUP: nothing says what a link costs. */
int gf_price_sets(const struct gf_fabric *f, enum gf_wire_kind kind, double call_s,
		  struct gf_sim_message *m, struct gf_error *err);

/* What it takes to encode and decode the sets of a wire under a codec. */
double gf_price_codings_s(const struct gf_fabric *f, const struct gf_wire *wire, const char *codec);

/* out->messages is filled where it is not NULL (nmessages, the caller's);
 * lower_bound_s is left alone. p needs its model, messages and lanes only. */
int gf_predict_plan(const struct gf_plan *p, const struct gf_fabric *f, struct gf_sim_result *out,
		    struct gf_error *err);

/* gf_predict_plan, and gradient_s (ntensors of them): when backward makes each gradient in a step
 * by itself. */
int gf_predict_gradients(const struct gf_plan *p, const struct gf_fabric *f,
			 struct gf_sim_result *out, double *gradient_s, struct gf_error *err);

/*
 * The messages of a step in the steady state, with their prices: the plan's, or csc's packs, and
 * after them what the selection sums of its own.
 */
struct gf_traffic {
	struct gf_sim_message *messages;
	size_t nmessages;
	/* of each, the plan's that it is sent like; the plan's nmessages: like
	 * gf_select_own_message */
	size_t *plan_message;
	size_t *carrier;             /* per plan message: what has its last tensor */
	double call_s;               /* in the startup of those of sets: gf_price_call_s */
	struct gf_shard_work *works; /* with shards, their order; else NULL */
	size_t nworks;
	struct gf_derived derived; /* that its messages borrow */
};

int gf_traffic_init(struct gf_traffic *t, const struct gf_plan *p, const struct gf_fabric *f,
		    struct gf_error *err);
void gf_traffic_release(struct gf_traffic *t);
/* The plan's message that one of this plan_message goes like; borrowed. */
const struct gf_message *gf_traffic_like(const struct gf_plan *p, size_t plan_message);
/* How gf_price_message asks for that message's price. */
struct gf_priced gf_traffic_priced(const struct gf_plan *p, const struct gf_message *like,
				   const struct gf_sim_message *m);

/* As gf_predict_plan, of traffic that p's messages were made into. */
int gf_predict_traffic(const struct gf_plan *p, const struct gf_traffic *t,
		       struct gf_sim_result *out, struct gf_error *err);
/* Predicts a plan into p->predicted, which is made where it is NULL, with the replays of `derived`,
 * or NULL. */
int gf_plan_predict(struct gf_plan *p, struct gf_derived *derived, struct gf_error *err);

/* How long the update takes: of a selection with GF_SELECT_PIECES, the share of the elements that
 * goes out; with shards, a rank's part. */
double gf_plan_update_share(const struct gf_plan *p);
double gf_plan_update_s(const struct gf_plan *p);
/* Forward, backward and update, alone. */
double gf_plan_compute_s(const struct gf_plan *p);
/* A step of the plan with these messages. */
struct gf_sim_input gf_plan_input(const struct gf_plan *p, const struct gf_traffic *t);

/* With staleness > 1 a step's exchange runs beside the next steps' compute, and an iteration takes
 * the longer of both (Pipe-SGD, Li et al. 2018, Eq. 4). Sets iteration and exposed communication;
 * exchange_s: how long an exchange keeps the network busy. */
void gf_sim_pipeline(const struct gf_plan *p, double exchange_s, struct gf_sim_result *out);

#endif
