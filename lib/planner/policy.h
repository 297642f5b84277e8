/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_POLICY_H
#define GF_PLANNER_POLICY_H

#include <stddef.h>

#include "base/error.h"
#include "doc/plan.h"
#include "doc/profile.h"
#include "doc/topology.h"

/*
 * A policy cuts the tensors of a model into messages: one file each, one table
 * entry, listed in registry.c.
 */
struct gf_problem {
	const struct gf_model_profile *model;
	const struct gf_network *network;   /* costs, measured or derived */
	const struct gf_level *levels;      /* or NULL */
	size_t nlevels;
	int ranks;
	int lanes;              /* upper bound on messages in flight */
	size_t threshold_bytes; /* threshold; 0: search the best */
	const char *algorithm;  /* NULL: the cheapest per message */
};

struct gf_policy {
	const char *name;
	const char *description; /* one line, for --list */
	const char *source;      /* paper and section, or "gradflow" */
	/* Fills p->messages (first, last, mode, release, algorithm) and
	 * p->lanes. */
	int (*plan)(const struct gf_problem *in, struct gf_plan *p,
		    struct gf_error *err);
};

extern const struct gf_policy *const gf_policies[]; /* NULL-terminated */
const struct gf_policy *gf_policy_find(const char *name);

/* plan + prediction + lower bound: a whole document. */
int gf_policy_run(const struct gf_policy *policy, const struct gf_problem *in,
		  struct gf_plan *p, struct gf_error *err);

#endif
