/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_MEASURE_WHERE_H
#define GF_MEASURE_WHERE_H

#include "base/error.h"
#include "base/text.h"
#include "measure/whole_profile.h"
#include "measure/compute_step.h"

/*
 * The place of a profile's measurements, by the rules of gf-train: the device,
 * the backend that computes there, and its threads.
 */

/* Collective. Opens the device, unless it is open already, and fills in backend
 * and threads. `auto` is a GPU if every rank has one that computes the model,
 * else the host; a remark names the place where there are GPUs. After a failure
 * the device may be open. */
int gf_measure_place_choose(struct gf_measure_profile *c,
			    struct gf_text *remarks, struct gf_error *err);

/* A step of the model there. It is the caller's to close, after a failure
 * as well, if step->model is set. */
int gf_measure_place_step(const struct gf_measure_profile *c,
			  struct gf_measure_step *step, struct gf_error *err);

#endif
