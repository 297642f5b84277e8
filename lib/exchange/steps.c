/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipeline of steps: begun, arrived, taken. */
#include <math.h>

#include "exchange/exchange.h"

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

void gf_exchange_list(struct gf_exchange *x, double scale)
{
	const size_t slot = gf_exchange_slot(x, x->begun - 1);
	const struct gf_work *work;
	size_t n;

	if (x->listed == x->begun)
		return;
	x->listed = x->begun;
	x->select.scale[slot] = scale;
	gf_select_begin(&x->select, slot, x->number, &work, &n);
	if (x->memory.select)
		gf_memory_begin(&x->memory, slot, work);
	if (x->env.nccl)
		gf_engine_list(x->engine, work, n);
	else
		gf_engine_begin_work(x->engine, work, n);
}

float *gf_exchange_begin(struct gf_exchange *x, size_t step, double scale)
{
	const size_t slot = gf_exchange_slot(x, x->begun);

	x->number = step;
	if (x->env.nccl) {
		x->select.flag[slot] = gf_device_flag(&x->flags, x->begun);
		x->select.scale[slot] = scale;
		gf_engine_begin_work(x->engine, NULL, 0);
	}
	x->begun++;
	if (!x->env.nccl)
		gf_exchange_list(x, scale);
	return x->pools[slot].data;
}

void gf_exchange_no_times(struct gf_exchange *x)
{
	size_t i;

	for (i = 0; i < x->env.plan->nmessages; i++)
		x->times[i] = (struct gf_message_times){NAN, NAN, NAN};
}

void gf_exchange_take_times(struct gf_exchange *x, size_t index,
			    const double *ready_s)
{
	const uint64_t step = index - x->restored;
	const struct gf_message_times *sent =
		gf_engine_times_of(x->engine, step);
	const struct gf_work *work;
	size_t n;

	if (!sent)
		return;
	work = gf_engine_list_of(x->engine, step, &n);
	gf_select_times(x->env.plan, work, n, sent, ready_s, x->times);
}

int gf_exchange_await(struct gf_exchange *x, size_t count, struct gf_error *err)
{
	int rc = 0;

	while (!rc && x->arrived < count) {
		rc = gf_engine_wait(x->engine, err);
		rc = rc ? rc : gf_exchange_kept(x, err);
		if (rc)
			break;
		gf_exchange_take_times(x, x->arrived,
				       gf_engine_ready_times(x->engine));
		x->arrived++;
	}
	return rc;
}

int gf_exchange_join(struct gf_exchange *x, bool due, struct gf_error *err)
{
	return due && x->taken >= x->restored ? gf_engine_wait(x->engine, err)
					      : gf_engine_check(x->engine, err);
}

int gf_exchange_learn(struct gf_exchange *x, bool *bad, struct gf_error *err)
{
	int rc = gf_device_flag_read(&x->flags, x->learnt, bad, err);

	/* what was aborted ends, too, with any numbers */
	rc = rc ? rc : gf_engine_check(x->engine, err);
	if (rc)
		return rc;
	if (!*bad)
		gf_select_adopt(&x->select, gf_exchange_slot(x, x->learnt));
	x->learnt++;
	return 0;
}

struct gf_select_bad gf_exchange_bad(struct gf_exchange *x, size_t index)
{
	if (index < x->restored)
		return (struct gf_select_bad){.found = x->flight_bad[index] !=
						       0};
	return gf_select_inspect(&x->select, gf_exchange_slot(x, index));
}
