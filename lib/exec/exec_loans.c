/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums that go back to the rank that sent a part of them (comm.h, isend_lent).
 *
 * A rank lends a range to a peer if it sends the range to the peer and then
 * receives the same range from the peer, before any other step of its own
 * touches it. The peer puts the sum back if it reduces into a range and then,
 * before the range changes, sends it to the rank that the data came from. Each
 * rank decides by its own schedule, and is right about itself. The transport
 * saves a copy only if both decide so.
 */

#include "base/heap.h"
#include "exec/exec_parts.h"

/* Has all that `later` waits for come to its end once `earlier` has? */
static bool follows(const struct gf_schedule *s, uint32_t later,
		    uint32_t earlier)
{
	const struct gf_step *step = &s->steps[later];
	const struct gf_step *before = &s->steps[earlier];
	const uint32_t *deps = s->deps;
	uint32_t i, k;

	for (i = 0; i < step->ndeps; i++) {
		uint32_t d = deps[step->first_dep + i];

		for (k = 0; k < before->ndeps; k++)
			if (deps[before->first_dep + k] == d)
				break;
		if (d != earlier && k == before->ndeps)
			return false;
	}
	return true;
}

/* The step with that operation on the range of `i`, with its peer, that comes
 * right after it; 0: there is none, for none comes after nothing. */
static uint32_t next_on_range(const struct gf_exec_run *run, uint32_t i,
			      enum gf_step_op op)
{
	const struct gf_step *steps = run->schedule->steps;
	uint32_t k, user;

	for (k = run->first_user[i]; k < run->first_user[i + 1]; k++) {
		user = run->users[k];
		if (steps[user].op == op && steps[user].peer == steps[i].peer &&
		    gf_range_same(steps[user].range, steps[i].range) &&
		    follows(run->schedule, user, i))
			return user;
	}
	return 0;
}

void gf_exec_find_loans(struct gf_exec_run *run)
{
	const struct gf_schedule *s = run->schedule;
	struct gf_comm *c = run->exec->comm;
	uint32_t i, back;

	run->loans = gf_xcalloc(s->nsteps + 1, sizeof(*run->loans));
	for (i = 0; c->ops->isend_lent && i < s->nsteps; i++) {
		if (run->ways[i] != GF_EXEC_PLAIN || run->loans[i] ||
		    !c->ops->reduces_from(c, s->steps[i].peer))
			continue;
		if (s->steps[i].op == GF_STEP_SEND &&
		    next_on_range(run, i, GF_STEP_RECV)) {
			run->loans[i] = GF_EXEC_LENT;
		} else if (s->steps[i].op == GF_STEP_RECV_REDUCE &&
			   (back = next_on_range(run, i, GF_STEP_SEND))) {
			run->loans[i] = GF_EXEC_BACK;
			run->loans[back] = GF_EXEC_BACK;
		}
	}
}
