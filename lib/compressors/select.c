/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that selections share: the plan's messages, scales, optional operations. */
#include "compressors/select_parts.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "documents/selections/select_density.h"
#include "gf_kernels.h"

/* A block that is summed once more, element by element, is still in cache. */
#define BLOCK ((size_t)8192)

size_t gf_finite_prefix(const float *values, size_t count)
{
	size_t first, n, i;

	for (first = 0; first < count; first += n) {
		n = count - first < BLOCK ? count - first : BLOCK;
		if (isfinite(gf_kernels()->sum_abs_f32(values + first, n)))
			continue;
		/* Large finite numbers may have an infinite sum. */
		for (i = first; i < first + n; i++)
			if (!isfinite(values[i]))
				return i;
	}
	return count;
}

/* Elements that stay in cache between two passes. */
#define BLOCK_ELEMS ((size_t)16384)

extern const struct gf_selection_entry *const gf_selections[]; /* NULL-terminated */

static const struct gf_selection_entry *find(const struct gf_select_plan *plan)
{
	static const struct gf_selection_entry none = {0};
	size_t i = 0;

	while (gf_selections[i] && gf_selections[i]->plan != plan)
		i++;
	return gf_selections[i] ? gf_selections[i] : &none;
}

bool gf_selection_runs(const struct gf_select_plan *plan)
{
	return find(plan)->ops != NULL;
}

int gf_select_check(const struct gf_plan *plan, struct gf_error *err)
{
	const struct gf_select_ops *ops = find(gf_selection_plan(&plan->selection))->ops;

	return ops ? 0
		   : gf_error_set(
			     err, -ENOTSUP,
			     "the plan wants selection \"%s\", which no training method here does",
			     gf_selection_name(&plan->selection));
}

int gf_select_check_gpu(const struct gf_plan *plan, struct gf_error *err)
{
	const struct gf_select_ops *ops = find(gf_selection_plan(&plan->selection))->on_gpu;

	if (plan->servers)
		return gf_error_set(
			err, -ENOTSUP,
			"servers go by the host: one would hold a GPU for nothing but sums");
	for (size_t i = 0; i < plan->nmessages; i++)
		if (plan->messages[i].half != GF_HALF_ALL && !gf_shard_is_used(&plan->shard))
			return gf_error_set(err, -ENOTSUP,
					    "split messages go by the host: none is waited for by "
					    "itself between GPUs");
	for (size_t i = 0; i < plan->nmessages; i++)
		if (gf_selection_has(&plan->selection, GF_SELECT_SETS) &&
		    !gf_codec_is_plain(plan->messages[i].codec))
			return gf_error_set(err, -ENOTSUP,
					    "message %zu: want codec \"f32\" for sets that a GPU "
					    "makes, got \"%s\"",
					    i, plan->messages[i].codec);
	if (!ops)
		return gf_error_set(err, -ENOTSUP, "selection \"%s\" goes by the host",
				    gf_selection_name(&plan->selection));
	return 0;
}

int gf_select_open(struct gf_selector **selector, const struct gf_select_env *env,
		   struct gf_error *err)
{
	const struct gf_selection_entry *entry = find(gf_selection_plan(&env->plan->selection));
	struct gf_selector *s;
	int rc;

	*selector = NULL;
	rc = env->place.gpu ? gf_select_check_gpu(env->plan, err) : gf_select_check(env->plan, err);
	if (rc)
		return rc;
	*selector = s = gf_xcalloc(1, sizeof(*s));
	s->ops = env->place.gpu ? entry->on_gpu : entry->ops;
	s->env = *env;
	s->hooks = s->ops->hooks;
	s->hooks.serial = gf_selection_is_serial(&env->plan->selection);
	s->hooks.ctx = s;
	s->slots = gf_xcalloc(env->depth, sizeof(*s->slots));
	s->plan_work = gf_xcalloc(env->depth, sizeof(struct gf_work *));
	s->nplan_work = gf_work_count(env->plan, &env->pools[0]);
	for (size_t i = 0; i < env->depth; i++) {
		s->plan_work[i] = gf_xcalloc(s->nplan_work, sizeof(**s->plan_work));
		gf_work_of_plan(env->plan, &env->pools[i], s->plan_work[i]);
		if (s->ops->slot_bytes)
			s->slots[i].more = gf_xcalloc(1, s->ops->slot_bytes);
	}
	if (s->ops->residual) {
		s->residual = calloc(env->pools[0].count_elems + 1, sizeof(*s->residual));
		if (!s->residual)
			rc = gf_error_set(err, -ENOMEM,
					  "no memory for the residual of %zu gradients",
					  env->pools[0].count_elems);
	}
	if (!rc && s->ops->open)
		rc = s->ops->open(s, err);
	for (size_t i = 0; i < env->depth && !rc && s->ops->open_slot; i++)
		rc = s->ops->open_slot(s, i, err);
	return rc;
}

static void release_slot(struct gf_selector *s, struct gf_select_slot *t)
{
	struct gf_comm *comm = s->env.pools[0].comm;

	for (size_t i = 0; i < GF_ARRAY_LENGTH(t->memory); i++)
		if (t->memory[i])
			comm->ops->buffer_free(comm, t->memory[i]);
	free(t->list);
	free(t->more);
}

void gf_select_close(struct gf_selector *s)
{
	if (!s)
		return;
	if (s->ops->close)
		s->ops->close(s);
	for (size_t i = 0; i < s->env.depth; i++) {
		release_slot(s, &s->slots[i]);
		free(s->plan_work[i]);
	}
	free(s->residual);
	free(s->slots);
	free(s->plan_work);
	free(s);
}

const struct gf_select_env *gf_select_env(const struct gf_selector *s)
{
	return &s->env;
}

const struct gf_engine_hooks *gf_select_hooks(const struct gf_selector *s)
{
	return &s->hooks;
}

struct gf_work *gf_select_messages(const struct gf_selector *s, size_t slot)
{
	return s->plan_work[slot];
}

bool gf_select_decides(const struct gf_selector *s)
{
	return s->ops->adopt != NULL;
}

/* --- optional operations -------------------------------------------------- */

void gf_select_begin(struct gf_selector *s, size_t slot, const struct gf_select_step *step,
		     const struct gf_work **list, size_t *n)
{
	struct gf_select_slot *t = &s->slots[slot];

	t->step = *step;
	*list = t->list ? t->list : s->plan_work[slot];
	*n = t->list ? t->nlist : s->nplan_work;
	if (s->ops->begin)
		s->ops->begin(s, slot, step->number, list, n);
}

const struct gf_work *gf_select_expect(struct gf_selector *s, size_t *n)
{
	/* sets take other paths, which cannot fail */
	*n = gf_selection_has(&s->env.plan->selection, GF_SELECT_SETS) ? 0 : s->nplan_work;
	return s->ops->expect ? s->ops->expect(s, n) : s->plan_work[0];
}

struct gf_select_bad gf_select_inspect(struct gf_selector *s, size_t slot)
{
	return s->ops->inspect ? s->ops->inspect(s, slot) : s->slots[slot].bad;
}

void gf_select_sums(struct gf_selector *s, size_t slot, struct gf_select_sums *sums)
{
	const struct gf_pool *pool = &s->env.pools[slot];

	s->whole = (struct gf_optim_piece){.count_elems = pool->count_elems, .grad = pool->data};
	*sums = (struct gf_select_sums){
		.pieces = &s->whole,
		.npieces = 1,
		.share = s->env.scaled ? 1 : 1.0f / (float)s->env.plan->ranks,
	};
	if (s->ops->sums)
		s->ops->sums(s, slot, sums);
}

void gf_select_adopt(struct gf_selector *s, size_t slot)
{
	if (s->ops->adopt)
		s->ops->adopt(s, slot);
}

void gf_select_state(struct gf_selector *s, struct gf_state *list)
{
	const struct gf_shape shape = {1, {s->env.pools[0].count_elems}};

	if (s->ops->residual)
		gf_state_add(list, GF_STATE_OWN, gf_xstrdup(s->ops->residual), &shape, s->residual)
			->rule = GF_STATE_SUM;
	if (s->ops->state)
		s->ops->state(s, list);
}

int gf_select_keep(struct gf_selector *s, size_t slot, size_t age, bool bad, float *values,
		   struct gf_error *err)
{
	const struct gf_pool *pool = &s->env.pools[slot];

	if (s->ops->keep)
		return s->ops->keep(s, slot, age, bad, values, err);
	if (s->env.place.gpu)
		return gf_select_copy(s, values, pool->data, GF_GPU_TO_HOST, err);
	memcpy(values, pool->data, pool->count_elems * sizeof(*values));
	return 0;
}

int gf_select_restore(struct gf_selector *s, size_t slot, size_t age, const float *values,
		      struct gf_error *err)
{
	const struct gf_pool *pool = &s->env.pools[slot];

	if (s->ops->restore)
		return s->ops->restore(s, slot, age, values, err);
	if (s->env.place.gpu)
		return gf_select_copy(s, pool->data, values, GF_GPU_TO_DEVICE, err);
	memcpy(pool->data, values, pool->count_elems * sizeof(*values));
	return 0;
}

int gf_select_fetch(struct gf_selector *s, struct gf_error *err)
{
	return s->ops->fetch ? s->ops->fetch(s, err) : 0;
}

int gf_select_send(struct gf_selector *s, struct gf_error *err)
{
	return s->ops->send ? s->ops->send(s, err) : 0;
}

/* --- times ---------------------------------------------------------------- */

/* A message's times: those of the message that brought it, and the moment when its own tensors were
 * ready. */
static struct gf_message_times times_by(const struct gf_message *m,
					const struct gf_message_times *sent, const double *ready_s)
{
	struct gf_message_times t = *sent;
	size_t i;

	for (t.ready_s = 0, i = m->first; i <= m->last; i++)
		t.ready_s = fmax(t.ready_s, ready_s[i]);
	t.start_s = fmax(t.start_s, t.ready_s);
	t.end_s = fmax(t.end_s, t.start_s);
	return t;
}

/* The end of a message that further ones follow: the last one's. */
static double end_s(const struct gf_work *list, size_t n, size_t at,
		    const struct gf_message_times *sent)
{
	for (size_t i = at + 1; i < n; i++)
		if (list[i].after == at + 1)
			at = i;
	return sent[at].end_s;
}

void gf_select_times(const struct gf_plan *plan, const struct gf_work *list, size_t n,
		     const struct gf_message_times *sent, const double *ready_s,
		     struct gf_message_times *times)
{
	const bool recuts = gf_selection_has(&plan->selection, GF_SELECT_RECUTS);
	bool chained = false;
	size_t i, at = 0;

	/* what follows all others carries no tensors */
	while (n > 1 && list[n - 1].after == GF_AFTER_ALL)
		n--;
	for (i = 0; i < n; i++)
		chained |= list[i].after > 0;
	for (i = 0; i < plan->nmessages; i++) {
		const struct gf_message *m = &plan->messages[i];

		while (at + 1 < n && list[at].last < m->last)
			at++;
		times[i] = sent[at];
		if (chained)
			times[i].end_s = end_s(list, n, at, sent);
		if (ready_s && (list[at].first != m->first || list[at].last != m->last))
			times[i] = times_by(m, &times[i], ready_s);
		times[i].elems = recuts ? list[at].count_elems : 0;
		times[i].like = recuts ? (size_t)(list[at].how - plan->messages) : 0;
		times[i].place = recuts ? at : 0;
	}
}

/* --- for selections ------------------------------------------------------- */

int gf_select_multiply(const struct gf_selector *s, const struct gf_work *w, double by,
		       struct gf_gpu_stream *q, struct gf_error *err)
{
	float *data = w->data;

	if (by == 1)
		return 0;
	if (q) {
		s->env.place.gpu->kernels->scale_f32(q, (float)by, data, data, w->count_elems);
		return s->env.place.gpu->ops->check(s->env.place.gpu, err);
	}
	gf_kernels()->scale_f32((float)by, data, data, w->count_elems);
	return 0;
}

int gf_select_scale(const struct gf_selector *s, size_t slot, const struct gf_work *w,
		    struct gf_gpu_stream *q, struct gf_error *err)
{
	if (!s->env.scaled)
		return 0;
	return gf_select_multiply(s, w, s->slots[slot].step.scale / s->env.plan->ranks, q, err);
}

int gf_select_unscale(const struct gf_selector *s, size_t slot, const struct gf_work *w,
		      struct gf_gpu_stream *q, struct gf_error *err)
{
	return s->env.scaled ? gf_select_multiply(s, w, 1 / s->slots[slot].step.scale, q, err) : 0;
}

void gf_feedback_add(const struct gf_selector *s, float *data, size_t first, size_t count)
{
	gf_kernels()->add_f32(data + first, s->residual + first, count);
}

void gf_feedback_commit(struct gf_selector *s, float *data, size_t first, size_t count)
{
	const size_t end = first + count;
	size_t at, n;

	for (at = first; at < end; at += n) {
		n = end - at < BLOCK_ELEMS ? end - at : BLOCK_ELEMS;
		memcpy(s->residual + at, data + at, n * sizeof(*data));
		memset(data + at, 0, n * sizeof(*data));
	}
}

struct gf_work *gf_select_own_work(struct gf_selector *s, size_t slot, size_t n)
{
	struct gf_select_slot *t = &s->slots[slot];
	const size_t known = n < s->nplan_work ? n : s->nplan_work;

	t->list = gf_xcalloc(n + 1, sizeof(*t->list));
	t->nlist = n;
	memcpy(t->list, s->plan_work[slot], known * sizeof(*t->list));
	return t->list;
}

int gf_select_memory(struct gf_selector *s, size_t slot, size_t which, size_t size_bytes,
		     struct gf_error *err)
{
	struct gf_comm *comm = s->env.pools[0].comm;

	return comm->ops->buffer_alloc(comm, size_bytes, &s->slots[slot].memory[which], err);
}

int gf_select_clear_flag(const struct gf_selector *s, size_t slot, struct gf_gpu_stream *q,
			 struct gf_error *err)
{
	return s->env.place.gpu->ops->zero(s->env.place.gpu, q, s->slots[slot].step.flag,
					   sizeof(uint32_t), err);
}

int gf_select_copy(const struct gf_selector *s, void *to, const void *from, enum gf_gpu_copy kind,
		   struct gf_error *err)
{
	const struct gf_gpu_ops *ops = s->env.place.gpu->ops;
	int rc = ops->copy(s->env.place.gpu, s->env.place.stream, to, from,
			   s->env.pools[0].count_elems * sizeof(float), kind, err);

	return rc ?: ops->stream_sync(s->env.place.gpu, s->env.place.stream, err);
}

struct gf_select_bad gf_select_bad_at(const struct gf_pool *pool, size_t element)
{
	struct gf_select_bad bad = {.found = true, .tensor = gf_pool_tensor_at(pool, element)};

	bad.element = element - pool->offsets[bad.tensor];
	return bad;
}

struct gf_select_bad gf_select_find_bad(const struct gf_pool *pool, const float *values,
					size_t first, size_t count)
{
	size_t at = gf_finite_prefix(values, count);

	if (at == count)
		return (struct gf_select_bad){.found = false};
	return gf_select_bad_at(pool, first + at);
}

double gf_select_density(const struct gf_selector *s, size_t step)
{
	const struct gf_density d = gf_density_of(gf_select_params(s));

	return s->env.epoch_steps ? gf_density_at(d.density, d.warmup_densities, d.nwarmup,
						  (step - 1) / s->env.epoch_steps)
				  : d.density;
}

double gf_select_densest(const struct gf_selector *s)
{
	const struct gf_density d = gf_density_of(gf_select_params(s));

	return gf_density_greatest(d.density, d.warmup_densities, d.nwarmup);
}

int gf_select_open_sets(struct gf_selector *s, size_t slot,
			size_t (*bytes)(const struct gf_selector *s, size_t count_elems),
			struct gf_error *err)
{
	const size_t n = s->env.plan->nmessages, ranks = (size_t)s->env.plan->ranks;
	struct gf_work *list = gf_select_own_work(s, slot, n);
	unsigned char *sets;
	size_t all_bytes = 0, i;
	int rc;

	for (i = 0; i < n; i++) {
		const size_t set_bytes = bytes(s, list[i].count_elems);

		list[i].sparse = gf_sparse_find(gf_wire_algorithm(GF_WIRE_GATHER));
		list[i].half = GF_COLL_ALL_GATHER;
		list[i].element = gf_element_set(set_bytes, NULL, NULL);
		list[i].count_elems = ranks;
		all_bytes += ranks * set_bytes;
	}
	rc = gf_select_memory(s, slot, 0, all_bytes, err);
	sets = s->slots[slot].memory[0];
	for (i = 0; i < n && !rc; i++) {
		list[i].data = sets;
		sets += ranks * list[i].element.size_bytes;
	}
	return rc;
}
