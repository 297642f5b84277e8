/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/planner/policies: one file for each policy: how tensors are cut into messages. */
#ifndef GF_POLICIES_POLICIES_H
#define GF_POLICIES_POLICIES_H

#include "planner/policies/policy.h"

/* One per file of the same name. */
extern const struct gf_policy gf_policy_sequential;
extern const struct gf_policy gf_policy_single;
extern const struct gf_policy gf_policy_wfbp;
extern const struct gf_policy gf_policy_threshold;
extern const struct gf_policy gf_policy_mg_wfbp;
extern const struct gf_policy gf_policy_asc_wfbp;
extern const struct gf_policy gf_policy_ddp;
extern const struct gf_policy gf_policy_horovod;
extern const struct gf_policy gf_policy_optimal;
extern const struct gf_policy gf_policy_dear;

/* Not in the registry: ddp in older releases of PyTorch. */
extern const struct gf_policy gf_policy_ddp_capped;
/* Nor this: buckets of at most the threshold, in which DeepSpeed and XLA send what is ready. */
extern const struct gf_policy gf_policy_at_most;

#endif
