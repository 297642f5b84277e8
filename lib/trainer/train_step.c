/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/trainer.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "trainer/method_parts.h"

/* --- gradients ------------------------------------------------------------ */

struct gradients {
	const struct gf_stepper *stepper;
	struct gf_step_times *times;
	float *data;
	size_t next; /* tensor that is made next, and where it begins */
	size_t at;
};

/* In generation order the sum of the earlier micro-batches is taken up tensor by tensor, while it
 * is in the cache; then the mean of all goes out. */
static void take_up(struct gradients *g, size_t tensor)
{
	const struct gf_stepper *s = g->stepper;
	float share = 1.0f / (float)s->accumulate;

	for (; g->next <= tensor; g->next++) {
		for (size_t i = g->at; i < g->at + s->counts[g->next]; i++)
			g->data[i] = (s->sum[i] + g->data[i]) * share;
		g->at += s->counts[g->next];
	}
}

/* nn's callback: this is where computing meets communicating. */
static void on_grad(void *ctx, size_t tensor)
{
	struct gradients *g = ctx;
	struct gf_method *m = g->stepper->method;

	if (g->stepper->sum)
		take_up(g, tensor);
	g->times->gradient_s[tensor] = gf_clock_s();
	gf_statistics_take(g->stepper->statistics, tensor, g->data);
	gf_method_ready(m, tensor);
}

static void on_early_grad(void *ctx, size_t tensor)
{
	const struct gradients *g = ctx;

	gf_method_early(g->stepper->method, tensor);
}

/* The gradient of a micro-batch before the last, added up. */
static void keep(const struct gf_stepper *s, const float *grads, size_t part)
{
	size_t n = 0, i;

	for (i = 0; i < s->timeline->ntensors; i++)
		n += s->counts[i];
	if (!part)
		memcpy(s->sum, grads, n * sizeof(*grads));
	for (i = 0; part && i < n; i++)
		s->sum[i] += grads[i];
}

/* --- a step --------------------------------------------------------------- */

/* Once the pass is through: nothing in it waits for them. */
static int take_result(const struct gf_stepper *s, struct gf_step_outcome *out,
		       struct gf_error *err)
{
	struct gf_compute *c = s->compute;
	double loss = 0;
	size_t correct = 0;
	int rc = c->ops->result(c, &loss, &correct, err);

	out->loss += loss / (double)s->accumulate;
	out->correct += correct;
	return rc;
}

/* The first forward of a step takes up what the step before may have left; then the pool is free
 * for this one's gradients. */
static int forward(const struct gf_stepper *s, size_t part, struct gradients *g,
		   struct gf_error *err)
{
	struct gf_compute *c = s->compute;
	int rc = c->ops->forward(c, err);

	if (!rc)
		gf_method_forward_end(s->method);
	return rc || part ? rc : gf_method_memory(s->method, &g->data, err);
}

/* The gradient of a micro-batch before the last. */
static int backward_early(const struct gf_stepper *s, size_t part, struct gradients *g,
			  struct gf_error *err)
{
	struct gf_compute *c = s->compute;
	int rc;

	if (!s->sum)
		return c->ops->backward_early(c, g->data, err);
	rc = c->ops->backward(c, g->data, on_early_grad, g, err);
	if (!rc)
		keep(s, g->data, part);
	return rc;
}

static int early(const struct gf_stepper *s, size_t step, struct gradients *g,
		 struct gf_step_outcome *out, struct gf_error *err)
{
	struct gf_compute *c = s->compute;
	int rc = 0;

	for (size_t part = 0; !rc && part + 1 < s->accumulate; part++) {
		rc = forward(s, part, g, err);
		rc = rc ?: backward_early(s, part, g, err);
		rc = rc ?: take_result(s, out, err);
		rc = rc ?: c->ops->load(c, step, part + 1, err);
	}
	return rc;
}

/* Steps of a device are like each other: the one before stands for this. */
static void take_durations(struct gf_step_times *t, const struct gf_train_durations *d)
{
	if (!d)
		return;
	t->forward_s = t->start_s + d->forward_s;
	t->backward_s = t->forward_s + d->backward_s;
	t->exchanged_s = t->backward_s + d->wait_s;
	t->end_s = t->exchanged_s + d->update_s + t->outer_s;
}

/* From the batch to the last gradient. */
static int compute(const struct gf_stepper *s, size_t step, struct gf_step_times *t,
		   struct gf_step_outcome *out, struct gf_error *err)
{
	struct gf_method *m = s->method;
	struct gf_compute *c = s->compute;
	struct gradients g = {.stepper = s, .times = t};
	double begun_s;
	int rc;

	c->on_need = gf_method_asks(m) ? gf_method_need : NULL;
	c->need_ctx = m;
	gf_method_begin(m, step);
	rc = early(s, step, &g, out, err);
	begun_s = gf_clock_s();
	rc = rc ?: forward(s, s->accumulate - 1, &g, err);
	if (rc)
		return rc;
	t->forward_s = gf_clock_s();
	t->late_s = m->late.waited_s;
	rc = c->ops->backward(c, g.data, on_grad, &g, err);
	if (rc)
		return rc;
	t->backward_s = gf_clock_s();
	if (c->ops->forward_s)
		t->forward_s = begun_s + c->ops->forward_s(c);
	return 0;
}

/* The start of the step whose gradient is applied: this step or an earlier one. NAN: that step is
 * not recorded. */
static double applied_start_s(const struct gf_method *m, const struct gf_timeline *timeline)
{
	const size_t age = m->step - m->timed;
	const size_t count = gf_timeline_count(timeline);

	if (!m->timed || age >= count)
		return NAN;
	return gf_timeline_at(timeline, count - 1 - age)->start_s;
}

/* Once gf_method_exchange has ended at t->exchanged_s: what the step of the timeline waited for,
 * and the times of the messages that it applies. */
static void record(struct gf_method *m, const struct gf_timeline *timeline, struct gf_step_times *t)
{
	const double handled_s = gf_exchange_totals(m->exchange).handling_s;
	const struct gf_message_times *times = gf_exchange_times(m->exchange);

	t->later_s = m->late.waited_s - t->late_s;
	/* what is seen late of before must not exceed the time */
	t->handling_s =
		m->late.handling_s + fmin(handled_s - m->handled_s, t->exchanged_s - t->backward_s);
	t->applied_start_s = applied_start_s(m, timeline);
	for (size_t i = 0; i < m->env.plan->nmessages && m->late.used; i++)
		t->late[i] = m->late.waits[i];
	for (size_t i = 0; i < 2 * m->env.plan->nmessages && m->shards; i++)
		t->late[i] = m->late.waits[i];
	for (size_t i = 0; i < 3 * m->env.plan->nmessages; i++)
		t->messages[i] =
			m->timed ? times[i] : (struct gf_message_times){NAN, NAN, NAN, 0, 0, 0};
}

/* The sums are compared with exact means where a step applies its own gradients, all of them at
 * once and the same on all ranks. */
static int look_at_sums(const struct gf_stepper *s, struct gf_error *err)
{
	const struct gf_method *m = s->method;
	const struct gf_selection *selection = &m->env.plan->selection;
	struct gf_select_sums sums;
	int rc;

	if (!s->statistics || s->groups->outer || !m->applied || m->applied->number != m->step ||
	    m->skip || m->late.used || !gf_selection_has(selection, GF_SELECT_LOSSLESS) ||
	    gf_selection_has(selection, GF_SELECT_PIECES))
		return 0;
	rc = gf_exchange_sums(m->applied, GF_EXCHANGE_WHOLE, &sums, NULL, err);
	if (!rc)
		gf_statistics_came(s->statistics, &sums);
	return rc;
}

static int exchange(const struct gf_stepper *s, struct gf_step_times *t, struct gf_error *err)
{
	int rc;

	gf_method_backward_end(s->method);
	rc = gf_method_exchange(s->method, err);
	if (rc)
		return rc;
	t->exchanged_s = gf_clock_s();
	record(s->method, s->timeline, t);
	rc = gf_method_judge(s->method, err);
	return rc ?: look_at_sums(s, err);
}

int gf_train_step(struct gf_stepper *s, size_t step, double lr, struct gf_step_outcome *out,
		  struct gf_error *err)
{
	struct gf_step_times *t = gf_timeline_next(s->timeline, step);
	struct gf_method *m = s->method;
	struct gf_compute *c = s->compute;
	double began_s = gf_clock_s();
	struct gf_loss_scale scale = gf_method_scale(m);
	uint64_t outer_bytes = 0;
	int rc;

	memset(out, 0, sizeof(*out));
	gf_statistics_begin(s->statistics, step);
	rc = c->ops->load(c, step, 0, err);
	if (rc)
		return rc;
	t->load_s = gf_clock_s() - began_s;
	rc = scale.used && c->ops->scale ? c->ops->scale(c, gf_loss_scale_now(&scale), err) : 0;
	t->start_s = gf_clock_s();
	rc = rc ?: compute(s, step, t, out, err);
	if (rc)
		return rc;
	/* that the gradients went with: the exchange may change it */
	scale = gf_method_scale(m);
	out->loss_scale = scale.used ? gf_loss_scale_now(&scale) : 0;
	rc = exchange(s, t, err);
	if (rc)
		return rc;
	gf_method_update(m, lr);
	rc = c->ops->updated ? c->ops->updated(c, err) : 0;
	rc = rc ?: take_result(s, out, err);
	t->outer_s = -gf_clock_s();
	if (!rc && s->groups)
		rc = gf_groups_step(s->groups, step, &outer_bytes, err);
	if (rc)
		return rc;
	out->skipped = gf_method_skipped(m);
	t->end_s = gf_clock_s();
	/* without an outer exchange only this thread may have been late */
	t->outer_s = s->groups && s->groups->outer ? t->outer_s + t->end_s : 0;
	take_durations(t, gf_method_durations(m));
	gf_timeline_close(s->timeline);
	out->seconds = gf_clock_s() - began_s;
	out->sent_bytes = gf_method_sent_bytes(m) + outer_bytes;
	out->dense_bytes = s->groups ? gf_groups_dense_bytes(s->groups)
				     : gf_exchange_totals(gf_method_team(m).exchange).dense_bytes;
	return 0;
}
