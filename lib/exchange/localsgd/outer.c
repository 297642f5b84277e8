/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange/localsgd/outer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "transport/pages.h"

struct gf_outer {
	struct gf_outer_env env;
	struct gf_plan plan; /* of the exchange */
	struct gf_exchange *exchange;
	struct gf_exchange_step *step; /* NULL: none is in the exchange */
	float *w, *v;                  /* v NULL: no momentum */
	/* Under way: the step after which it began, and the fragment; step 0: nothing is. Its sums
	 * are in `sums` once they have come, and it has left the exchange. */
	uint64_t begun, fragment;
	float *sums; /* as w; NULL: the exchange's pool holds them */
	/* Fragments whose exchange has ended, and of how many of these the time is known. */
	uint64_t done, timed;
	double exposed_s, exchange_s;
};

/* --- opening and closing -------------------------------------------------- */

static int alloc(float **to, size_t count, struct gf_error *err)
{
	void *data = NULL;
	int rc = gf_pages_alloc(count * sizeof(float), &data, err);

	*to = data;
	return rc;
}

static int open_memory(struct gf_outer *o, struct gf_error *err)
{
	const struct gf_period *period = &o->env.plan->period;
	const size_t count = gf_model_profile_elems(o->plan.model);
	int rc = alloc(&o->w, count, err);

	if (!rc && period->outer_momentum > 0)
		rc = alloc(&o->v, count, err);
	if (!rc && period->delay)
		rc = alloc(&o->sums, count, err);
	return gf_comm_agree(o->env.comm, rc, err);
}

int gf_outer_open(struct gf_outer **out, const struct gf_outer_env *env, struct gf_error *err)
{
	struct gf_outer *o = gf_xcalloc(1, sizeof(*o));
	struct gf_exchange_env exchange = {
		.comm = env->comm,
		.plan = &o->plan,
		.timeout_s = env->timeout_s,
		.threads = env->threads,
		.period = &env->plan->period,
	};
	int rc;

	o->env = *env;
	gf_period_outer(env->plan, &o->plan);
	rc = open_memory(o, err);
	rc = rc ? rc : gf_exchange_open(&o->exchange, &exchange, err);
	if (rc)
		gf_outer_close(o);
	*out = rc ? NULL : o;
	return rc;
}

void gf_outer_close(struct gf_outer *o)
{
	if (!o)
		return;
	if (o->env.comm->broken) {
		gf_exchange_abandon(o->exchange);
		return; /* messages may yet touch what is left */
	}
	gf_exchange_close(o->exchange);
	gf_plan_release(&o->plan);
	gf_pages_free(o->w);
	gf_pages_free(o->v);
	gf_pages_free(o->sums);
	free(o);
}

float *gf_outer_params(struct gf_outer *o)
{
	return o->w;
}

void gf_outer_begin(struct gf_outer *o)
{
	memcpy(o->w, o->env.params, gf_model_profile_elems(o->plan.model) * sizeof(*o->w));
}

/* --- a fragment's way ----------------------------------------------------- */

/* The elements that one of the exchange's messages carries. */
struct range {
	size_t first, count;
};

static struct range range_of(const struct gf_outer *o, size_t message)
{
	const size_t *offsets = gf_exchange_pool(o->exchange)->offsets;
	const struct gf_message *m = &o->plan.messages[message];

	return (struct range){offsets[m->first], offsets[m->last + 1] - offsets[m->first]};
}

static void post(struct gf_outer *o, size_t step, size_t fragment)
{
	size_t first, count, i, t;

	gf_period_messages(&o->env.plan->period, fragment, &first, &count);
	o->step = gf_exchange_begin(o->exchange, step, 1, fragment);
	for (i = first; i < first + count; i++) {
		const struct range r = range_of(o, i);

		gf_outer_difference(o->step->grads + r.first, o->w + r.first,
				    o->env.params + r.first, r.count);
		for (t = o->plan.messages[i].first; t <= o->plan.messages[i].last; t++)
			gf_exchange_ready(o->step, &t, 1);
	}
	gf_exchange_backward_end(o->step);
	o->begun = step;
	o->fragment = fragment;
}

/* How long its messages took. */
static double took_s(const struct gf_outer *o, size_t first, size_t count)
{
	const struct gf_message_times *t = gf_exchange_times(o->exchange);
	double start_s = INFINITY, end_s = -INFINITY;
	size_t i;

	for (i = first; i < first + count; i++) {
		start_s = fmin(start_s, t[i].start_s);
		end_s = fmax(end_s, t[i].end_s);
	}
	return end_s > start_s ? end_s - start_s : 0;
}

/* Waits for the sums of what is under way, and keeps them where they outlive the exchange's
 * step. */
static int arrive(struct gf_outer *o, struct gf_error *err)
{
	struct gf_exchange_step *step;
	struct gf_select_bad bad;
	size_t first, count, i;
	int rc;

	if (!o->step)
		return 0;
	gf_period_messages(&o->env.plan->period, o->fragment, &first, &count);
	rc = gf_exchange_next(o->exchange, true, &step, err);
	if (rc)
		return rc;
	o->exchange_s += took_s(o, first, count);
	o->timed++;
	for (i = first; i < first + count; i++) {
		const struct range r = range_of(o, i);

		(void)gf_exchange_sums(step, i, NULL, &bad, err);
		if (bad.found)
			return gf_error_set(err, 1,
					    "the change of %s up to step %zu is infinite or not a "
					    "number: training has diverged",
					    o->plan.model->tensors[bad.tensor].name,
					    (size_t)o->begun);
		if (o->sums)
			memcpy(o->sums + r.first, step->grads + r.first,
			       r.count * sizeof(*o->sums));
	}
	o->step = NULL;
	return gf_exchange_take(step, true, err);
}

/* How an exchange ends. */
struct outer_step {
	float *v; /* or NULL */
	double rate, momentum, mix;
};

/* x = a x + (1 - a) w */
static void mix(float *x, const float *w, float a, size_t n)
{
	size_t i;

	if (a == 0)
		memcpy(x, w, n * sizeof(*x));
	for (i = 0; a != 0 && i < n; i++)
		x[i] = a * x[i] + (1 - a) * w[i];
}

/* What is under way goes into w and x. */
static int apply(struct gf_outer *o, const struct outer_step *how, struct gf_error *err)
{
	const float share = 1.0f / (float)o->plan.ranks;
	const float *d;
	size_t first, count, i;
	int rc = 0;

	if (o->fragment >= o->env.plan->period.fragments) /* of a checkpoint */
		rc = gf_error_set(err, -EINVAL, "outer.fragment: want below %zu, got %zu",
				  o->env.plan->period.fragments, (size_t)o->fragment);
	rc = rc ?: arrive(o, err);
	if (rc)
		return rc;
	d = o->sums ? o->sums : gf_exchange_pool(o->exchange)->data;
	gf_period_messages(&o->env.plan->period, o->fragment, &first, &count);
	for (i = first; i < first + count; i++) {
		const struct range r = range_of(o, i);

		gf_outer_update(o->w + r.first, how->v ? how->v + r.first : NULL, d + r.first,
				share, (float)how->rate, (float)how->momentum, r.count);
		mix(o->env.params + r.first, o->w + r.first, (float)how->mix, r.count);
	}
	o->begun = 0;
	return 0;
}

/* --- steps ---------------------------------------------------------------- */

bool gf_outer_due(const struct gf_outer *o, size_t step)
{
	const struct gf_period *p = &o->env.plan->period;
	size_t fragment;

	return gf_period_begins(p, step, &fragment) ||
	       (o->begun && gf_period_ends(p, step, &fragment));
}

static int end(struct gf_outer *o, struct gf_error *err)
{
	const struct gf_period *p = &o->env.plan->period;
	const struct outer_step how = {o->v, p->outer_rate, p->outer_momentum, p->mix};
	int rc = apply(o, &how, err);

	o->done += !rc;
	return rc;
}

int gf_outer_step(struct gf_outer *o, size_t step, bool *changed, struct gf_error *err)
{
	const struct gf_period *p = &o->env.plan->period;
	const double began_s = gf_clock_s();
	size_t fragment;
	int rc = 0;

	*changed = false;
	if (p->delay && o->begun && gf_period_ends(p, step, &fragment)) {
		rc = end(o, err);
		*changed = !rc;
	}
	if (!rc && gf_period_begins(p, step, &fragment)) {
		post(o, step, fragment);
		if (!p->delay) {
			rc = end(o, err);
			*changed = !rc;
		}
	}
	o->exposed_s += gf_clock_s() - began_s;
	return rc;
}

int gf_outer_finish(struct gf_outer *o, size_t step, struct gf_error *err)
{
	const struct outer_step mean = {.rate = 1};
	size_t fragment;
	double exchange_s;
	uint64_t timed;
	int rc = o->begun ? end(o, err) : 0;

	/* the mean at the end is none of the period's */
	exchange_s = o->exchange_s;
	timed = o->timed;

	for (fragment = 0; fragment < o->env.plan->period.fragments && !rc; fragment++) {
		post(o, step, fragment);
		rc = apply(o, &mean, err);
	}
	o->exchange_s = exchange_s;
	o->timed = timed;
	return rc;
}

/* --- what survives a stop ------------------------------------------------- */

void gf_outer_state(struct gf_outer *o, struct gf_state *s)
{
	const struct gf_shape flat = {1, {gf_model_profile_elems(o->plan.model)}};

	if (o->v)
		gf_state_add(s, GF_STATE_SHARED, gf_xstrdup("outer.velocity"), &flat, o->v);
	if (!o->sums)
		return;
	gf_state_add(s, GF_STATE_SHARED, gf_xstrdup("outer.sums"), &flat, o->sums);
	gf_state_add_words(s, GF_STATE_SHARED, "outer.begun", "U64", &o->begun, 1);
	gf_state_add_words(s, GF_STATE_SHARED, "outer.fragment", "U64", &o->fragment, 1);
}

int gf_outer_settle(struct gf_outer *o, struct gf_error *err)
{
	return o->begun ? arrive(o, err) : 0;
}

/* --- what is known -------------------------------------------------------- */

struct gf_exchange *gf_outer_exchange(struct gf_outer *o)
{
	return o->exchange;
}

struct gf_outer_totals gf_outer_totals(struct gf_outer *o)
{
	const double fragments = (double)o->env.plan->period.fragments;

	return (struct gf_outer_totals){
		.exchanges = (double)o->done / fragments,
		.exposed_s = o->exposed_s,
		.exchange_s = o->timed ? o->exchange_s / (double)o->timed * fragments : 0,
		.sent_bytes = gf_exchange_totals(o->exchange).waited_bytes,
	};
}

void gf_outer_difference(float *d, const float *w, const float *x, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		d[i] = w[i] - x[i];
}

void gf_outer_update(float *w, float *v, const float *d, float share, float r, float m, size_t n)
{
	size_t i;

	for (i = 0; !v && i < n; i++)
		w[i] -= r * (share * d[i]);
	for (i = 0; v && i < n; i++) {
		const float mean = share * d[i];

		v[i] = m * v[i] + mean;
		w[i] -= r * (mean + m * v[i]);
	}
}
