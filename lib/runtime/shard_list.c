/* SPDX-License-Identifier: BSD-3-Clause */
#include "runtime/shard_list.h"

#include "base/heap.h"
#include "transport/pages.h"

static size_t units(const struct gf_shards *s)
{
	return s->plan->nmessages;
}

static int check(const struct gf_plan *plan, struct gf_error *err)
{
	for (size_t i = 0; i < plan->nmessages; i++)
		if (gf_shard_has(&plan->shard, GF_SHARD_PARAMETERS) &&
		    plan->messages[i].release != GF_RELEASE_READY)
			return gf_error_set(err, -ENOTSUP,
					    "message %zu: want release \"ready\" with shards of "
					    "parameters: backward waits for later messages",
					    i);
	return 0;
}

int gf_shards_open(struct gf_shards *s, const struct gf_plan *plan, int rank, size_t parts,
		   float *params, struct gf_error *err)
{
	const struct gf_model_profile *model = plan->model;
	int rc = check(plan, err);

	*s = (struct gf_shards){.plan = plan, .rank = rank, .params = params, .gathered = params};
	if (rc)
		return rc;
	s->stages = 2 * plan->nmessages * parts;
	s->offsets = gf_xcalloc(model->ntensors + 1, sizeof(*s->offsets));
	for (size_t i = 0; i < model->ntensors; i++)
		s->offsets[i + 1] = s->offsets[i] + model->tensors[i].count_elems;
	s->owners = gf_xcalloc(plan->nmessages, sizeof(*s->owners));
	for (size_t i = 0; i < plan->nmessages; i++)
		s->owners[i] =
			gf_layout_even(plan->shard.group_ranks, gf_plan_message_elems(plan, i));
	s->gather = gf_xcalloc(s->stages, sizeof(*s->gather));
	s->scatter = gf_xcalloc(plan->nmessages, sizeof(*s->scatter));
	s->made = gf_xcalloc(plan->nmessages, sizeof(*s->made));
	s->works = gf_xcalloc((2 * parts + 1) * plan->nmessages, sizeof(*s->works));
	s->nworks = gf_shard_order(&plan->shard, plan->messages, plan->nmessages, parts, s->works);
	for (size_t i = 0; i < s->nworks; i++)
		if (s->works[i].gather)
			s->gather[s->works[i].stage] = 1 + i;
		else
			s->scatter[s->works[i].message] = i;
	return 0;
}

void gf_shards_close(struct gf_shards *s)
{
	for (size_t i = 0; s->owners && i < units(s); i++)
		free((void *)s->owners[i].pieces);
	free(s->owners);
	free(s->offsets);
	free(s->works);
	free(s->gather);
	free(s->scatter);
	free(s->made);
	*s = (struct gf_shards){0};
}

static struct gf_work half_of(const struct gf_shards *s, size_t unit, enum gf_coll_half half,
			      float *base)
{
	const struct gf_message *m = &s->plan->messages[unit];

	return (struct gf_work){
		.first = m->first,
		.last = m->last,
		.simultaneous = m->mode == GF_MODE_SIMULTANEOUS,
		.at_end = half == GF_COLL_REDUCE_SCATTER && m->release == GF_RELEASE_BACKWARD_END,
		.how = m,
		.half = half,
		.owners = &s->owners[unit],
		.data = base + s->offsets[m->first],
		.count_elems = s->offsets[m->last + 1] - s->offsets[m->first],
	};
}

void gf_shards_work(const struct gf_shards *s, const struct gf_pool *pool, struct gf_work *work)
{
	for (size_t k = 0; k < s->nworks; k++) {
		const struct gf_shard_work *w = &s->works[k];

		work[k] = half_of(s, w->message,
				  w->gather ? GF_COLL_ALL_GATHER : GF_COLL_REDUCE_SCATTER,
				  w->gather ? s->gathered : pool->data);
		if (w->gather)
			work[k].first = work[k].last = pool->ntensors + w->opens;
	}
}

struct gf_range gf_shards_part(const struct gf_shards *s, size_t message, int rank)
{
	const struct gf_layout_piece *p =
		&s->owners[message].pieces[rank % s->plan->shard.group_ranks];

	return gf_data(s->offsets[s->plan->messages[message].first] + p->first, p->count);
}

size_t gf_shards_others_bytes(const struct gf_shards *s, size_t message)
{
	const size_t all = gf_plan_message_elems(s->plan, message);

	return (all - gf_shards_part(s, message, s->rank).count) * sizeof(float);
}

void gf_shards_count(struct gf_shards *s, size_t stage)
{
	const size_t unit = gf_shard_unit(units(s), stage);
	size_t i;

	for (i = 0; stage == 0 && i < units(s); i++)
		s->made[i] = false;
	if (stage == 0) {
		s->opened = s->params_bytes = 0;
		s->grads_bytes = 0;
	}
	for (; s->opened < s->nworks && s->works[s->opened].opens <= stage; s->opened++)
		if (s->works[s->opened].gather)
			s->params_bytes += gf_shards_others_bytes(s, s->works[s->opened].message);
	if (s->params_bytes > s->most_params_bytes)
		s->most_params_bytes = s->params_bytes;
	if (gf_shard_is_forward(units(s), stage) || s->made[unit])
		return;
	s->made[unit] = true;
	i = atomic_fetch_add(&s->grads_bytes, gf_shards_others_bytes(s, unit)) +
	    gf_shards_others_bytes(s, unit);
	if (i > s->most_grads_bytes)
		s->most_grads_bytes = i;
}

static void give_back(float *base, size_t first, size_t end)
{
	if (first < end)
		gf_pages_give_back(base + first, (end - first) * sizeof(*base));
}

void gf_shards_give_back(const struct gf_shards *s, size_t message, float *base, size_t first,
			 size_t end)
{
	const struct gf_message *m = &s->plan->messages[message];
	const struct gf_range own = gf_shards_part(s, message, s->rank);
	const size_t from = s->offsets[m->first], to = s->offsets[m->last + 1];

	first = first > from ? first : from;
	end = end < to ? end : to;
	give_back(base, first, end < own.first ? end : own.first);
	give_back(base, first > own.first + own.count ? first : own.first + own.count, end);
}
