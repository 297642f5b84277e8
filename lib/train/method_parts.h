/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_PARTS_H
#define GF_TRAIN_METHOD_PARTS_H

#include "train/device_marks.h"
#include "train/method.h"

/*
 * A method in parts: method.c opens it, pipeline.c is the steps, verdict.c says
 * which gradients are not applied, and late.c applies messages one by one.
 */
struct gf_method_ahead {
	/* The gradient that was applied last, whose slot may be taken: its
	 * step and its loss scale. */
	size_t step;
	double scale;
	bool was_due; /* the step before applied one */
	struct gf_device_marks marks;
	struct gf_device_durations durations;
	bool has_durations;
};

/* verdict.c. 1, and which gradient is bad. */
int gf_method_refuse(const struct gf_method *m, size_t step,
		     struct gf_select_bad bad, struct gf_error *err);
/* The gradient that this step applies has come: is it to be skipped? 1: it ends
 * the run. */
int gf_method_judge(struct gf_method *m, size_t step, struct gf_error *err);
/* Ahead of a GPU: what became of the gradient applied last, which the device is
 * done with. */
void gf_method_learn(struct gf_method *m);

/* late.c. Is it used with this plan? After the selection is open. */
void gf_method_late_open(struct gf_method *m);
void gf_method_late_close(struct gf_method *m);
/* gf_method_exchange and gf_method_update. */
int gf_method_late_exchange(struct gf_method *m, struct gf_error *err);
void gf_method_late_update(struct gf_method *m, size_t step, double lr);

#endif
