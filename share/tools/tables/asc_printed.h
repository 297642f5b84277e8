/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TABLES_ASC_PRINTED_H
#define GF_TABLES_ASC_PRINTED_H

#include "planner/policies/policy.h"

/* A policy for the report alone; the planner does not know it. */
extern const struct gf_policy gf_policy_asc_printed;

#endif
