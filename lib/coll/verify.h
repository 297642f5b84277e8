/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLL_VERIFY_H
#define GF_COLL_VERIFY_H

#include <stddef.h>

#include "base/error.h"
#include "coll/schedule.h"

/*
 * Proof by symbolic execution of all ranks' schedules together:
 *  - every send meets a receive of the same count, and nothing waits for ever;
 *  - every range lies inside its buffer, and scratch is written before read;
 *  - two steps of one rank that touch the same element, one of them writing,
 *    are ordered by the dependencies;
 *  - at the end every element on every rank holds each rank's contribution
 *    exactly once, summed by the same tree on every rank (so that replicas
 *    are bit-identical).
 */
int gf_verify_allreduce(const struct gf_schedule *ranks, int nranks,
			struct gf_error *err);

#endif
