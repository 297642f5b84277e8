/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/planner: makes plans: from documents and wishes to the messages that gradients are sent
 * in. */
#ifndef GF_PLANNER_MAKE_H
#define GF_PLANNER_MAKE_H

#include "base/error.h"
#include "base/text.h"
#include "documents/plan.h"
#include "documents/stream.h"
#include "planner/axes.h"
#include "planner/policies/policy.h"
#include "planner/systems.h"

/* Of auto, unless the user asks for another: the doubt of the surest fit, which counts from the
 * first to the second. */
#define GF_TOLERANCE      0.005
#define GF_TOLERANCE_MOST 0.02

/*
 * From documents and wishes to a plan. Zero and NULL: not asked for.
 */
struct gf_request {
	const struct gf_model_profile *model;
	struct gf_fabric fabric;                      /* ranks 0: unknown */
	bool one_host;                                /* the levels are those of a single host */
	const char *topology_digest, *profile_digest; /* "" or NULL: none */
	const char *system, *policy;
	int lanes;
	double tolerance;     /* for auto and optimal */
	bool tolerance_asked; /* which 0 is not */
	size_t threshold_bytes;
	bool threshold_zero; /* asked for, which threshold_bytes 0 is not */
	bool ranks_asked;    /* by the user: servers come on top of them */
	const char *algorithm;
	const char *const *codecs;
	const char *const *outer_codecs; /* of a period's messages; NULL: f32 */
	const struct gf_axes *axes;      /* or NULL: all open */
	size_t max_messages;             /* of the plan; 0: any number */
	bool elsewhere;                  /* another program runs it: of gradflow's own, no word */
	bool reproducible;               /* bits that do not depend on the cut */
	double max_error;                /* of each message, by rounding; 0: any */
	const struct gf_plan *rule;      /* given, to be bound; or NULL */
	/* The options by which the user chose something of the above that a plan decides, with
	 * blanks between; NULL: none. */
	const char *wishes;
};

/* A request made ready: its system with the user's choices in it, the problem that the policies
 * solve. It borrows from the request. */
struct gf_task {
	struct gf_system system;
	struct gf_selection selection;   /* owned */
	struct gf_problem problem;       /* ranks 0: unknown */
	const struct gf_policy *policy;  /* asked for; or NULL: the best */
	double bound_s;                  /* of packs that are cut anew; else 0 */
	struct gf_derived derived;       /* the problem's */
	struct gf_derived outer_derived; /* of the exchange of all ranks */
	struct gf_stage *by_levels;      /* the problem's factors; or NULL */
	/* What sets may be encoded by; borrowed. NULL: they are none. */
	const char *const *set_codecs;
	/* With a period the problem is that of a group's ranks. */
	struct gf_period period;    /* without messages; no plan: every step */
	struct gf_problem outer;    /* the exchange of all ranks */
	struct gf_network lines;    /* that a group's fabric may borrow */
	const struct gf_axes *axes; /* the request's */
	/* Without `ahead`; the problem's ranks are those of its groups. And what a rank may hold.
	 */
	struct gf_shard shard;
	struct gf_memory_plan memory;
};

/* Do shards or memory count? Then gf_shards_plan makes its plans. */
static inline bool gf_task_is_held(const struct gf_task *t)
{
	return t->shard.method || t->memory.limit_bytes || t->memory.state_bytes > 0;
}

/* For --threshold of a struct gf_request; 0 sends every tensor by itself. */
int gf_request_threshold(const char *text, void *request, struct gf_error *err);
bool gf_request_has_threshold(const struct gf_request *r);

/* For --tolerance of a struct gf_request: "0.005" or "0.5%". */
int gf_request_tolerance(const char *text, void *request, struct gf_error *err);

/* Borrows what the documents know: model, network, levels, ranks. A plan stands in for what no
 * other document has (request.c). */
void gf_request_documents(struct gf_request *r, const struct gf_documents *d);

/* Where nothing says the ranks: those of the levels, if these make more than one. Appends the words
 * for a list of defaults. */
void gf_request_assume_ranks(struct gf_request *r, struct gf_text *open);

/* The ranks of a group: of those below the level of the axes' name, else below the outermost that
 * has more than one. */
int gf_axes_group(const struct gf_axes *axes, const struct gf_fabric *f, int *group,
		  struct gf_error *err);
/* The outer exchange of a plan of such a task, and the prediction of both. Nothing without a
 * period. -ENOTSUP: not as little exposed as asked. */
int gf_task_add_period(const struct gf_task *t, struct gf_plan *p, struct gf_error *err);

/* The request made ready, with lines for the user in notes (task.c); the caller releases the task.
 * -EINVAL: it contradicts itself; -ENOTSUP: no algorithm serves it. */
int gf_request_pose(const struct gf_request *r, struct gf_task *t, struct gf_text *notes,
		    struct gf_error *err);
/* Notes what was taken for granted, once the task has been planned: what was neither measured nor
 * replayed. */
void gf_task_note(const struct gf_task *t, struct gf_text *notes);
/* The same of the outer exchange, once gf_task_add_period has planned it. */
void gf_task_note_outer(const struct gf_task *t, struct gf_text *notes);
void gf_task_release(struct gf_task *t);

/* Why the time of a plan is less sure than that of others: bits. */
enum gf_unsure {
	GF_UNSURE_FREE = 1 << 0,    /* what coding or choosing costs is not known: taken for 0 */
	GF_UNSURE_ASSUMED = 1 << 1, /* it is assumed, beside a measured model */
	GF_UNSURE_BEYOND = 1 << 2,  /* messages or ranks beyond those that were measured */
	GF_UNSURE_HALVED = 1 << 3,  /* halves are assumed: half of the all-reduce */
	GF_UNSURE_DERIVED = 1 << 4, /* by a data sheet, beside what was measured */
	GF_UNSURE_COST = GF_UNSURE_FREE | GF_UNSURE_ASSUMED,
};

/* Of a plan of the task: GF_UNSURE_FREE and GF_UNSURE_ASSUMED. What is assumed of a model that is
 * an estimate is as sure as the model. */
unsigned gf_task_unsure(const struct gf_task *t, const struct gf_plan *p);

/* A whole plan by this policy (NULL: by the best one, whose name it gets), with the task's axes.
 * -EINVAL: they do not go together. */
int gf_task_plan(const struct gf_task *t, const struct gf_policy *policy, struct gf_plan *p,
		 struct gf_error *err);

typedef int gf_task_planner(const struct gf_task *t, struct gf_plan *p, struct gf_error *err);

/* 0: each message of the plan rounds by no more than the bound (0: none). 1: not so, and `less`,
 * which is what a message may be chosen by, is lower for another try; `tries` have been.
 * -ENOTSUP: there have been enough. */
int gf_task_keeps(const struct gf_plan *p, double bound, int tries, double *less,
		  struct gf_error *err);
/* A plan whose messages keep the task's bound on rounding. Tensors that share blocks of a codec may
 * round more than any of them would alone: then it is made again with a lower bound. -ENOTSUP: none
 * was found. */
int gf_task_plan_within(const struct gf_task *t, gf_task_planner *make, struct gf_plan *p,
			struct gf_error *err);

/*
 * A whole plan, or a rule plan if there is no model or the ranks are unknown. notes collects lines
 * for the user ("" if there are none); NULL: nobody reads them, and the plans that they compare
 * with are not made. -EINVAL: the request contradicts itself; -ENOTSUP: nothing serves it.
 */
int gf_request_plan(const struct gf_request *r, struct gf_plan *p, struct gf_text *notes,
		    struct gf_error *err);

/* Gives the wish, which has a policy or a system, the documents of the request. */
void gf_request_plain(const struct gf_request *r, struct gf_request *wish);
/* What a step of the request's model and documents takes by the wish, which has a policy or a
 * system and gets the documents, s; 0: it does not fit there. */
double gf_request_plain_s(const struct gf_request *r, struct gf_request *wish);
/* A step of what the job has now, on the request's documents, s; 0: it does not fit there, or is
 * derived beside what was measured. now: the plan that was given; NULL: DDP's default. */
double gf_request_now_s(const struct gf_request *r, const struct gf_plan *now);

/* The rule for a posed problem without a model or ranks (rule.c): what gf_request_plan writes where
 * it cannot write a whole plan. */
int gf_request_rule(const struct gf_request *r, struct gf_problem *problem, struct gf_plan *p,
		    struct gf_text *notes, struct gf_error *err);

/* From a task to a plan, within the planner. */

/* Synchronous and dense: what the policies plan for. */
bool gf_task_is_plain(const struct gf_task *t);
/* By this policy, or (NULL) what auto finds, with the task's axes and its interval of doubt
 * (task_plan.c). -EINVAL, -ENOTSUP: not with these axes. */
int gf_task_plan_by(const struct gf_task *t, const struct gf_policy *policy, struct gf_plan *p,
		    struct gf_error *err);
/* The plan that `optimal` finds with the times of another model or the costs of another network. It
 * is predicted with the task's own; of a plain task only the lower bound is that of the search. */
int gf_task_plan_for(const struct gf_task *t, const struct gf_model_profile *model,
		     const struct gf_network *network, struct gf_plan *p, struct gf_error *err);
/* By the policy that was asked for, or the best one. */
int gf_task_plan_asked(const struct gf_task *t, struct gf_plan *p, struct gf_error *err);

#endif
