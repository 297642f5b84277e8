/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_COMPARE_H
#define GF_PLANNER_COMPARE_H

#include "base/registry.h"
#include "planner/make.h"

/* Every policy on one problem, best first. */
struct gf_compared {
	const struct gf_policy *policy;
	int lanes;
	size_t nmessages;
	double iteration_s, compute_s, exposed_comm_s, lower_bound_s;
	double iteration_low_s, iteration_high_s; /* both 0: no doubt */
};

/* Needs a model and ranks (-EINVAL). The caller frees *rows. */
int gf_request_compare(const struct gf_request *r, struct gf_compared **rows,
		       size_t *nrows, struct gf_text *notes,
		       struct gf_error *err);
/* For people. */
void gf_compared_table(const struct gf_compared *rows, size_t n,
		       struct gf_text *out);
/* One row as a line of JSON. */
void gf_compared_json(const struct gf_compared *row, struct gf_text *out);

/* All that gf-plan takes by name, but for files; ended by a list without one.
 */
enum { GF_PLAN_LISTS = 7 };
extern const struct gf_list gf_plan_lists[GF_PLAN_LISTS + 1];

#endif
