/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXCHANGE_LEDGER_H
#define GF_EXCHANGE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Which step it is. Steps have an index: from 0, those first that a checkpoint
 * had in flight, then those that this process begins. Each goes through four
 * states in the order of indices: begun (its gradients are made), arrived (the
 * host has seen its messages end), taken (the caller has its sums), learnt (of
 * steps on a GPU: the host knows how it ended). So a count for each state says
 * everything. Up to `depth` steps are begun and not taken; each has a slot.
 * On a GPU the messages of a step are listed after it has begun.
 */
struct gf_ledger {
	size_t depth;
	size_t begun, listed, arrived, taken, learnt; /* so many */
	size_t restored; /* the first so many came with a checkpoint */
	size_t shift;    /* index i is in slot (i + shift) % depth */
	size_t number;   /* of the run's step begun last: from 1 */
};

void gf_ledger_init(struct gf_ledger *l, size_t depth);

size_t gf_ledger_slot(const struct gf_ledger *l, size_t index);
/* How many steps have begun since that one. */
size_t gf_ledger_age(const struct gf_ledger *l, size_t index);
size_t gf_ledger_waiting(const struct gf_ledger *l); /* to be taken */
bool gf_ledger_is_restored(const struct gf_ledger *l, size_t index);
/* The number of a step for who counts those of this process alone. */
uint64_t gf_ledger_own(const struct gf_ledger *l, size_t index);
/* Is a step to be taken now? With `full` as many as may be are under way first;
 * else each step is taken before the next begins. */
bool gf_ledger_is_due(const struct gf_ledger *l, bool full);

/* The run's step `number` begins; returns its index. */
size_t gf_ledger_begin(struct gf_ledger *l, size_t number);
/* True once for each step that has begun: its messages are to be listed. */
bool gf_ledger_list(struct gf_ledger *l);
/* The next step that was not seen to arrive, of the first `count`; false: all
 * of these have. */
bool gf_ledger_next_arrival(const struct gf_ledger *l, size_t count,
			    size_t *index);
void gf_ledger_arrive(struct gf_ledger *l);
void gf_ledger_take(struct gf_ledger *l);
/* The next step that was taken and of which nothing is known yet. */
bool gf_ledger_next_lesson(const struct gf_ledger *l, size_t *index);
void gf_ledger_learn(struct gf_ledger *l);

/* Begins anew with so many steps in flight, so that the next one begins in slot
 * 0. -EINVAL: too many for the depth. */
int gf_ledger_restore(struct gf_ledger *l, uint64_t in_flight,
		      struct gf_error *err);

#endif
