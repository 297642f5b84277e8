/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a step through an exchange: begun, listed, arrived, taken,
 * learnt of. */
#include <errno.h>
#include <math.h>

#include "exchange/exchange_parts.h"

void gf_exchange_keep(struct gf_exchange *x, int rc, const struct gf_error *err)
{
	if (x->rc || !rc)
		return;
	x->rc = rc;
	x->reason = *err;
}

int gf_exchange_kept(const struct gf_exchange *x, struct gf_error *err)
{
	if (x->rc)
		*err = x->reason;
	return x->rc;
}

int gf_exchange_check(struct gf_exchange *x, struct gf_error *err)
{
	int rc = gf_exchange_kept(x, err);

	return rc ? rc : gf_engine_check(x->engine, err);
}

/* --- out ------------------------------------------------------------------ */

void gf_exchange_list(struct gf_exchange *x, double scale)
{
	const size_t slot = gf_exchange_slot(x, x->ledger.begun - 1);
	const struct gf_work *work;
	size_t n;

	if (!gf_ledger_list(&x->ledger))
		return;
	x->steps[slot].scale = scale;
	gf_select_begin(x->select, slot, &x->steps[slot], &work, &n);
	if (x->part_count) {
		work += x->part;
		n = x->part_count;
		x->part_count = 0;
	}
	if (x->memory.select)
		gf_memory_begin(&x->memory, slot, x->steps[slot].flag, work);
	if (x->env.place.nccl)
		gf_engine_list(x->engine, work, n);
	else
		gf_engine_begin_work(x->engine, work, n);
}

void gf_exchange_part(struct gf_exchange *x, size_t first, size_t count)
{
	x->part = first;
	x->part_count = count;
}

float *gf_exchange_begin(struct gf_exchange *x, size_t step, double scale)
{
	const size_t index = gf_ledger_begin(&x->ledger, step);
	const size_t slot = gf_exchange_slot(x, index);

	x->steps[slot] = (struct gf_select_step){step, scale, NULL};
	if (x->env.place.nccl) {
		x->steps[slot].flag = gf_exchange_flag(&x->flags, index);
		gf_engine_begin_work(x->engine, NULL, 0);
	} else {
		gf_exchange_list(x, scale);
	}
	return x->pools[slot].data;
}

void gf_exchange_post(struct gf_exchange *x, size_t tensor, void *data)
{
	gf_memory_post(&x->memory, tensor, data);
}

void gf_exchange_await_at_once(struct gf_exchange *x)
{
	gf_engine_await_at_once(x->engine);
}

void gf_exchange_ready(struct gf_exchange *x, const size_t *tensors, size_t n)
{
	gf_engine_ready_all(x->engine, tensors, n);
}

void gf_exchange_backward_end(struct gf_exchange *x)
{
	if (x->memory.select)
		gf_memory_flush(&x->memory);
	gf_engine_backward_end(x->engine);
}

/* --- times ---------------------------------------------------------------- */

void gf_exchange_no_times(struct gf_exchange *x)
{
	size_t i;

	for (i = 0; i < x->env.plan->nmessages; i++)
		x->times[i] = (struct gf_message_times){NAN, NAN, NAN, 0, 0, 0};
}

/* Those of a step that was waited for; ready_s: per tensor, or NULL. */
static void take_times(struct gf_exchange *x, size_t index,
		       const double *ready_s)
{
	const uint64_t step = gf_ledger_own(&x->ledger, index);
	const struct gf_message_times *sent =
		gf_engine_times_of(x->engine, step);
	const struct gf_work *work;
	size_t n;

	if (!sent)
		return;
	work = gf_engine_list_of(x->engine, step, &n);
	gf_select_times(x->env.plan, work, n, sent, ready_s, x->times);
}

bool gf_exchange_times_taken(struct gf_exchange *x, size_t *age)
{
	const size_t last = x->ledger.taken - 1;

	gf_exchange_no_times(x);
	if (!x->ledger.taken || gf_ledger_is_restored(&x->ledger, last))
		return false;
	*age = gf_ledger_age(&x->ledger, last);
	take_times(x, last, NULL);
	return true;
}

const struct gf_message_times *gf_exchange_times(const struct gf_exchange *x)
{
	return x->times;
}

/* --- and back ------------------------------------------------------------- */

bool gf_exchange_is_due(const struct gf_exchange *x, bool full)
{
	return gf_ledger_is_due(&x->ledger, full);
}

/* Until the messages of the first `count` steps have ended. */
static int await(struct gf_exchange *x, size_t count, struct gf_error *err)
{
	size_t index;
	int rc = 0;

	while (!rc && gf_ledger_next_arrival(&x->ledger, count, &index)) {
		rc = gf_engine_wait(x->engine, err);
		rc = rc ? rc : gf_exchange_kept(x, err);
		if (rc)
			break;
		take_times(x, index, gf_engine_ready_times(x->engine));
		gf_ledger_arrive(&x->ledger);
	}
	return rc;
}

/* A step of a checkpoint came with it. */
static int join(struct gf_exchange *x, bool due, struct gf_error *err)
{
	return due && !gf_ledger_is_restored(&x->ledger, x->ledger.taken)
		       ? gf_engine_wait(x->engine, err)
		       : gf_engine_check(x->engine, err);
}

int gf_exchange_wait(struct gf_exchange *x, bool due, struct gf_error *err)
{
	if (x->env.place.nccl)
		return join(x, due, err);
	return due ? await(x, x->ledger.taken + 1, err) : 0;
}

int gf_exchange_wait_all(struct gf_exchange *x, struct gf_error *err)
{
	return await(x, x->ledger.begun, err);
}

/* The message of the list that brings all of it. */
static size_t gather_of(const struct gf_exchange *x, size_t message)
{
	const struct gf_work *work = gf_select_messages(x->select, 0);
	size_t k;

	for (k = x->env.plan->nmessages; k < gf_work_count(x->env.plan); k++)
		if (work[k].after == message + 1)
			return k;
	return message;
}

int gf_exchange_wait_message(struct gf_exchange *x, size_t message, bool whole,
			     struct gf_error *err)
{
	return gf_engine_wait_message(
		x->engine, whole ? gather_of(x, message) : message, err);
}

struct gf_exchange_oldest gf_exchange_oldest(const struct gf_exchange *x)
{
	const size_t index = x->ledger.taken;

	return (struct gf_exchange_oldest){
		.age = gf_ledger_age(&x->ledger, index),
		.scale = x->steps[gf_exchange_slot(x, index)].scale,
		.flag = x->env.place.nccl ? gf_exchange_flag(&x->flags, index)
					  : NULL,
	};
}

struct gf_select_bad gf_exchange_bad_of(struct gf_exchange *x, size_t index)
{
	if (gf_ledger_is_restored(&x->ledger, index))
		return (struct gf_select_bad){.found = x->flight_bad[index] !=
						       0};
	return gf_select_inspect(x->select, gf_exchange_slot(x, index));
}

struct gf_select_bad gf_exchange_bad(struct gf_exchange *x)
{
	return gf_exchange_bad_of(x, x->ledger.taken);
}

int gf_exchange_sums(struct gf_exchange *x, struct gf_select_sums *sums,
		     struct gf_error *err)
{
	const size_t index = x->ledger.taken;
	int rc = 0;

	/* the stream waits for what follows the step's messages */
	if (x->env.place.nccl && !gf_ledger_is_restored(&x->ledger, index))
		rc = gf_engine_end(x->engine, err);
	gf_select_sums(x->select, gf_exchange_slot(x, index), sums);
	return rc;
}

void gf_exchange_adopt(struct gf_exchange *x)
{
	gf_select_adopt(x->select, gf_exchange_slot(x, x->ledger.taken));
}

struct gf_exchange_sums_of gf_exchange_message(const struct gf_exchange *x,
					       size_t message)
{
	const struct gf_pool *pool = &x->pools[0];
	const struct gf_work *w = &gf_select_messages(x->select, 0)[message];
	const size_t first = pool->offsets[w->first];

	return (struct gf_exchange_sums_of){
		.grads = pool->data,
		.first = first,
		.count = w->count_elems,
		.bad = gf_select_find_bad(pool, w->data, first, w->count_elems),
	};
}

int gf_exchange_take(struct gf_exchange *x, struct gf_error *err)
{
	int rc = x->env.place.nccl
			 ? gf_exchange_flag_send(&x->flags, x->env.place.stream,
						 x->ledger.taken, err)
			 : 0;

	gf_ledger_take(&x->ledger);
	return rc;
}

int gf_exchange_take_all(struct gf_exchange *x, struct gf_error *err)
{
	int rc;

	if (!x->env.place.nccl) {
		rc = gf_exchange_wait_all(x, err);
		if (!rc)
			gf_ledger_take(&x->ledger);
		return rc;
	}
	rc = join(x, true, err);
	rc = rc ? rc : gf_engine_end(x->engine, err);
	if (rc)
		return rc;
	if (gf_exchange_decides(x))
		return gf_exchange_take(x, err);
	gf_ledger_take(&x->ledger);
	gf_ledger_learn(&x->ledger); /* there is nothing that it decided */
	return 0;
}

int gf_exchange_learn(struct gf_exchange *x, bool *bad, struct gf_error *err)
{
	size_t index;
	int rc;

	*bad = false;
	if (!x->env.place.nccl || !gf_ledger_next_lesson(&x->ledger, &index))
		return 1;
	rc = gf_exchange_flag_read(&x->flags, index, bad, err);
	/* what was aborted ends, too, with any numbers */
	rc = rc ? rc : gf_engine_check(x->engine, err);
	if (rc)
		return rc;
	if (!*bad)
		gf_select_adopt(x->select, gf_exchange_slot(x, index));
	gf_ledger_learn(&x->ledger);
	return 0;
}

/* --- CALLER'S MEMORY ------------------------------------------------------ */

bool gf_exchange_is_back(const struct gf_exchange *x, size_t tensor)
{
	return gf_memory_done(&x->memory, tensor);
}

int gf_exchange_wait_tensor(struct gf_exchange *x, size_t tensor,
			    struct gf_error *err)
{
	if (gf_memory_done(&x->memory, tensor))
		return 0;
	return gf_exchange_by_message(x)
		       ? gf_engine_wait_message(
				 x->engine,
				 gf_memory_brings(&x->memory, tensor), err)
		       : gf_exchange_wait_all(x, err);
}

size_t gf_exchange_needs(const struct gf_exchange *x, size_t tensor)
{
	const struct gf_message *m =
		&x->env.plan->messages[x->memory.tensors[tensor].message];

	/* messages go in their order, and a half follows all of them */
	return gf_exchange_by_message(x) && m->release == GF_RELEASE_READY &&
			       m->half == GF_HALF_ALL
		       ? m->last
		       : x->env.plan->model->ntensors - 1;
}

void gf_exchange_on_back(struct gf_exchange *x,
			 void (*fn)(void *ctx, size_t tensor, int status),
			 void *ctx)
{
	x->memory.on_done = fn;
	x->memory.on_done_ctx = ctx;
}

uint64_t gf_exchange_copied_bytes(const struct gf_exchange *x)
{
	return atomic_load(&x->memory.copied_bytes);
}

/* --- what is known of it -------------------------------------------------- */

size_t gf_exchange_begun(const struct gf_exchange *x)
{
	return x->ledger.begun;
}

const size_t *gf_exchange_offsets(const struct gf_exchange *x)
{
	return x->pools[0].offsets;
}

bool gf_exchange_by_message(const struct gf_exchange *x)
{
	return gf_selection_has(&x->env.plan->selection, GF_SELECT_LOSSLESS);
}

bool gf_exchange_decides(const struct gf_exchange *x)
{
	return gf_select_decides(x->select);
}

struct gf_totals gf_exchange_totals(struct gf_exchange *x)
{
	return gf_engine_totals(x->engine);
}

double gf_exchange_handling_s(const struct gf_exchange *x)
{
	return gf_engine_handling_s(x->engine);
}

void gf_exchange_count_from(struct gf_exchange *x, size_t steps)
{
	gf_engine_count_from(x->engine, steps);
}

int gf_exchange_call(struct gf_exchange *x,
		     int (*fn)(struct gf_comm *comm, void *ctx,
			       struct gf_error *err),
		     void *ctx, struct gf_error *err)
{
	return gf_engine_call(x->engine, fn, ctx, err);
}

int gf_exchange_agree(struct gf_exchange *x, int rc, struct gf_error *err)
{
	return gf_engine_agree(x->engine, rc, err);
}

int gf_exchange_missing(struct gf_exchange *x, bool *missing)
{
	return gf_engine_missing(x->engine, missing);
}

struct gf_engine *gf_exchange_engine(struct gf_exchange *x)
{
	return x->engine;
}

float *gf_exchange_pool(struct gf_exchange *x)
{
	return x->pools[0].data;
}
