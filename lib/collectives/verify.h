/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLLECTIVES_VERIFY_H
#define GF_COLLECTIVES_VERIFY_H

#include "base/error.h"
#include "collectives/algorithm.h"
#include "collectives/schedule.h"

/*
 * Proof by symbolic execution of all ranks' schedules together:
 *  - every send meets a receive of the same count, and nothing waits for ever;
 *  - every range lies inside its buffer, and scratch is written before read;
 *  - two steps of one rank that touch the same element, one of them writing, are ordered by the
 *    dependencies;
 *  - at the end every element on every contributor holds each contribution exactly once, summed by
 *    the same tree everywhere (IEEE addition commutes but does not associate), so that replicas are
 *    bit-identical.
 * The order of execution does not matter: steps that conflict are ordered and messages are matched
 * beforehand, so the result is that of any order. Sends are taken to wait for their receives
 * (schedule.h, POSTING): what ends under that rule ends with any amount of buffering.
 *
 * Between the halves each rank holds the sum of its schedule's `owned`, these make up the message,
 * and nothing else in DATA may be relied upon.
 *
 * -EINVAL, and the text names the rank, the step and the element.
 */
int gf_verify(const struct gf_schedule *ranks, int nranks, enum gf_coll_half half,
	      struct gf_error *err);

/*
 * The schedules agree on ranks, contributors and length; ranges lie inside their buffers;
 * dependencies point backwards; every send meets a receive of its length. On success
 * (*partners)[rank][step] is the other side's step (0 for local steps); the caller frees them.
 */
int gf_verify_shape(const struct gf_schedule *ranks, int nranks, uint32_t ***partners,
		    struct gf_error *err);
/* NULL: none. */
void gf_partners_free(uint32_t **partners, int nranks);

/* Runs schedules that have that shape on symbolic values, and checks what they leave. -EINVAL: a
 * step reads or adds nonsense, or waits for ever; a result is wrong. */
int gf_verify_run(const struct gf_schedule *ranks, int nranks, enum gf_coll_half half,
		  uint32_t **partners, struct gf_error *err);

#endif
