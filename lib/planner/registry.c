/* SPDX-License-Identifier: BSD-3-Clause */

#include "planner/policies/policy.h"

#include "base/registry.h"

/*
 * To add a policy: one file here that fills a plan's messages (policy.h), its declaration in
 * policies.h, and a row below. gf-plan --list, --compare and the tests follow; gf-plan(1) wants a
 * sentence.
 *
 * Simple before clever: a tie goes to the earlier one.
 */
const struct gf_policy *const gf_policies[] = {
	&gf_policy_sequential,
	&gf_policy_single,
	&gf_policy_wfbp,
	&gf_policy_threshold,
	&gf_policy_mg_wfbp,
	&gf_policy_asc_wfbp,
	&gf_policy_ddp,
	&gf_policy_horovod,
	&gf_policy_optimal,
	&gf_policy_dear,
	NULL,
};

const struct gf_policy *gf_policy_find(const char *name)
{
	return gf_named_find(gf_policies, 0, name);
}
