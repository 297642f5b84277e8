/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools, a selection and an engine. */
#include "exchange/exchange_parts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"

int gf_exchange_check_plan(const struct gf_plan *plan, bool between_gpus, struct gf_error *err)
{
	int rc;

	if (between_gpus)
		return gf_select_check_gpu(plan, err);
	rc = gf_plan_check_settled(plan, err);
	if (!rc && !gf_period_has(&plan->period, GF_PERIOD_EVERY))
		rc = gf_error_set(err, -ENOTSUP,
				  "want a plan without a period, got %s (gf-train and "
				  "gradflow.Periodic run it)",
				  gf_period_name(&plan->period));
	return rc ? rc : gf_select_check(plan, err);
}

/* --- flags of steps on a GPU ------------------------------------------------- */

/* gpu and count are the caller's. */
static int flags_open(struct gf_exchange_flags *f, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = f->gpu->ops;
	size_t size_bytes = f->count * sizeof(uint32_t), i;
	int rc;

	f->known = gf_xcalloc(f->count, sizeof(struct gf_gpu_event *));
	rc = ops->alloc(f->gpu, size_bytes, &f->words, err);
	rc = rc ? rc : ops->host_alloc(f->gpu, size_bytes, &f->seen, err);
	for (i = 0; i < f->count && !rc; i++)
		rc = ops->event_new(f->gpu, false, &f->known[i], err);
	return rc;
}

/* After all streams have ended; accepts zeros. */
static void flags_close(struct gf_exchange_flags *f)
{
	size_t i;

	if (!f->gpu)
		return;
	for (i = 0; f->known && i < f->count; i++)
		f->gpu->ops->event_free(f->gpu, f->known[i]);
	f->gpu->ops->host_free(f->gpu, f->seen);
	f->gpu->ops->free(f->gpu, f->words);
	free(f->known);
	*f = (struct gf_exchange_flags){0};
}

/* All of them, between steps: from the device, and to it. */
static int flags_copy(struct gf_exchange_flags *f, struct gf_gpu_stream *s, uint32_t *words,
		      enum gf_gpu_copy kind, struct gf_error *err)
{
	const struct gf_gpu_ops *ops = f->gpu->ops;
	const bool down = kind == GF_GPU_TO_HOST;
	int rc = ops->copy(f->gpu, s, down ? (void *)words : f->words,
			   down ? f->words : (void *)words, f->count * sizeof(*words), kind, err);

	return rc ? rc : ops->stream_sync(f->gpu, s, err);
}

/* --- gradients that have come and wait to be taken: in a checkpoint ------- */

static int flight_open(struct gf_exchange *x, struct gf_error *err)
{
	size_t n = (x->ledger.depth - 1) * gf_exchange_elems(x);

	if (!x->env.shapes || !n)
		return 0;
	x->flight_bad = gf_xcalloc(x->ledger.depth, sizeof(*x->flight_bad));
	x->flight_scale = gf_xcalloc(x->ledger.depth, sizeof(*x->flight_scale));
	x->flight = calloc(n, sizeof(*x->flight));
	if (!x->flight)
		return gf_error_set(err, -ENOMEM,
				    "no memory for %zu gradients in flight of %zu parameters",
				    x->ledger.depth - 1, gf_exchange_elems(x));
	return 0;
}

/* The same on all ranks: what is kept are sums. */
static void flight_state(struct gf_exchange *x, struct gf_state *s)
{
	const struct gf_model_profile *model = x->env.plan->model;
	/* scaled gradients come as means, whatever the number of ranks */
	enum gf_state_rule rule = x->env.scaled ? GF_STATE_KEEP : GF_STATE_SUM;
	size_t age, i;

	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.count", "U64", &x->nflight, 1);
	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.bad", "U64", x->flight_bad,
			   x->ledger.depth - 1);
	gf_state_add_words(s, GF_STATE_SHARED, "pipeline.scale", "F64", x->flight_scale,
			   x->ledger.depth - 1);
	for (age = 0; age + 1 < x->ledger.depth; age++)
		for (i = 0; i < model->ntensors; i++)
			gf_state_add(s, GF_STATE_SHARED,
				     gf_xasprintf("pipeline.%zu.%s", age, model->tensors[i].name),
				     &x->env.shapes[i],
				     x->flight + age * gf_exchange_elems(x) +
					     x->pools[0].offsets[i])
				->rule = rule;
}

/* The place of the gradient of that age, filled with zeros. */
static float *room(struct gf_exchange *x, size_t age)
{
	const size_t n = gf_exchange_elems(x);

	x->flight_bad[age] = 0;
	x->flight_scale[age] = 0;
	return memset(x->flight + age * n, 0, n * sizeof(float));
}

/* Per gradient: is it bad? A device's flags come from there. */
static int find_bad(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_flags *f = x->env.place.nccl ? &x->flags : NULL;
	GF_FREED uint32_t *flags = NULL;
	size_t age;
	int rc;

	if (!f) {
		for (age = 0; age < x->nflight; age++)
			x->flight_bad[age] = gf_exchange_bad_of(x, x->ledger.taken + age).found;
		return 0;
	}
	flags = gf_xcalloc(f->count, sizeof(*flags));
	rc = flags_copy(&x->flags, x->env.place.stream, flags, GF_GPU_TO_HOST, err);
	for (age = 0; age < x->nflight; age++)
		x->flight_bad[age] = flags[(x->ledger.taken + age) % f->count] != 0;
	return rc;
}

/* Those that have come and wait. */
static int flight_keep(struct gf_exchange *x, struct gf_error *err)
{
	size_t age, slot;
	int rc;

	x->nflight = gf_ledger_waiting(&x->ledger);
	assert(x->nflight < x->ledger.depth);
	for (age = 0; age + 1 < x->ledger.depth; age++)
		room(x, age);
	rc = find_bad(x, err);
	for (age = 0; age < x->nflight && !rc; age++) {
		slot = gf_exchange_slot(x, x->ledger.taken + age);
		x->flight_scale[age] = x->steps[slot].scale;
		rc = gf_select_keep(x->select, slot, age, x->flight_bad[age],
				    x->flight + age * gf_exchange_elems(x), err);
	}
	return rc;
}

static int send_flags(struct gf_exchange *x, struct gf_error *err)
{
	GF_FREED uint32_t *flags = NULL;
	size_t age;

	if (!x->env.place.nccl)
		return 0;
	flags = gf_xcalloc(x->flags.count, sizeof(*flags));
	for (age = 0; age < x->nflight; age++)
		flags[age] = x->flight_bad[age] != 0;
	return flags_copy(&x->flags, x->env.place.stream, flags, GF_GPU_TO_DEVICE, err);
}

int gf_ledger_restore(struct gf_ledger *l, uint64_t in_flight, struct gf_error *err)
{
	if (in_flight >= l->depth)
		return gf_error_set(
			err, -EINVAL,
			"the checkpoint: want at most %zu gradients in flight, got %" PRIu64,
			l->depth - 1, in_flight);
	gf_ledger_init(l, l->depth);
	l->begun = l->listed = l->arrived = l->restored = in_flight;
	l->shift = l->depth - in_flight;
	return 0;
}

static int flight_restore(struct gf_exchange *x, struct gf_error *err)
{
	size_t age, slot;
	int rc = gf_ledger_restore(&x->ledger, x->nflight, err);

	for (age = 0; age < x->nflight && !rc; age++) {
		slot = gf_exchange_slot(x, age);
		x->steps[slot] = (struct gf_exchange_step){
			.of = x,
			.scale = x->flight_scale[age],
			.bad = x->flight_bad[age] != 0,
			.grads = x->pools[slot].data,
			.flag = x->env.place.nccl ? gf_exchange_flag(&x->flags, age) : NULL,
		};
		rc = gf_select_restore(x->select, slot, age, x->flight + age * gf_exchange_elems(x),
				       err);
	}
	return rc ? rc : send_flags(x, err);
}

/* Elements that each tensor takes in a pool of f32; counts begin as those of the model. dtypes:
 * NULL: they are all f32. */
static void lay_out(const struct gf_plan *plan, const enum gf_dtype *dtypes, size_t *counts)
{
	size_t i, k;

	for (i = 0; dtypes && i < plan->nmessages; i++) {
		const struct gf_message *m = &plan->messages[i];

		if (!gf_memory_is_wide(plan, dtypes, i))
			continue;
		for (k = m->first; k <= m->last; k++)
			counts[k] *= sizeof(double) / sizeof(float);
		counts[m->last]++; /* so that it can begin at a whole f64 */
	}
}

/* On memory of the caller, which may be a GPU's. */
static void pool_on(struct gf_pool *p, float *data, const size_t *count_elems, size_t ntensors)
{
	size_t i;

	*p = (struct gf_pool){.data = data, .ntensors = ntensors};
	p->offsets = gf_xcalloc(ntensors + 1, sizeof(*p->offsets));
	for (i = 0; i < ntensors; i++)
		p->offsets[i + 1] = p->offsets[i] + count_elems[i];
	p->count_elems = p->offsets[ntensors];
}

/* --- opening and closing -------------------------------------------------- */

static int open_pools(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_env *k = &x->env;
	const struct gf_place *at = &k->place;
	const struct gf_model_profile *model = k->plan->model;
	size_t n = model->ntensors, i;
	GF_FREED size_t *counts = gf_xcalloc(n, sizeof(*counts));
	int rc = 0;

	if (gf_shard_is_used(&k->plan->shard) && !k->shards)
		rc = gf_error_set(err, -ENOTSUP,
				  "want a plan without shards, got %s (gf-train runs it)",
				  gf_shard_plans[k->plan->shard.method]->name);
	x->pools = gf_xcalloc(x->ledger.depth, sizeof(*x->pools));
	for (i = 0; i < n; i++)
		counts[i] = model->tensors[i].count_elems;
	lay_out(k->plan, k->dtypes, counts);
	for (i = 0; i < x->ledger.depth && !rc; i++) {
		if (at->nccl)
			pool_on(&x->pools[i], at->grads + i * at->stride, counts, n);
		else
			rc = gf_pool_init(&x->pools[i], k->comm, counts, n, err);
		x->pools[i].lent = k->dtypes != NULL;
		x->pools[i].shards = k->shards;
		if (rc || !at->gpu || at->nccl)
			continue;
		/* the GPU will copy to and from it by itself */
		rc = at->gpu->ops->host_pin(at->gpu, x->pools[i].data,
					    x->pools[i].count_elems * sizeof(float), err);
		if (!rc)
			x->pools[i].gpu = at->gpu;
		else
			gf_error_prefix(err, "gradients");
	}
	return rc;
}

static int open_select(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_env *k = &x->env;

	return gf_select_open(&x->select,
			      &(struct gf_select_env){
				      .plan = k->plan,
				      .rank = k->comm->rank,
				      .depth = x->ledger.depth,
				      .pools = x->pools,
				      .shapes = k->shapes,
				      .epoch_steps = k->epoch_steps,
				      .momentum = k->momentum,
				      .scaled = k->scaled,
				      .place = k->place.nccl ? k->place : (struct gf_place){0},
			      },
			      err);
}

static int open_engine(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_env *k = &x->env;
	struct gf_engine_config config = {
		.comm = k->comm,
		.plan = k->plan,
		.pool = &x->pools[0],
		.timeout_s = k->timeout_s,
		.segment_bytes = k->plan->segment_bytes,
		.depth = x->ledger.depth,
		.compute_threads = k->threads,
		.awaited_at_once = k->awaited_at_once,
		.signals = k->shards ? k->shards->stages : 0,
	};
	int rc;

	if (x->halves) {
		config.plan = NULL;
		config.lanes = k->plan->lanes;
		config.pool = &x->halves->pool;
		config.depth = GF_HALVES_DEPTH;
		config.hooks = gf_halves_hooks(x->halves);
	} else {
		config.hooks = x->memory.select ? x->memory.hooks : *gf_select_hooks(x->select);
	}
	if (k->place.nccl)
		config.place = k->place;
	x->memory.on_done = k->on_back;
	x->memory.on_done_ctx = k->on_back_ctx;
	rc = gf_engine_new(&config, &x->engine, err);
	x->memory.engine = x->engine;
	return rc;
}

/* The engine is told what will be sent, all or by fragments. For it a rank may be short of memory
 * or of files, alone. */
static int expect(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_period *p = x->env.period;
	size_t n, first, i;
	const struct gf_work *like = gf_select_expect(x->select, &n);
	int rc = gf_engine_expect(x->engine, like, n, err);

	rc = gf_engine_agree(x->engine, rc, err);
	for (i = 0; p && i < p->fragments && !rc; i++) {
		gf_period_messages(p, i, &first, &n);
		rc = gf_engine_expect(x->engine, like + first, n, err);
		rc = gf_engine_agree(x->engine, rc, err);
	}
	return rc;
}

static int open_halves(struct gf_exchange *x, struct gf_error *err)
{
	struct gf_halves *h = gf_xcalloc(1, sizeof(*h));
	int rc;

	x->halves = h;
	h->env = &x->env;
	h->pool.ntensors = 1;
	h->pool.offsets = gf_xcalloc(2, sizeof(*h->pool.offsets));
	rc = gf_comm_agree(x->env.comm, gf_exchange_check_halves(x->env.plan, err), err);
	rc = rc ? rc : open_engine(x, err);
	h->engine = x->engine;
	return rc;
}

static int open_all(struct gf_exchange *x, struct gf_error *err)
{
	const struct gf_exchange_env *k = &x->env;
	int rc;

	if (k->halves)
		return open_halves(x, err);
	rc = open_pools(x, err);

	rc = rc ? rc : open_select(x, err);
	if (!rc && k->dtypes)
		rc = gf_memory_open(&x->memory, x->select, k->comm, k->dtypes, err);
	if (!rc && x->env.place.nccl) {
		x->flags = (struct gf_exchange_flags){.gpu = x->env.place.gpu,
						      .count = x->ledger.depth + 1};
		rc = flags_open(&x->flags, err);
	}
	rc = rc ? rc : flight_open(x, err);
	rc = gf_comm_agree(k->comm, rc, err);
	rc = rc ? rc : open_engine(x, err);
	return rc ? rc : expect(x, err);
}

int gf_exchange_open(struct gf_exchange **out, const struct gf_exchange_env *env,
		     struct gf_error *err)
{
	struct gf_exchange *x = gf_xcalloc(1, sizeof(*x));
	int rc;

	x->env = *env;
	gf_ledger_init(&x->ledger, (size_t)env->plan->staleness);
	x->steps = gf_xcalloc(x->ledger.depth, sizeof(*x->steps));
	x->times = gf_xcalloc(3 * env->plan->nmessages + 1, sizeof(*x->times));
	gf_exchange_no_times(x);
	rc = open_all(x, err);
	if (rc && env->comm->broken)
		gf_exchange_abandon(x);
	else if (rc)
		gf_exchange_close(x);
	*out = rc ? NULL : x;
	return rc;
}

void gf_exchange_close(struct gf_exchange *x)
{
	const struct gf_place *at = x ? &x->env.place : NULL;
	struct gf_error ignored;
	size_t i;

	if (!x)
		return;
	if (!x->env.comm->broken && !at->nccl)
		(void)(x->halves ? gf_exchange_wait_half(x, UINT64_MAX, &ignored)
				 : gf_exchange_await(x, x->ledger.begun, &ignored));
	gf_engine_free(x->engine);
	if (at->nccl)
		(void)at->gpu->ops->stream_sync(at->gpu, at->stream, &ignored);
	free(x->memory.tensors);
	free(x->memory.messages);
	gf_halves_close(x->halves);
	gf_select_close(x->select);
	flags_close(&x->flags);
	for (i = 0; x->pools && i < x->ledger.depth; i++)
		gf_pool_release(&x->pools[i]);
	free(x->pools);
	free(x->flight);
	free(x->flight_bad);
	free(x->flight_scale);
	free(x->times);
	free(x->steps);
	free(x);
}

void gf_exchange_abandon(struct gf_exchange *x)
{
	if (x)
		gf_engine_abandon(x->engine);
}

/* --- what survives a stop ------------------------------------------------- */

void gf_exchange_state(struct gf_exchange *x, struct gf_state *s)
{
	if (x->halves)
		return;
	if (x->flight)
		flight_state(x, s);
	gf_select_state(x->select, s);
}

int gf_exchange_settle(struct gf_exchange *x, struct gf_error *err)
{
	int rc = x->env.place.nccl ? gf_engine_settle(x->engine, err)
				   : gf_exchange_await(x, x->ledger.begun, err);

	rc = rc ? rc : gf_select_fetch(x->select, err);
	return rc || !x->flight ? rc : flight_keep(x, err);
}

int gf_exchange_restore(struct gf_exchange *x, size_t steps, struct gf_error *err)
{
	int rc = gf_select_send(x->select, err);

	/* the state that was read is all that holds */
	x->ledger.learnt = x->ledger.taken;
	if (!rc && x->flight)
		rc = flight_restore(x, err);
	rc = rc ? rc : expect(x, err);
	if (!rc)
		gf_engine_count_from(x->engine, steps);
	return rc;
}
