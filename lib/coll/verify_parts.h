/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLL_VERIFY_PARTS_H
#define GF_COLL_VERIFY_PARTS_H

#include <stdint.h>

#include "base/error.h"
#include "coll/schedule.h"

/* The verifier's parts; see verify.h for what they prove together. */

/*
 * The schedules agree on ranks, contributors and length; ranges lie inside
 * their buffers; dependencies point backwards; every send meets a receive of
 * its length. On success (*partners)[rank][step] is the other side's step (0
 * for local steps); the caller frees both levels.
 */
int gf_verify_shape(const struct gf_schedule *ranks, int nranks,
		    uint32_t ***partners, struct gf_error *err);

/* Checks all pairs of steps of one rank that touch the same element, one of
 * them as a writer. Dependencies must order the pair, directly or through other
 * steps. */
int gf_verify_races(const struct gf_schedule *s, struct gf_error *err);

#endif
