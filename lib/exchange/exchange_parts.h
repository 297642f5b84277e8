/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXCHANGE_EXCHANGE_PARTS_H
#define GF_EXCHANGE_EXCHANGE_PARTS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/engine/engine.h"
#include "runtime/shard_list.h"
#include "exchange/exchange.h"
#include "exchange/callers_memory.h"
#include "exchange/posted_halves.h"
#include "compressors/select.h"
#include "base/error.h"
#include "cuda/gpu.h"

/*
 * Which step it is. Steps have an index: from 0, those first that a checkpoint had in flight, then
 * those that this process begins. Each goes through four states in the order of indices: begun (its
 * gradients are made), arrived (the host has seen its messages end), taken (the caller has its
 * sums), learnt (of steps on a GPU: the host knows how it ended). So a count for each state says
 * everything. Up to `depth` steps are begun and not taken; each has a slot.
 * On a GPU the messages of a step are listed after it has begun.
 */
struct gf_ledger {
	size_t depth;
	size_t begun, listed, arrived, taken, learnt; /* so many */
	size_t restored;                              /* the first so many came with a checkpoint */
	size_t shift;                                 /* index i is in slot (i + shift) % depth */
	size_t number;                                /* of the run's step begun last: from 1 */
};

static inline void gf_ledger_init(struct gf_ledger *l, size_t depth)
{
	*l = (struct gf_ledger){.depth = depth};
}

static inline size_t gf_ledger_slot(const struct gf_ledger *l, size_t index)
{
	return (index + l->shift) % l->depth;
}
/* How many steps have begun since that one. */
static inline size_t gf_ledger_age(const struct gf_ledger *l, size_t index)
{
	return l->begun - 1 - index;
}
static inline size_t gf_ledger_waiting(const struct gf_ledger *l)
{
	return l->begun - l->taken;
}
static inline bool gf_ledger_is_restored(const struct gf_ledger *l, size_t index)
{
	return index < l->restored;
}
/* The number of a step for who counts those of this process alone. */
static inline uint64_t gf_ledger_own(const struct gf_ledger *l, size_t index)
{
	return index - l->restored;
}
/* Is a step to be taken now? With `full` as many as may be are under way first; else each step is
 * taken before the next begins. */
static inline bool gf_ledger_is_due(const struct gf_ledger *l, bool full)
{
	return gf_ledger_waiting(l) >= (full ? l->depth : 1);
}

/* The run's step `number` begins; returns its index. */
static inline size_t gf_ledger_begin(struct gf_ledger *l, size_t number)
{
	l->number = number;
	return l->begun++;
}
/* True once for each step that has begun: its messages are to be listed. */
static inline bool gf_ledger_list(struct gf_ledger *l)
{
	if (l->listed == l->begun)
		return false;
	l->listed = l->begun;
	return true;
}
/* The next step that was not seen to arrive, of the first `count`; false: all of these have. */
static inline bool gf_ledger_next_arrival(const struct gf_ledger *l, size_t count, size_t *index)
{
	*index = l->arrived;
	return l->arrived < count;
}
static inline void gf_ledger_arrive(struct gf_ledger *l)
{
	l->arrived++;
}
static inline void gf_ledger_take(struct gf_ledger *l)
{
	l->taken++;
}
/* The next step that was taken and of which nothing is known yet. */
static inline bool gf_ledger_next_lesson(const struct gf_ledger *l, size_t *index)
{
	*index = l->learnt;
	return l->learnt < l->taken;
}
static inline void gf_ledger_learn(struct gf_ledger *l)
{
	l->learnt++;
}

/* Begins anew with so many steps in flight, so that the next one begins in slot 0. -EINVAL: too
 * many for the depth. */
int gf_ledger_restore(struct gf_ledger *l, uint64_t in_flight, struct gf_error *err);

/*
 * Is a step's gradient infinite or not a number? A device finds out and its update heeds it at
 * once; the host is told later, while there is work enqueued. Steps count from 0; a flag is another
 * step's after `count`: as many as are under way, and one of which the host knows nothing yet.
 */
struct gf_exchange_flags {
	struct gf_gpu *gpu; /* borrowed */
	size_t count;
	void *words; /* the device's */
	void *seen;  /* their copies, pinned */
	struct gf_gpu_event **known;
};

/* The device's word for a step; not 0: bad. The code that uses it clears and sets it. */
static inline uint32_t *gf_exchange_flag(const struct gf_exchange_flags *f, size_t step)
{
	return (uint32_t *)f->words + step % f->count;
}

/* Behind the door: exchange.c opens it, and has what a checkpoint holds of it; exchange_steps.c is
 * the way of a step. */
struct gf_exchange {
	struct gf_exchange_env env;
	struct gf_ledger ledger;
	struct gf_pool *pools; /* per slot; between GPUs theirs */
	struct gf_selector *select;
	struct gf_exchange_step *steps; /* per slot */
	struct gf_memory memory;        /* with env.dtypes */
	struct gf_halves *halves;       /* with env.halves: in place of pools and a selector */
	struct gf_engine *engine;       /* for all else that communicates, too */
	struct gf_exchange_flags flags; /* between GPUs: which are bad */
	/* As of gf_exchange_settle: gradients that have come and wait to be taken, oldest first; K
	 * - 1 pools, zeros where there is none. */
	float *flight;
	uint64_t nflight;
	uint64_t *flight_bad; /* per age: is it bad; and its loss scale. Steps that came with a
			       * checkpoint are known so */
	double *flight_scale;
	struct gf_message_times *times; /* of gf_exchange_times */
	struct gf_optim_piece piece;    /* of gf_exchange_sums */
	size_t fragment;                /* of env.period, of the step begun last */
};

static inline size_t gf_exchange_slot(const struct gf_exchange *x, size_t index)
{
	return gf_ledger_slot(&x->ledger, index);
}
/* Elements of a pool. */
static inline size_t gf_exchange_elems(const struct gf_exchange *x)
{
	return x->pools[0].count_elems;
}

/* Until the messages of the first `count` steps have ended. Host. */
int gf_exchange_await(struct gf_exchange *x, size_t count, struct gf_error *err);
static inline void gf_exchange_no_times(struct gf_exchange *x)
{
	size_t i;

	for (i = 0; i < 3 * x->env.plan->nmessages; i++)
		x->times[i] = (struct gf_message_times){NAN, NAN, NAN, 0, 0, 0};
}
/* Of step `index`, which has come. Host. */
static inline struct gf_select_bad gf_exchange_bad_of(struct gf_exchange *x, size_t index)
{
	if (gf_ledger_is_restored(&x->ledger, index))
		return (struct gf_select_bad){.found = x->steps[gf_exchange_slot(x, index)].bad};
	return gf_select_inspect(x->select, gf_exchange_slot(x, index));
}

#endif
