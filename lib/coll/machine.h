/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_COLL_MACHINE_H
#define GF_COLL_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "coll/algorithm.h"
#include "coll/schedule.h"
#include "coll/values.h"

/*
 * The verifier's machine: runs all ranks' schedules together on symbolic
 * values. Its schedules are borrowed and must have passed gf_verify_shape.
 */
struct gf_machine {
	const struct gf_schedule *ranks;
	int nranks;
	struct gf_terms terms;
	struct gf_runs *buffers;        /* per rank: DATA, SCRATCH */
	struct gf_machine_step **steps; /* [rank][step] */
	uint32_t **users;               /* [rank] */
	uint32_t **partners;           /* [rank][step]: the other side's step */
	struct gf_machine_place *todo; /* steps to look at */
	size_t ntodo, todo_capacity;
};

/* Buffers hold what they hold before that half. partners is taken. */
void gf_machine_init(struct gf_machine *m, enum gf_coll_half half,
		     const struct gf_schedule *ranks, int nranks,
		     uint32_t **partners);
void gf_machine_release(struct gf_machine *m);

/* -EINVAL: a step reads or adds nonsense, or waits for ever. */
int gf_machine_run(struct gf_machine *m, struct gf_error *err);

struct gf_runs *gf_machine_buffer(struct gf_machine *m, int rank,
				  enum gf_buffer b);

#endif
