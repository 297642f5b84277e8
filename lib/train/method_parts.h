/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_PARTS_H
#define GF_TRAIN_METHOD_PARTS_H

#include "train/method.h"

/* Between method.c, the pipeline of whole steps, and method_late.c, where
 * messages are applied one by one. */

/* Is it used with this plan? After the exchange is open. */
void gf_method_late_open(struct gf_method *m);
void gf_method_late_close(struct gf_method *m);
/* gf_method_exchange and gf_method_update. */
int gf_method_late_exchange(struct gf_method *m, struct gf_error *err);
void gf_method_late_update(struct gf_method *m, size_t step, double lr);

/* Waits until the messages of the first `count` steps have ended. */
int gf_method_await(struct gf_method *m, size_t count, struct gf_error *err);
/* 1, and which gradient is bad. */
int gf_method_refuse(const struct gf_method *m, size_t step,
		     struct gf_exchange_bad bad, struct gf_error *err);

#endif
