/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_METHOD_PARTS_H
#define GF_TRAIN_METHOD_PARTS_H

#include "train/method.h"

/* A method in parts: method.c applies whole steps, and late.c applies messages
 * one by one. */

/* 1, and which gradient is bad. */
int gf_method_refuse(const struct gf_method *m, size_t step,
		     struct gf_select_bad bad, struct gf_error *err);

/* late.c. Is it used with this plan? After the exchange is open. */
void gf_method_late_open(struct gf_method *m);
void gf_method_late_close(struct gf_method *m);
/* gf_method_exchange and gf_method_update. */
int gf_method_late_exchange(struct gf_method *m, struct gf_error *err);
void gf_method_late_update(struct gf_method *m, double lr);

#endif
