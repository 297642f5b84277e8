/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a step through an exchange: begun, listed, arrived, taken, learnt of. */
#include <assert.h>

#include "exchange/exchange_parts.h"

static struct gf_exchange_step *step_of(struct gf_exchange *x, size_t index)
{
	return &x->steps[gf_exchange_slot(x, index)];
}

/* --- out ------------------------------------------------------------------ */

/* The messages of the step, which is the one begun last; again: nothing. */
static void list(struct gf_exchange_step *step)
{
	struct gf_exchange *x = step->of;
	const size_t slot = gf_exchange_slot(x, x->ledger.begun - 1);
	const struct gf_select_step begun = {step->number, step->scale, step->flag};
	const struct gf_work *work;
	size_t first = 0, n;

	if (!gf_ledger_list(&x->ledger))
		return;
	gf_select_begin(x->select, slot, &begun, &work, &n);
	if (x->env.period)
		gf_period_messages(x->env.period, x->fragment, &first, &n);
	if (x->memory.select)
		gf_memory_begin(&x->memory, slot, step->flag, work);
	if (x->env.place.nccl)
		gf_engine_list(x->engine, work, n);
	else
		gf_engine_begin_work(x->engine, work + first, n);
}

struct gf_exchange_step *gf_exchange_begin(struct gf_exchange *x, size_t number, double scale,
					   size_t fragment)
{
	const size_t index = gf_ledger_begin(&x->ledger, number);
	struct gf_exchange_step *step = step_of(x, index);
	const bool ahead = x->env.place.nccl != NULL;

	*step = (struct gf_exchange_step){
		.of = x,
		.number = number,
		.scale = scale,
		.grads = x->pools[gf_exchange_slot(x, index)].data,
		.flag = ahead ? gf_exchange_flag(&x->flags, index) : NULL,
	};
	x->fragment = fragment;
	if (ahead)
		gf_engine_begin_work(x->engine, NULL, 0);
	if (!ahead || x->memory.select)
		list(step);
	return step;
}

void gf_exchange_post(struct gf_exchange_step *step, size_t tensor, void *data)
{
	gf_memory_post(&step->of->memory, tensor, data);
}

void gf_exchange_ready(struct gf_exchange_step *step, const size_t *tensors, size_t n)
{
	list(step);
	gf_engine_ready_all(step->of->engine, tensors, n);
}

void gf_exchange_backward_end(struct gf_exchange_step *step)
{
	list(step);
	if (step->of->memory.select)
		gf_memory_flush(&step->of->memory);
	gf_engine_backward_end(step->of->engine);
}

/* --- times ---------------------------------------------------------------- */

/* Gathers of the last micro-batch. */
static void take_shard_times(const struct gf_shards *s, const struct gf_message_times *sent,
			     struct gf_message_times *times)
{
	const size_t n = s->plan->nmessages;
	size_t stage, unit;

	for (unit = 0; unit < n; unit++)
		times[unit] = sent[s->scatter[unit]];
	for (stage = 0; stage < s->stages; stage++) {
		unit = gf_shard_unit(n, stage) + (gf_shard_is_forward(n, stage) ? n : 2 * n);
		if (s->gather[stage])
			times[unit] = sent[s->gather[stage] - 1];
	}
}

/* Those of a step that was waited for; ready_s: per tensor, or NULL. */
static void take_times(struct gf_exchange *x, size_t index, const double *ready_s)
{
	const uint64_t step = gf_ledger_own(&x->ledger, index);
	const struct gf_work *work;
	size_t n;
	const struct gf_message_times *sent = gf_engine_times_of(x->engine, step, &work, &n);

	if (sent && x->env.shards)
		take_shard_times(x->env.shards, sent, x->times);
	else if (sent)
		gf_select_times(x->env.plan, work, n, sent, ready_s, x->times);
}

const struct gf_message_times *gf_exchange_times(const struct gf_exchange *x)
{
	return x->times;
}

/* --- and back ------------------------------------------------------------- */

int gf_exchange_await(struct gf_exchange *x, size_t count, struct gf_error *err)
{
	size_t index;
	int rc = 0;

	while (!rc && gf_ledger_next_arrival(&x->ledger, count, &index)) {
		rc = gf_engine_wait(x->engine, err);
		if (rc)
			break;
		take_times(x, index, gf_engine_ready_times(x->engine));
		gf_ledger_arrive(&x->ledger);
	}
	return rc;
}

int gf_exchange_next(struct gf_exchange *x, bool full, struct gf_exchange_step **step,
		     struct gf_error *err)
{
	const bool due = gf_ledger_is_due(&x->ledger, full);
	const size_t index = x->ledger.taken;
	int rc = 0;

	*step = NULL;
	/* between GPUs; a step of a checkpoint came with it */
	if (x->env.place.nccl && due && !gf_ledger_is_restored(&x->ledger, index))
		rc = gf_engine_wait(x->engine, err);
	else if (x->env.place.nccl)
		rc = gf_engine_check(x->engine, err);
	else if (due)
		rc = gf_exchange_await(x, index + 1, err);
	if (rc || !due)
		return rc;
	*step = step_of(x, index);
	/* also of one that came with a checkpoint */
	(*step)->number = x->ledger.number - gf_ledger_age(&x->ledger, index);
	return 0;
}

/* The message of the list that brings all of it. */
static size_t gather_of(const struct gf_exchange *x, size_t message)
{
	const struct gf_work *work = gf_select_messages(x->select, 0);
	size_t k;

	for (k = x->env.plan->nmessages; k < gf_work_count(x->env.plan, &x->pools[0]); k++)
		if (work[k].after == message + 1)
			return k;
	return message;
}

int gf_exchange_wait(struct gf_exchange_step *step, size_t message, bool whole,
		     struct gf_error *err)
{
	struct gf_exchange *x = step->of;
	const struct gf_memory *m = &x->memory;

	if (m->select && gf_memory_done(m, x->env.plan->messages[message].first))
		return 0;
	if (m->select && !m->by_message)
		return gf_exchange_await(x, x->ledger.begun, err);
	return gf_engine_wait_message(x->engine, whole ? gather_of(x, message) : message, err);
}

int gf_exchange_wait_work(struct gf_exchange_step *step, size_t place, struct gf_error *err)
{
	return gf_engine_wait_message(step->of->engine, place, err);
}

/* One of the plan's messages, which lies in the pool as a piece. */
static void sums_of(struct gf_exchange *x, size_t message, struct gf_select_sums *sums,
		    struct gf_select_bad *bad)
{
	const struct gf_work *w = &gf_select_messages(x->select, 0)[message];
	const struct gf_pool *pool = &x->pools[0];

	x->piece = (struct gf_optim_piece){
		.first = pool->offsets[w->first], .count_elems = w->count_elems, .grad = w->data};
	if (sums)
		*sums = (struct gf_select_sums){&x->piece, 1, 1.0f / (float)x->env.plan->ranks};
	if (bad)
		*bad = gf_select_find_bad(pool, w->data, x->piece.first, w->count_elems);
}

int gf_exchange_sums(struct gf_exchange_step *step, size_t message, struct gf_select_sums *sums,
		     struct gf_select_bad *bad, struct gf_error *err)
{
	struct gf_exchange *x = step->of;
	const size_t index = x->ledger.taken;
	int rc = 0;

	assert(step == step_of(x, index));
	if (message != GF_EXCHANGE_WHOLE) {
		sums_of(x, message, sums, bad);
		return 0;
	}
	if (bad)
		*bad = gf_exchange_bad_of(x, index);
	if (!sums)
		return 0;
	/* the stream waits for what follows the step's messages */
	if (x->env.place.nccl && !gf_ledger_is_restored(&x->ledger, index))
		rc = gf_engine_end(x->engine, err);
	gf_select_sums(x->select, gf_exchange_slot(x, index), sums);
	return rc;
}

/* Between GPUs. In a caller's memory the step is at its end. */
static int take_ahead(struct gf_exchange *x, struct gf_error *err)
{
	const bool callers = x->memory.select != NULL;
	const bool tells = !callers || gf_select_decides(x->select);
	const struct gf_exchange_flags *f = &x->flags;
	const size_t step = x->ledger.taken, slot = step % f->count;
	struct gf_gpu_stream *q = x->env.place.stream;
	int rc = callers ? gf_engine_end(x->engine, err) : 0;

	if (rc)
		return rc;
	if (tells) { /* the answer's way to the host */
		rc = f->gpu->ops->copy(f->gpu, q, (uint32_t *)f->seen + slot,
				       gf_exchange_flag(f, step), sizeof(uint32_t), GF_GPU_TO_HOST,
				       err);
		rc = rc ?: f->gpu->ops->record(f->gpu, f->known[slot], q, err);
	}
	gf_ledger_take(&x->ledger);
	if (!tells) /* there is nothing that it decided */
		gf_ledger_learn(&x->ledger);
	return rc;
}

int gf_exchange_take(struct gf_exchange_step *step, bool applied, struct gf_error *err)
{
	struct gf_exchange *x = step->of;

	if (x->env.place.nccl)
		return take_ahead(x, err);
	if (applied)
		gf_select_adopt(x->select, gf_exchange_slot(x, x->ledger.taken));
	gf_ledger_take(&x->ledger);
	return 0;
}

int gf_exchange_learn(struct gf_exchange *x, bool always, bool *bad, struct gf_error *err)
{
	const struct gf_exchange_flags *f = &x->flags;
	size_t index, slot;
	int rc;

	*bad = false;
	if (!x->env.place.nccl || (!always && !gf_select_decides(x->select)) ||
	    !gf_ledger_next_lesson(&x->ledger, &index))
		return 1;
	slot = index % f->count;
	rc = f->gpu->ops->event_sync(f->gpu, f->known[slot], err);
	if (!rc)
		*bad = ((const uint32_t *)f->seen)[slot] != 0;
	/* what was aborted ends, too, with any numbers */
	rc = rc ? rc : gf_engine_check(x->engine, err);
	if (rc)
		return rc;
	if (!*bad)
		gf_select_adopt(x->select, gf_exchange_slot(x, index));
	gf_ledger_learn(&x->ledger);
	if (gf_ledger_is_restored(&x->ledger, index))
		gf_exchange_no_times(x);
	else if (!x->memory.select) /* nobody asks */
		take_times(x, index, NULL);
	return 0;
}

/* --- what is known of it -------------------------------------------------- */

bool gf_exchange_is_back(const struct gf_exchange *x, size_t tensor)
{
	return gf_memory_done(&x->memory, tensor);
}

struct gf_totals gf_exchange_totals(const struct gf_exchange *x)
{
	struct gf_totals totals = gf_engine_totals(x->engine);

	totals.copied_bytes =
		atomic_load(x->halves ? &x->halves->copied_bytes : &x->memory.copied_bytes);
	return totals;
}

int gf_exchange_failed(struct gf_exchange *x, int rc, struct gf_error *err)
{
	if (!rc)
		return gf_engine_check(x->engine, err);
	gf_engine_fail(x->engine, rc, err);
	return rc;
}

int gf_exchange_missing(struct gf_exchange *x, bool *missing)
{
	return gf_engine_missing(x->engine, missing);
}

int gf_exchange_call(struct gf_exchange *x,
		     int (*fn)(struct gf_comm *comm, void *ctx, struct gf_error *err), void *ctx,
		     struct gf_error *err)
{
	return gf_engine_call(x->engine, fn, ctx, err);
}

struct gf_engine *gf_exchange_engine(struct gf_exchange *x)
{
	return x->engine;
}

const struct gf_pool *gf_exchange_pool(const struct gf_exchange *x)
{
	return &x->pools[0];
}
