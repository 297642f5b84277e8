/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_PARTS_H
#define GF_TRAIN_METHOD_PARTS_H

#include "train/method.h"

/*
 * Methods in parts: method_host.c is the host's pipeline of whole steps and
 * method_late.c applies messages one by one; method_device.c is the pipeline of
 * gradients that stay on GPUs; method_flight.c has what of either goes into a
 * checkpoint.
 */

/* Steps under way at once; where the index-th is; elements of a pool. */
static inline size_t gf_method_depth(const struct gf_method *m)
{
	return (size_t)m->env.plan->staleness;
}
static inline size_t gf_method_slot(const struct gf_method *m, size_t index)
{
	return (index + m->shift) % gf_method_depth(m);
}
static inline size_t gf_method_elems(const struct gf_method *m)
{
	return m->updater.offsets[m->env.plan->model->ntensors];
}

/* A step applies the gradient of so many steps before, if it is there. */
static inline bool gf_method_is_due(const struct gf_method *m, size_t step)
{
	const bool warm = step > m->env.plan->pipeline_warmup_steps;

	return m->begun - m->applied >= (warm ? gf_method_depth(m) : 1);
}

/* After the updater is open. */
int gf_method_flight_open(struct gf_method *m, struct gf_error *err);
void gf_method_flight_close(struct gf_method *m);
void gf_method_flight_state(struct gf_method *m, struct gf_state *s);
/* What is in flight goes into a checkpoint now: where the age-th goes, zeros
 * so far; there are nflight. */
float *gf_method_flight_keep(struct gf_method *m, size_t age);
/* It came from one: those nflight have been begun, and none is applied. */
int gf_method_flight_restore(struct gf_method *m, struct gf_error *err);
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
struct gf_select_bad gf_method_bad(const struct gf_method *m, size_t index);
/* 1, and which gradient is bad. */
int gf_method_refuse(const struct gf_method *m, size_t step,
		     struct gf_select_bad bad, struct gf_error *err);

#endif
