/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GF_AUTOTUNE_WAYS_H
#define GF_AUTOTUNE_WAYS_H

#include <stddef.h>

#include "base/error.h"
#include "collectives/way.h"
#include "documents/plan.h"
#include "transport/comm.h"
#include "transport/message_element.h"

/* The ranks of a job as hosts see them: factors {ranks per host, hosts} where all hosts have as
 * many, and neighbours; else none. Collective. */
int gf_choose_layout(struct gf_comm *comm, size_t *nfactors, int factors[2], struct gf_error *err);

/* A rule's entries that go by levels take those of the job, as gf_rule_place says: ranks of a host,
 * then hosts; all ranks at once where hosts differ. A plan without a rule stays as it is. gpus:
 * gf_plan_use_calls follows. Collective. */
int gf_choose_place(struct gf_comm *comm, struct gf_plan *plan, bool gpus, struct gf_error *err);

/* The way that a rule gives a message of that size on `ranks` ranks. */
int gf_choose_by_rule(const struct gf_plan *rule, size_t size_bytes, int ranks, struct gf_way *way,
		      struct gf_error *err);

/* A plan's stages for it, and how many; each has a name, even where the algorithm gives no choice.
 * The caller frees. */
size_t gf_choose_stages(const struct gf_way *way, struct gf_stage **stages);

/* Can it run such a message, or such a half of it, here? 0, or -EINVAL / -ENOTSUP and why, alike on
 * all ranks. Collective: whether a library moves such elements is tried. */
int gf_choose_check(const struct gf_way *way, struct gf_comm *comm,
		    const struct gf_element *element, enum gf_coll_half half, size_t count_elems,
		    struct gf_error *err);

#endif
