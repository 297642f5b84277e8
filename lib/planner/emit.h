/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_PLANNER_EMIT_H
#define GF_PLANNER_EMIT_H

#include <stdbool.h>

#include "base/error.h"
#include "base/text.h"
#include "doc/plan.h"
#include "planner/make.h"
#include "planner/policy.h"

/*
 * A plan for jobs that already run: PyTorch DDP and Horovod as Python to
 * import, NCCL as shell exports. A comment of the output states the parts of
 * the plan that the target cannot express; what would change the gradients and
 * cannot be expressed is refused.
 */

/* Predicted times of a step; 0: not known. */
struct gf_emit_times {
	double default_s;  /* of the target as it is */
	double cap_s;      /* of the best cap for all buckets */
	double cap_most_s; /* in the slower one of two ways to take a cap */
	double cap_bytes;
	double plan_s; /* of the plan as the target runs it */
	double own_s;  /* of the plan as gradflow runs it */
};

struct gf_emitter {
	const char *name;
	const char *description;
	/* What the target does by itself. Its all-reduce is the library's, one
	 * at a time, and has one codec. NULL: the target changes no message. */
	const struct gf_policy *as_it_is;
	const char *program; /* the name of the target for people */
	bool caps;           /* buckets can have one cap */
	/* May all messages have this codec? */
	bool (*takes_codec)(const char *codec);
	/* -ENOTSUP: the plan needs what the target does not have. */
	int (*emit)(const struct gf_plan *p, const struct gf_emit_times *t,
		    struct gf_text *out, struct gf_error *err);
};

extern const struct gf_emitter *const gf_emitters[]; /* NULL-terminated */
/* Python for DistributedDataParallel and Horovod (emit_python.c). */
extern const struct gf_emitter gf_emitter_ddp, gf_emitter_horovod;

/* The first line of every output. */
void gf_emit_head(const struct gf_plan *p, const char *what,
		  struct gf_text *out);

/*
 * A plan that the target can run, and its text. given: this plan, as it is, of
 * whose documents r is made; or NULL. notes says what a step takes without the
 * plan, and with it.
 * -EINVAL: no such target; else as gf_request_plan, and as gf_emitter.emit.
 */
int gf_request_emit(const struct gf_request *r, const struct gf_plan *given,
		    const char *target, struct gf_plan *p, struct gf_text *out,
		    struct gf_text *notes, struct gf_error *err);

#endif
