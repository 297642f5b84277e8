/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_EMIT_H
#define GF_PLANNER_EMIT_H

#include "base/error.h"
#include "base/text.h"
#include "doc/plan.h"

/*
 * A plan for jobs that already run: PyTorch DDP and Horovod as Python to
 * import, NCCL as shell exports. A comment of the output
 * states the parts of the plan that the target cannot express.
 */
struct gf_emitter {
	const char *name;
	const char *description;
	/* -ENOTSUP: the plan needs what the target does not have. */
	int (*emit)(const struct gf_plan *p, struct gf_text *out,
		    struct gf_error *err);
};

extern const struct gf_emitter gf_emitters[]; /* name NULL ends it */

/* -EINVAL: no such target. */
int gf_plan_emit(const struct gf_plan *p, const char *target,
		 struct gf_text *out, struct gf_error *err);

#endif
