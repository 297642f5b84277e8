/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_PARTS_H
#define GF_TRAIN_METHOD_PARTS_H

#include "train/method.h"

/*
 * The host's method in parts: method_host.c is the pipeline of whole steps,
 * method_late.c applies messages one by one, and method_flight.c has what of
 * the pipeline goes into a checkpoint.
 */

/* Steps under way at once; where the index-th is; elements of a pool. */
static inline size_t gf_method_depth(const struct gf_method *m)
{
	return m->exchange.env.depth;
}
static inline size_t gf_method_slot(const struct gf_method *m, size_t index)
{
	return (index + m->shift) % gf_method_depth(m);
}
static inline size_t gf_method_elems(const struct gf_method *m)
{
	return m->exchange.pools[0].count_elems;
}

/* After the exchange is open. */
int gf_method_flight_open(struct gf_method *m, struct gf_error *err);
void gf_method_flight_state(struct gf_method *m, struct gf_state *s);
/* gf_method_settle and gf_method_restore. */
int gf_method_settle_host(struct gf_method *m, struct gf_error *err);
int gf_method_restore_host(struct gf_method *m, struct gf_error *err);

/* Is it used with this plan? After the exchange is open. */
void gf_method_late_open(struct gf_method *m);
void gf_method_late_close(struct gf_method *m);
/* gf_method_exchange and gf_method_update. */
int gf_method_late_exchange(struct gf_method *m, struct gf_error *err);
void gf_method_late_update(struct gf_method *m, size_t step, double lr);

/* Waits until the messages of the first `count` steps have ended. */
int gf_method_await(struct gf_method *m, size_t count, struct gf_error *err);
/* What is wrong with step `index`, which has come. */
struct gf_exchange_bad gf_method_bad(const struct gf_method *m, size_t index);
/* 1, and which gradient is bad. */
int gf_method_refuse(const struct gf_method *m, size_t step,
		     struct gf_exchange_bad bad, struct gf_error *err);

#endif
