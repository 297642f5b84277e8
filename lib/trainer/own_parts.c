/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step of a plan with shards (documents/shard.h; runtime/shard_list.h has its messages).
 * Parameters are gathered while forward and backward ask for them. A rank updates its own parts
 * alone, and parameters of others' parts are those of the last gather: whoever wants to see all of
 * them between steps, or an optimiser's state, brings them here first.
 *
 * Norms of the whole gradient or of a tensor are sums of what every rank has of it, in the order of
 * ranks, and so is the verdict on a gradient that is not finite: one small gather in each step.
 */
#include <string.h>

#include "base/heap.h"
#include "compressors/select.h"
#include "runtime/shard_list.h"
#include "trainer/method_parts.h"
#include "trainer/train.h"
#include "transport/pages.h"

/* Elements of each rank that go round at a time when parts are brought together. */
#define PIECE_ELEMS ((size_t)16384)

struct gf_method_shards {
	struct gf_shards list;
	void *params;    /* a replay's */
	float *master;   /* own parts as they are updated, where a codec rounds what is gathered;
			  * NULL: the parameters' */
	size_t *message; /* per tensor: which one it is in */
	bool *here;      /* per message: gathered, and waited for */
	size_t stage;
	size_t leaving; /* 1 + the unit of backward that may yet be read; 0: none */
	/* Per rank: 1 + its first element that is not finite, and squares (trainer/optim). */
	double *found;
	size_t nfound;
};

static size_t units(const struct gf_method *m)
{
	return m->env.plan->nmessages;
}

/* Does a unit stay when that stage of its has ended? */
static bool stays(const struct gf_method *m, size_t stage)
{
	const struct gf_plan *plan = m->env.plan;

	return !gf_shard_has(&plan->shard, GF_SHARD_PARAMETERS) ||
	       gf_shard_stays(&plan->shard, plan->messages, units(m),
			      m->shards->list.stages / (2 * units(m)), stage);
}

static bool is_backward(const struct gf_method *m)
{
	return !gf_shard_is_forward(units(m), m->shards->stage);
}

/* Where updates are made. */
static float *weights(const struct gf_method *m)
{
	return m->shards->master ? m->shards->master : m->shards->list.params;
}

/* --- opening and closing -------------------------------------------------- */

int gf_method_shards_open(struct gf_method *m, struct gf_error *err)
{
	const struct gf_plan *plan = m->env.plan;
	struct gf_method_shards *s;
	size_t i, t, count = 0;
	int rc = 0;

	if (!gf_shard_is_used(&plan->shard))
		return 0;
	m->shards = s = gf_xcalloc(1, sizeof(*s));
	for (t = 0; t < plan->model->ntensors; t++)
		count += plan->model->tensors[t].count_elems;
	if (!m->env.params)
		rc = gf_pages_alloc(count * sizeof(float), &s->params, err);
	rc = rc ? rc
		: gf_shards_open(&s->list, plan, m->env.comm->rank,
				 m->env.accumulate ? m->env.accumulate : 1,
				 s->params ? s->params : m->env.params, err);
	if (!rc && gf_plan_is_coded(plan) && m->env.params) {
		s->master = calloc(count + 1, sizeof(*s->master));
		if (!s->master)
			rc = gf_error_set(err, -ENOMEM, "no memory for parts of %zu parameters",
					  count);
	}
	if (rc)
		return rc;
	if (m->env.place.nccl)
		s->list.gathered = m->env.place.params;
	gf_pages_split(s->list.params, count * sizeof(float));
	s->message = gf_xcalloc(plan->model->ntensors, sizeof(*s->message));
	s->here = gf_xcalloc(plan->nmessages, sizeof(*s->here));
	m->late.waits = gf_xcalloc(2 * plan->nmessages, sizeof(*m->late.waits));
	for (i = 0; i < plan->nmessages; i++)
		for (t = plan->messages[i].first; t <= plan->messages[i].last; t++)
			s->message[t] = i;
	return 0;
}

/* A GPU keeps their memory. */
static bool gives_gradients_back(const struct gf_method *m)
{
	return gf_shards_have(&m->shards->list, GF_SHARD_GRADIENTS) && !m->ahead;
}

/* Once the optimiser is there. */
void gf_method_shards_begin(struct gf_method *m)
{
	struct gf_method_shards *s = m->shards;
	const struct gf_optimizer *o = &m->updater.optimizer;
	const struct gf_pool *pool = gf_exchange_pool(m->exchange);
	const bool norms = m->env.params && (o->ops->ratio || o->config.clip_norm > 0);

	s->nfound = 1 + (norms ? 2 * o->nranges : 0);
	s->found = gf_xcalloc((size_t)m->env.comm->ranks * s->nfound, sizeof(*s->found));
	if (!m->ahead)
		gf_pages_split(pool->data, pool->count_elems * sizeof(float));
	for (size_t i = 0; i < units(m) && gives_gradients_back(m); i++)
		gf_shards_give_back(&s->list, i, pool->data, 0, SIZE_MAX);
	gf_method_took(m);
}

void gf_method_shards_close(struct gf_method *m)
{
	struct gf_method_shards *s = m->shards;

	if (!s)
		return;
	gf_shards_close(&s->list);
	gf_pages_free(s->params);
	free(s->master);
	free(s->message);
	free(s->here);
	free(s->found);
	free(s);
}

struct gf_shards *gf_method_shards_list(struct gf_method *m)
{
	return m->shards ? &m->shards->list : NULL;
}

int gf_method_check_model(const struct gf_method *m, const struct gf_model *model,
			  const size_t *order, struct gf_error *err)
{
	struct gf_method_shards *s = m->shards;
	size_t *at, t, l, i, unit;
	int rc = 0;

	if (!s || !gf_shards_have(&s->list, GF_SHARD_PARAMETERS))
		return 0;
	at = gf_xcalloc(model->nparams + 1, sizeof(*at)); /* 1 + the message; 0: frozen */
	for (t = 0; t < m->env.plan->model->ntensors; t++)
		at[order[t]] = 1 + s->message[t];
	for (l = 0; l < model->nlayers && !rc; l++) {
		const struct gf_layer *layer = &model->layers[l];

		for (i = 1; i < layer->nparams && !rc; i++)
			if (at[layer->first_param + i] != at[layer->first_param])
				rc = gf_error_set(err, -EINVAL,
						  "layer %s: want it in one message with shards of "
						  "parameters, got parts of it in several",
						  layer->name);
		if (rc || !layer->tied || !at[gf_layer_use(layer, 0)])
			continue;
		unit = at[gf_layer_use(layer, 0)] - 1;
		if (!stays(m, units(m) - 1 - unit))
			rc = gf_error_set(err, -EINVAL,
					  "message %zu: want \"keep\", as layer %s shares a weight "
					  "of it",
					  unit, layer->name);
	}
	free(at);
	return rc;
}

/* --- forward and backward ------------------------------------------------- */

static void wait_for(struct gf_method *m, size_t unit, size_t stage)
{
	struct gf_method_shards *s = m->shards;
	const bool backward = !gf_shard_is_forward(units(m), stage);

	if (s->here[unit] || m->late.rc || !s->list.gather[stage])
		return;
	gf_method_wait(m, unit + (backward ? units(m) : 0), s->list.gather[stage] - 1,
		       gf_exchange_wait_work);
	s->here[unit] = !m->late.rc;
}

/* What a stage computed with is not read any more. */
static void leave(struct gf_method *m, size_t stage)
{
	struct gf_method_shards *s = m->shards;
	const size_t unit = gf_shard_unit(units(m), stage);

	s->leaving = 0;
	if (stays(m, stage))
		return;
	wait_for(m, unit, stage);
	if (m->late.rc)
		return;
	gf_shards_give_back(&s->list, unit, s->list.params, 0, SIZE_MAX);
	s->list.params_bytes -= gf_shards_others_bytes(&s->list, unit);
	s->here[unit] = false;
}

void gf_method_shards_end(struct gf_method *m)
{
	const size_t left = m->shards->leaving;

	/* its stage is the one before, of this pass or of the pass before */
	if (left)
		leave(m, m->shards->stage - 1);
}

/* Stages begin, up to that one. */
static void advance(struct gf_method *m, size_t stage)
{
	struct gf_method_shards *s = m->shards;
	size_t signal;

	while (s->stage < stage) {
		gf_method_shards_end(m);
		if (is_backward(m))
			s->leaving = 1 + gf_shard_unit(units(m), s->stage);
		else
			leave(m, s->stage);
		signal = m->env.plan->model->ntensors + ++s->stage;
		if (s->stage == s->list.stages)
			continue;
		gf_shards_count(&s->list, s->stage);
		gf_exchange_ready(m->made, &signal, 1);
	}
}

static size_t pass_of(const struct gf_method *m)
{
	return m->shards->stage / (2 * units(m)) * 2 * units(m);
}

void gf_method_shards_step(struct gf_method *m)
{
	const size_t signal = m->env.plan->model->ntensors;
	struct gf_method_shards *s = m->shards;

	gf_method_late_begin(m);
	m->late.rc = 0;
	s->stage = s->leaving = 0;
	for (size_t i = 0; i < units(m); i++)
		s->here[i] = false;
	gf_shards_count(&s->list, 0);
	if (m->rc)
		return;
	gf_exchange_ready(m->made, &signal, 1);
	/* all of forward, which may be one graph */
	for (size_t i = 0; i < units(m) && m->ahead && !m->late.rc; i++)
		m->late.rc = gf_exchange_wait_work(m->made, i, &m->late.err);
}

void gf_method_shards_need(struct gf_method *m, size_t tensor)
{
	struct gf_method_shards *s = m->shards;
	const size_t unit = s->message[tensor];
	size_t stage = pass_of(m) + units(m);

	if (is_backward(m)) {
		if (s->leaving != 1 + unit)
			gf_method_shards_end(m);
		stage += unit;
	} else {
		stage -= 1 + unit;
		advance(m, stage);
	}
	wait_for(m, unit, stage);
}

void gf_method_shards_turn(struct gf_method *m)
{
	advance(m, pass_of(m) + units(m));
}

void gf_method_shards_made(struct gf_method *m, size_t tensor)
{
	const size_t unit = m->shards->message[tensor];

	gf_method_shards_end(m);
	if (tensor == m->env.plan->messages[unit].last)
		advance(m, pass_of(m) + units(m) + unit + 1);
}

/* --- the update ----------------------------------------------------------- */

/* The first element of this rank's parts that is not finite: 1 + its place, or 0. */
static double first_bad(const struct gf_method *m, const float *grads)
{
	const struct gf_pool *pool = gf_exchange_pool(m->exchange);
	struct gf_select_bad bad;
	struct gf_range own;

	for (size_t i = 0; i < units(m); i++) {
		own = gf_shards_part(&m->shards->list, i, m->env.comm->rank);
		bad = gf_select_find_bad(pool, grads + own.first, own.first, own.count);
		if (bad.found)
			return 1 + (double)(pool->offsets[bad.tensor] + bad.element);
	}
	return 0;
}

int gf_method_shards_inspect(struct gf_method *m, struct gf_select_bad *bad, struct gf_error *err)
{
	const struct gf_pool *pool = gf_exchange_pool(m->exchange);
	struct gf_method_shards *s = m->shards;
	const size_t n = s->nfound, ranks = (size_t)m->env.comm->ranks;
	const size_t sharers = (size_t)m->env.plan->shard.group_ranks;
	struct gf_team team = gf_method_team(m);
	const float *grads = pool->data;
	double *own = gf_xcalloc(n, sizeof(*own)), first = 0;
	struct gf_range part;
	int rc;

	own[0] = first_bad(m, grads);
	for (size_t i = 0; i < units(m) && n > 1; i++) {
		part = gf_shards_part(&s->list, i, m->env.comm->rank);
		gf_optimizer_squares(&m->updater.optimizer, grads, weights(m), part.first,
				     part.count, own + 1);
	}
	rc = gf_team_allgather(&team, own, n * sizeof(*own), s->found, err);
	for (size_t i = 0; i < ranks && !rc; i++)
		if (s->found[i * n] > 0 && (first == 0 || s->found[i * n] < first))
			first = s->found[i * n];
	/* other copies have the same */
	for (size_t i = 1; i < sharers && !rc; i++)
		for (size_t k = 1; k < n; k++)
			s->found[k] += s->found[i * n + k];
	*bad = (struct gf_select_bad){.found = first > 0};
	if (bad->found) {
		bad->tensor = gf_pool_tensor_at(pool, (size_t)first - 1);
		bad->element = (size_t)first - 1 - pool->offsets[bad->tensor];
	}
	free(own);
	return rc;
}

/* Own parts of one array become those of another. */
static void copy_own(struct gf_method *m, const float *from, float *to)
{
	struct gf_range own;

	for (size_t i = 0; i < units(m) && from != to; i++) {
		own = gf_shards_part(&m->shards->list, i, m->env.comm->rank);
		memcpy(to + own.first, from + own.first, own.count * sizeof(*to));
	}
}

void gf_method_shards_update(struct gf_method *m, double lr, const struct gf_select_sums *sums)
{
	struct gf_method_shards *s = m->shards;
	struct gf_optimizer *o = &m->updater.optimizer;
	struct gf_optim_part all = {
		.lr = lr,
		.scale = sums->share,
		.grad = sums->pieces->grad,
		.weight = weights(m),
		.squares = s->nfound > 1 ? s->found + 1 : NULL,
	};
	struct gf_range own;

	if (all.squares)
		all.scale = gf_optimizer_clipped(o, all.scale, all.squares);
	gf_optimizer_begin(o);
	for (size_t i = 0; i < units(m); i++) {
		own = gf_shards_part(&s->list, i, m->env.comm->rank);
		gf_optimizer_step_some(o, &all, own.first, own.count);
	}
	copy_own(m, weights(m), s->list.params);
}

void gf_method_shards_memory(const struct gf_method *m, struct gf_train_memory *memory)
{
	const struct gf_shards *list = &m->shards->list;
	size_t others = 0, own = 0, i;

	for (i = 0; i < units(m); i++) {
		others += gf_shards_others_bytes(list, i);
		own += gf_shards_part(list, i, list->rank).count * sizeof(float);
	}
	if (gf_shards_have(list, GF_SHARD_PARAMETERS))
		memory->parameters_bytes -= others - list->most_params_bytes;
	memory->parameters_bytes += m->shards->master ? own : 0;
	if (gives_gradients_back(m))
		memory->gradients_bytes -= others - list->most_grads_bytes;
	for (i = 0; m->updater.optimizer.ops->slots[i]; i++)
		memory->optimizer_bytes -= others;
}

/* --- between steps -------------------------------------------------------- */

/* Elements first to end - 1 of a message come from their owners. */
static int gather(struct gf_method *m, size_t message, float *base, size_t first, size_t end,
		  float *room, struct gf_error *err)
{
	const int ranks = m->env.comm->ranks;
	struct gf_team team = gf_method_team(m);
	struct gf_range part;
	size_t at, from, to, more = 1;
	int r, rc = 0;

	for (at = 0; more && !rc; at += PIECE_ELEMS) {
		/* the others' after this rank's own */
		for (r = more = 0; r <= ranks && !rc; r++) {
			const int of = r ? r - 1 : m->env.comm->rank;
			float *piece = room + (size_t)r * PIECE_ELEMS;

			part = gf_shards_part(&m->shards->list, message, of);
			from = (part.first > first ? part.first : first) + at;
			to = part.first + part.count < end ? part.first + part.count : end;
			more |= to > from && to - from > PIECE_ELEMS;
			to = to > from + PIECE_ELEMS ? from + PIECE_ELEMS : to;
			if (to > from)
				memcpy(r ? base + from : piece, r ? piece : base + from,
				       (to - from) * sizeof(*base));
			if (!r)
				rc = gf_team_allgather(&team, room, PIECE_ELEMS * sizeof(*room),
						       room + PIECE_ELEMS, err);
		}
	}
	return rc;
}

static int bring_range(struct gf_method *m, float *base, size_t first, size_t end, bool whole,
		       struct gf_error *err)
{
	const struct gf_shards *list = &m->shards->list;
	const bool params = base == list->params;
	GF_FREED float *room = NULL;
	size_t i, from, to;
	int rc = 0;

	if (!whole && params && !gf_shards_have(list, GF_SHARD_PARAMETERS))
		return 0;
	if (whole && params)
		copy_own(m, weights(m), base);
	if (whole)
		room = gf_xcalloc(((size_t)m->env.comm->ranks + 1) * PIECE_ELEMS, sizeof(*room));
	for (i = 0; i < units(m) && !rc; i++) {
		from = list->offsets[list->plan->messages[i].first];
		to = list->offsets[list->plan->messages[i].last + 1];
		if (from >= end || to <= first)
			continue;
		if (whole)
			rc = gather(m, i, base, first > from ? first : from, end < to ? end : to,
				    room, err);
		else
			gf_shards_give_back(list, i, base, first, end);
	}
	return rc;
}

int gf_method_whole(struct gf_method *m, bool whole, struct gf_error *err)
{
	int rc;

	if (!m->shards)
		return 0;
	rc = whole ? gf_update_copy(&m->updater, GF_GPU_TO_HOST, err) : 0;
	rc = rc ?: bring_range(m, m->shards->list.params, 0, SIZE_MAX, whole, err);
	return rc || !whole ? rc : gf_update_copy(&m->updater, GF_GPU_TO_DEVICE, err);
}

void gf_method_took(struct gf_method *m)
{
	if (!m->shards)
		return;
	copy_own(m, m->shards->list.params, weights(m));
	(void)gf_method_whole(m, false, NULL);
}

/* The arrays that are sharded: the parameters, and the optimiser's state. */
static float *array_of(struct gf_method *m, const float *data)
{
	const size_t count = gf_exchange_pool(m->exchange)->count_elems;
	float *bases[1 + GF_OPTIM_SLOTS] = {m->shards->list.params};

	for (size_t i = 0; m->updater.optimizer.ops->slots[i]; i++)
		bases[1 + i] = m->updater.optimizer.slot[i];
	for (size_t i = 0; i < 1 + GF_OPTIM_SLOTS && bases[i]; i++)
		if (data >= bases[i] && data < bases[i] + count)
			return bases[i];
	return NULL;
}

static int bring(void *method, const struct gf_tensor_source *t, bool whole, struct gf_error *err)
{
	struct gf_method *m = method;
	float *base = array_of(m, t->data);
	const size_t first = (size_t)((const float *)t->data - base);
	size_t count = 1, i;

	for (i = 0; i < t->rank; i++)
		count *= t->dims[i];
	return bring_range(m, base, first, first + count, whole, err);
}

void gf_method_shard_state(struct gf_method *m, struct gf_state *s)
{
	for (size_t i = 0; m->shards && i < s->nitems; i++) {
		if (!array_of(m, s->items[i].data))
			continue;
		s->items[i].tensor.bring = bring;
		s->items[i].tensor.ctx = m;
	}
}
