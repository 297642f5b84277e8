/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_WORKBENCH_H
#define GF_PLANNER_WORKBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "documents/plan.h"
#include "planner/menu.h"
#include "planner/policies/policy.h"
#include "simulator/step.h"

/*
 * A problem in the form in which policies want it: arrays over the tensors and the menu of costs.
 * Times count from the start of forward.
 */
#define GF_LANES_MOST 4 /* unless the user asks for more */

struct gf_workbench {
	const struct gf_problem *in;
	size_t ntensors;
	int lanes;
	double *ready_s;      /* without overlap slowdown */
	double *prefix_bytes; /* ntensors + 1: bytes before tensor i */
	size_t *run_last;     /* the last tensor that may share a message with i: a message has one
			       * dtype */
	double backward_end_s;
	double slowdown; /* by options that say no more */
	double least_slowdown;
	/* Messages hold backward up, or it them: a message's cost depends on when it runs, and
	 * earlier messages on how many there are. */
	bool mutual;
	struct gf_menu menu;
};

/* A plan in the making: messages that name their option in the menu. */
struct gf_send {
	size_t first, last;
	enum gf_mode mode;
	enum gf_release release;
	enum gf_half half;
	size_t option;
};

struct gf_draft {
	struct gf_send *sends;
	size_t nsends, capacity;
	int lanes;
	int lanes_allowed;              /* that the policy could have used */
	size_t threshold_bytes;         /* the rule that made it; 0: none */
	double iteration_s;             /* by gf_workbench_predict */
	double fastest_s;               /* of the fastest draft found; 0: that is this one */
	const struct gf_policy *policy; /* that made it */
};

int gf_workbench_init(struct gf_workbench *w, const struct gf_problem *in, struct gf_error *err);
void gf_workbench_release(struct gf_workbench *w);
/* The problem with some of its ways alone; else as gf_menu_part, which its menu is. */
size_t *gf_workbench_part(const struct gf_workbench *w, uint32_t ways, struct gf_workbench *part);

static inline double gf_workbench_bytes(const struct gf_workbench *w, size_t first, size_t last)
{
	return w->prefix_bytes[last + 1] - w->prefix_bytes[first];
}

/* Lazy all-reduce: the last tensor of the message that begins at first, the first one with which
 * more than theta bytes wait (or the run's last). */
size_t gf_workbench_lazy_cut(const struct gf_workbench *w, size_t first, double theta);

/* gamma_n of a message that is sent by that option. */
double gf_workbench_gamma(const struct gf_workbench *w, size_t option, double bytes, int n);

/* On one lane, after some messages: when the last one ended, and what backward lost to them. */
struct gf_workbench_at {
	double end_s, lag_s;
};
/* One more message, or its reduce-scatter, which backward has made at ready_s of its own work. */
struct gf_workbench_next {
	size_t option;
	double bytes, ready_s;
};
/* When the last message has ended after one more, and what backward has lost.
 */
struct gf_workbench_at gf_workbench_after(const struct gf_workbench *w,
					  const struct gf_workbench_next *m,
					  struct gf_workbench_at at);

void gf_draft_release(struct gf_draft *d);
/* Appends tensors first..last, normal, ready, whole, at the cheapest option. */
struct gf_send *gf_draft_send(struct gf_draft *d, const struct gf_workbench *w, size_t first,
			      size_t last);
/* Appends all tensors, cut by the lazy rule. */
void gf_draft_cut(struct gf_draft *d, const struct gf_workbench *w, double theta);
/* The messages in the opposite order. */
void gf_draft_reverse(struct gf_draft *d);
/* Runs the policy on `lanes` lanes (0: its own choice) and predicts. */
void gf_draft_make(struct gf_draft *d, const struct gf_workbench *w, const struct gf_policy *policy,
		   int lanes);

/* As the step model takes it. */
struct gf_sim_message gf_workbench_message(const struct gf_workbench *w, const struct gf_send *s);
/* Sets the draft's iteration_s by the step model. Returns when backward ends, seconds. */
double gf_workbench_predict(const struct gf_workbench *w, struct gf_draft *d);

/*
 * A plan message by message: the state of the step model when the last message has started. The
 * caller owns the flights, room for `lanes`.
 */
struct gf_sim_state gf_workbench_begin(const struct gf_workbench *w, int lanes,
				       struct gf_sim_flight *flights);
void gf_workbench_copy(struct gf_sim_state *to, const struct gf_sim_state *from,
		       struct gf_sim_flight *flights);
/* Starts a message as early as its mode allows. Were others in flight then? */
bool gf_workbench_send(const struct gf_workbench *w, struct gf_sim_state *s,
		       const struct gf_send *send);
/* The iteration if that was the last message; uses the state up. */
double gf_workbench_end_s(const struct gf_workbench *w, struct gf_sim_state *s);

/*
 * No plan of this problem over so many lanes is faster under the time model of gf-time(7); the
 * proof is in bound.c. split: every message is split in halves (dear).
 */
double gf_workbench_bound_s(const struct gf_workbench *w, int lanes);
double gf_workbench_split_bound_s(const struct gf_workbench *w, int lanes);
/* No exchange of all tensors has messages in flight for a shorter time. */
double gf_workbench_exchange_bound_s(const struct gf_workbench *w, int lanes);

/*
 * The bounds on the rest of a plan, after the messages of its first tensors (bound.c). The owner
 * releases it.
 */
struct gf_rest {
	const struct gf_workbench *w;
	int lanes;
	size_t nmixes;    /* of the bounds by network and by lanes, >= 2 */
	double *busy_s;   /* (ntensors + 1) * nmixes: tensors i.. at least */
	double *latest_s; /* ntensors + 1: end of tensors i.. at least */
	double lambda;    /* of the mix that binds the whole plan */
	size_t nsteps;    /* of sizes */
	uint64_t first_step;
	double *shares; /* nsteps * noptions: the least gamma_n/n */
};

void gf_rest_init(struct gf_rest *r, const struct gf_workbench *w, int lanes, size_t nmixes);
void gf_rest_release(struct gf_rest *r);
/* As gf_workbench_send; marks the flight for gf_rest_bound_s. */
bool gf_rest_send(const struct gf_rest *r, struct gf_sim_state *s, const struct gf_send *send);
/* What a message that starts now adds to *priced_s of gf_rest_bound_s. */
double gf_rest_price_s(const struct gf_rest *r, size_t option, double bytes);
/* The iteration, at least, once tensors 0..next-1 have led to this state. priced_s (or NULL): now,
 * and what is in flight by lambda. */
double gf_rest_bound_s(const struct gf_rest *r, const struct gf_sim_state *s, size_t next,
		       double *priced_s);

#endif
