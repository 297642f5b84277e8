/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_PARTS_H
#define GF_TRAIN_METHOD_PARTS_H

#include "train/device_flags.h"
#include "train/device_marks.h"
#include "train/method.h"

/*
 * A method in parts: method.c opens it, pipeline.c is the steps, verdict.c says
 * which gradients are not applied, late.c applies messages one by one, and
 * in_flight.c has what of the pipeline goes into a checkpoint.
 */
struct gf_method_ahead {
	struct gf_device_flags flags; /* which gradients are bad */
	size_t learnt;                /* of m->applied */
	/* The gradient that was applied last, whose slot may be taken: its
	 * step and its loss scale. */
	size_t step;
	double scale;
	bool was_due; /* the step before applied one */
	struct gf_device_marks marks;
	struct gf_device_durations durations;
	bool has_durations;
};

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
	return m->pools[0].count_elems;
}

/* pipeline.c. The first failure of calls that return nothing is kept. */
void gf_method_keep(struct gf_method *m, int rc, const struct gf_error *err);
int gf_method_kept(const struct gf_method *m, struct gf_error *err);
/* Waits until the messages of the first `count` steps have ended. */
int gf_method_await(struct gf_method *m, size_t count, struct gf_error *err);
/* method.c. The engine is told what will be sent. */
int gf_method_expect(struct gf_method *m, struct gf_error *err);

/* verdict.c. The bad gradient of step `index`, which has come, if any. */
struct gf_select_bad gf_method_bad(const struct gf_method *m, size_t index);
/* 1, and which gradient is bad. */
int gf_method_refuse(const struct gf_method *m, size_t step,
		     struct gf_select_bad bad, struct gf_error *err);
/* The gradient that this step applies has come: is it to be skipped? 1: it ends
 * the run. */
int gf_method_judge(struct gf_method *m, size_t step, struct gf_error *err);
/* Ahead of a GPU: what became of the gradient applied last, which the device is
 * done with. */
void gf_method_learn(struct gf_method *m);

/* in_flight.c, after the pools are open. */
int gf_method_flight_open(struct gf_method *m, struct gf_error *err);
void gf_method_flight_close(struct gf_method *m);
void gf_method_flight_state(struct gf_method *m, struct gf_state *s);

/* late.c. Is it used with this plan? After the selection is open. */
void gf_method_late_open(struct gf_method *m);
void gf_method_late_close(struct gf_method *m);
/* gf_method_exchange and gf_method_update. */
int gf_method_late_exchange(struct gf_method *m, struct gf_error *err);
void gf_method_late_update(struct gf_method *m, size_t step, double lr);

#endif
