/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_CONTEST_PLAN_EXCHANGE_H
#define GF_CONTEST_PLAN_EXCHANGE_H

#include "base/error.h"
#include "contest/allreduce.h"
#include "doc/plan.h"

/*
 * A plan with a selection, as training runs it (exchange/exchange.h): a repeat
 * is a step after any warm-up whose gradients are all ready at once, from its
 * beginning to its sums. What is chosen, how sets are made and what becomes of
 * the rest is part of it. Gradients are normal numbers, other ones in each
 * repeat. In place they lie where the exchange wants them; out of place they
 * are copied there first. What is right depends on the selection, but all ranks
 * must end with the same sums: an element is wrong where it is not rank 0's.
 */

/* -ENOTSUP: what was asked for is about dense messages between hosts. */
int gf_contest_exchange_check(const struct gf_plan *plan,
			      const struct gf_contest_allreduce_config *config,
			      struct gf_error *err);

/* Collective: one row, of all messages. */
int gf_contest_exchange_run(const struct gf_plan *plan,
			    const struct gf_contest_allreduce_config *config,
			    struct gf_contest_row *row, struct gf_error *err);

#endif
