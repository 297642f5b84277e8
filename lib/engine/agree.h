/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_ENGINE_AGREE_H
#define GF_ENGINE_AGREE_H

#include "base/error.h"
#include "comm/comm.h"
#include "doc/plan.h"
#include "gpu/gpu.h"

/* What every engine asks of a plan before it takes it to a job. */

/* This rank's view: a plan that this build runs, and for so many ranks as the
 * job has, servers counted. -EINVAL, -ENOTSUP. */
int gf_agree_takes(const struct gf_comm *comm, const struct gf_plan *plan,
		   struct gf_error *err);

/*
 * All ranks together: the same version, the same `text` of `what`, the same
 * plan? Two ranks that run different things would wait for each other for ever,
 * or add up data that do not belong together. -EINVAL names both sides.
 */
int gf_agree_same(struct gf_comm *comm, const struct gf_plan *plan,
		  const char *what, const char *text, struct gf_error *err);
/* All ranks together: 0, or -EINVAL names two ranks that use one GPU. */
int gf_agree_own_gpus(struct gf_comm *comm, const struct gf_gpu *gpu,
		      struct gf_error *err);

#endif
