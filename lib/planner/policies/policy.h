/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/planner/policies: one file for each policy: how tensors are cut into messages. */
#ifndef GF_POLICIES_POLICY_H
#define GF_POLICIES_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/registry.h"
#include "base/text.h"
#include "documents/plan.h"
#include "documents/profile.h"
#include "documents/topology.h"
#include "simulator/prices/price.h"

/*
 * A policy cuts the tensors of a model into messages: one file with one entry, gf_policy_NAME.
 * gf-plan --list, --compare and the tests follow; gf-plan(1) wants a sentence. Simple before
 * clever: a tie goes to the one that is listed earlier.
 */
struct gf_problem {
	const struct gf_model_profile *model;
	/* Where messages go, and what they cost. `derived` keeps replays from one menu to the next;
	 * NULL: every menu replays. */
	struct gf_fabric fabric;
	int lanes; /* upper bound on messages in flight; 0: what the policy uses by itself */
	size_t threshold_bytes; /* threshold; 0: the best one is searched */
	bool threshold_zero;    /* threshold_bytes 0: every tensor by itself, and no search */
	const char *algorithm;  /* NULL: the cheapest per message */
	/* The only decomposition that blueconnect and hierarchical may use; a stage's algorithm is
	 * open if it is NULL. */
	const struct gf_stage *factors;
	size_t nfactors;
	size_t max_messages;     /* of a plan, for optimal; 0: any number */
	bool halves;             /* only algorithms that come in two halves */
	int copies;              /* ... of shards, which leave so many; 0: no shards */
	bool reproducible;       /* only those that gf_algorithm_reproduces */
	double max_error;        /* ... whose sums round less (simulator/sum_error.h); 0: any */
	enum gf_release release; /* of all messages */
	double tolerance; /* optimal: within this share of the best time fewer lanes win, then fewer
			   * messages */
	double keep;      /* the share of every tensor that travels; 0: all */
	/* Codecs that a message may choose from, NULL-terminated; NULL: f32, the gradients as they
	 * are. */
	const char *const *codecs;
	const char *codecs_option; /* that chose them; NULL: --codecs */
};

/* Where a share of every tensor travels, that share alone is updated. */
static inline double gf_problem_update_s(const struct gf_problem *p)
{
	return (p->keep > 0 ? p->keep : 1) * p->model->update_s;
}

struct gf_workbench;
struct gf_draft;

struct gf_policy {
	const char *name;
	const char *description; /* one line, for --list */
	const char *source;      /* paper and section, or "gradflow" */
	unsigned place;          /* in listings, ascending (lib/list.sh) */
	/* When the problem leaves them open; 0: as many as contention was measured for, at least 2,
	 * at most 4. */
	int lanes;
	/* Chosen by `auto` and `optimal`. A policy that changes more than the schedule (dear: the
	 * next forward waits) is run when asked for. */
	bool automatic;
	bool halves;     /* its messages are split */
	bool thresholds; /* uses the problem's threshold_bytes */
	void (*draft)(const struct gf_workbench *w, struct gf_draft *d);
	/* Appends to lines[i] the rule that decided tensor i of a draft of its own, with its
	 * numbers (optional). */
	void (*explain)(const struct gf_workbench *w, const struct gf_draft *d,
			struct gf_text *lines);
};

extern const struct gf_policy *const gf_policies[]; /* NULL-terminated */
static inline const struct gf_policy *gf_policy_find(const char *name)
{
	return gf_named_find(gf_policies, 0, name);
}

/*
 * Draft, prediction and lower bound: a whole document in p (released on failure). -EINVAL: the
 * problem contradicts itself; -ENOTSUP: no algorithm serves it.
 */
int gf_policy_run(const struct gf_policy *policy, const struct gf_problem *in, struct gf_plan *p,
		  struct gf_error *err);

/* The plan that `optimal` finds, named after the policy that found it. Ties go to fewer lanes, then
 * to fewer messages, then to the earlier one in the registry. */
int gf_policy_auto(const struct gf_problem *in, struct gf_plan *p, struct gf_error *err);

#include "lists/gf_policies.h"

#endif
