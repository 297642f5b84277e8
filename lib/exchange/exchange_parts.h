/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_EXCHANGE_EXCHANGE_PARTS_H
#define GF_EXCHANGE_EXCHANGE_PARTS_H

#include "engine/engine.h"
#include "exchange/device_flags.h"
#include "exchange/exchange.h"
#include "exchange/ledger.h"
#include "exchange/callers_memory.h"
#include "select/select.h"

/* Behind the door: exchange.c opens it, exchange_steps.c is the way of a step,
 * in_flight.c has what a checkpoint holds of it. */
struct gf_exchange {
	struct gf_exchange_env env;
	struct gf_ledger ledger;
	struct gf_pool *pools; /* per slot; between GPUs theirs */
	struct gf_selector select;
	struct gf_memory memory;  /* with env.dtypes */
	struct gf_engine *engine; /* for all else that communicates, too */
	struct gf_exchange_flags flags; /* between GPUs: which are bad */
	/* As of gf_exchange_settle: gradients that have come and wait to be
	 * taken, oldest first; K - 1 pools, zeros where there is none. */
	float *flight;
	uint64_t nflight;
	uint64_t *flight_bad; /* per age: is it bad; and its loss scale. Steps
			       * that came with a checkpoint are known so */
	double *flight_scale;
	struct gf_message_times *times; /* per message of the plan */
	size_t part, part_count; /* gf_exchange_part; count 0: all of them */
	int rc; /* of what gives nothing back: the first failure */
	struct gf_error reason;
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

/* Of step `index`, which has come. Host. */
struct gf_select_bad gf_exchange_bad_of(struct gf_exchange *x, size_t index);

/* in_flight.c, after the pools are open. */
int gf_exchange_flight_open(struct gf_exchange *x, struct gf_error *err);
void gf_exchange_flight_close(struct gf_exchange *x);
void gf_exchange_flight_state(struct gf_exchange *x, struct gf_state *s);
int gf_exchange_flight_keep(struct gf_exchange *x, struct gf_error *err);
int gf_exchange_flight_restore(struct gf_exchange *x, struct gf_error *err);

#endif
