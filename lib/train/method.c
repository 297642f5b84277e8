/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/method_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

int gf_method_check(const struct gf_plan *plan, struct gf_error *err)
{
	return gf_select_check(plan, err);
}

const char *gf_method_name(const struct gf_plan *plan)
{
	return gf_selection_name(&plan->selection);
}

int gf_method_open(struct gf_method *m, const struct gf_method_env *env,
		   struct gf_error *err)
{
	memset(m, 0, sizeof(*m));
	m->ops = env->nccl ? &gf_method_device : &gf_method_host;
	m->env = *env;
	m->scale = env->scale;
	m->times = gf_xcalloc(env->plan->nmessages + 1, sizeof(*m->times));
	return m->ops->open(m, err);
}

void gf_method_state(struct gf_method *m, struct gf_state *s)
{
	gf_update_state(&m->updater, s);
	gf_state_add_words(s, GF_STATE_SHARED, "train.skipped", "U64",
			   &m->skipped, 1);
	if (m->scale.dynamic) {
		gf_state_add_words(s, GF_STATE_SHARED, "loss_scale.now", "F64",
				   &m->scale.now, 1);
		gf_state_add_words(s, GF_STATE_SHARED, "loss_scale.good", "U64",
				   &m->scale.good, 1);
		if (m->scale.half)
			gf_state_add_words(s, GF_STATE_SHARED,
					   "loss_scale.next", "F64",
					   &m->scale.next, 1);
	}
	if (m->ops->state)
		m->ops->state(m, s);
}

struct gf_team gf_method_team(const struct gf_method *m)
{
	return (struct gf_team){.comm = m->env.comm,
				.engine = m->engine,
				.workers = m->env.plan->ranks};
}

void gf_method_close(struct gf_method *m)
{
	if (!m->ops)
		return;
	m->ops->close(m);
	gf_method_flight_close(m);
	free(m->times);
	memset(m, 0, sizeof(*m));
}
