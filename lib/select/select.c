/* SPDX-License-Identifier: BSD-3-Clause */
/* What selections share: the plan's messages, scales, optional operations. */
#include "select/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "select/finite.h"

int gf_select_open(struct gf_selector *s, const struct gf_select_env *env,
		   struct gf_error *err)
{
	size_t i;

	*s = (struct gf_selector){
		.ops = gf_select_find(env->plan),
		.env = *env,
		.plan_work = gf_xcalloc(env->depth, sizeof(*s->plan_work)),
		.nplan_work = gf_work_count(env->plan),
		.scale = gf_xcalloc(env->depth, sizeof(*s->scale)),
	};
	s->hooks = s->ops->hooks;
	s->hooks.ctx = s;
	for (i = 0; i < env->depth; i++) {
		s->plan_work[i] =
			gf_xcalloc(s->nplan_work, sizeof(**s->plan_work));
		gf_work_of_plan(env->plan, &env->pools[i], s->plan_work[i]);
	}
	return s->ops->open ? s->ops->open(s, err) : 0;
}

void gf_select_close(struct gf_selector *s)
{
	size_t i;

	if (!s->ops)
		return;
	if (s->ops->close)
		s->ops->close(s);
	for (i = 0; i < s->env.depth; i++)
		free(s->plan_work[i]);
	free(s->plan_work);
	free(s->scale);
	memset(s, 0, sizeof(*s));
}

/* --- optional operations -------------------------------------------------- */

void gf_select_begin(struct gf_selector *s, size_t slot, size_t step,
		     const struct gf_work **list, size_t *n)
{
	*list = s->plan_work[slot];
	*n = s->nplan_work;
	if (s->ops->begin)
		s->ops->begin(s, slot, step, list, n);
}

int gf_select_sums(struct gf_selector *s, size_t slot,
		   struct gf_select_sums *sums, struct gf_error *err)
{
	const struct gf_pool *pool = &s->env.pools[slot];

	s->whole = (struct gf_optim_piece){.count_elems = pool->count_elems,
					   .grad = pool->data};
	*sums = (struct gf_select_sums){
		.pieces = &s->whole,
		.npieces = 1,
		.share = s->env.scaled ? 1 : 1.0f / (float)s->env.plan->ranks,
	};
	return s->ops->sums ? s->ops->sums(s, slot, sums, err) : 0;
}

void gf_select_adopt(struct gf_selector *s, size_t slot)
{
	if (s->ops->adopt)
		s->ops->adopt(s, slot);
}

void gf_select_times(const struct gf_selector *s, size_t slot,
		     const struct gf_message_times *sent, const double *ready_s,
		     struct gf_message_times *times)
{
	size_t n = s->env.plan->nmessages, i;

	if (s->ops->times) {
		s->ops->times(s, slot, sent, ready_s, times);
		return;
	}
	memcpy(times, sent, n * sizeof(*times));
	/* a split message ends with its all-gather */
	for (i = n; i < s->nplan_work; i++)
		times[s->plan_work[slot][i].after - 1].end_s = sent[i].end_s;
}

void gf_select_keep(struct gf_selector *s, size_t slot, size_t age,
		    float *values)
{
	const struct gf_pool *pool = &s->env.pools[slot];

	if (s->ops->keep)
		s->ops->keep(s, slot, age, values);
	else
		memcpy(values, pool->data, pool->count_elems * sizeof(*values));
}

void gf_select_restore(struct gf_selector *s, size_t slot, size_t age,
		       const float *values)
{
	struct gf_pool *pool = &s->env.pools[slot];

	if (s->ops->restore)
		s->ops->restore(s, slot, age, values);
	else
		memcpy(pool->data, values, pool->count_elems * sizeof(*values));
}

/* --- for selections ------------------------------------------------------- */

static void multiply(const struct gf_work *w, double by)
{
	float *data = w->data;
	size_t i;

	for (i = 0; i < w->count_elems; i++)
		data[i] *= (float)by;
}

void gf_select_scale(const struct gf_selector *s, size_t slot,
		     const struct gf_work *w)
{
	if (s->env.scaled)
		multiply(w, s->scale[slot] / s->env.plan->ranks);
}

void gf_select_unscale(const struct gf_selector *s, size_t slot,
		       const struct gf_work *w)
{
	if (s->env.scaled)
		multiply(w, 1 / s->scale[slot]);
}

int gf_select_check_whole(const struct gf_plan *plan, struct gf_error *err)
{
	size_t i;

	for (i = 0; i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_ALL)
			return gf_error_set(
				err, -ENOTSUP,
				"message %zu: selection %s wants half "
				"\"all\", got \"%s\"",
				i, gf_selection_name(&plan->selection),
				gf_half_names[plan->messages[i].half]);
	return 0;
}

struct gf_select_bad gf_select_bad_at(const struct gf_pool *pool,
				      size_t element)
{
	struct gf_select_bad bad = {.found = true,
				    .tensor = gf_pool_tensor_at(pool, element)};

	bad.element = element - pool->offsets[bad.tensor];
	return bad;
}

struct gf_select_bad gf_select_find_bad(const struct gf_pool *pool,
					const float *values, size_t first,
					size_t count)
{
	size_t at = gf_finite_prefix(values, count);

	return at == count ? (struct gf_select_bad){.found = false}
			   : gf_select_bad_at(pool, first + at);
}
