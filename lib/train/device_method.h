/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_TRAIN_DEVICE_METHOD_H
#define GF_TRAIN_DEVICE_METHOD_H

#include "base/error.h"
#include "doc/plan.h"
#include "doc/training.h"

/* May the gradients of such a training go from GPU to GPU? -ENOTSUP says why
 * they go by the host. Whether NCCL is there and every rank has a GPU of its
 * own is another question. */
int gf_device_method_check(const struct gf_plan *plan,
			   const struct gf_training *training,
			   struct gf_error *err);

#endif
