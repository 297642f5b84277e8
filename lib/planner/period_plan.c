/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the plan of a group to that of all ranks. The outer exchange is a problem like another,
 * whose messages are the fragments.
 */
#include <math.h>
#include <stddef.h>

#include "base/heap.h"
#include "cli/human.h"
#include "documents/plan_parts.h"
#include "planner/make.h"
#include "planner/menu.h"
#include "simulator/period_time.h"
#include "simulator/uncertainty.h"

/* --- fragments ------------------------------------------------------------ */

static double bytes_of(const struct gf_model_profile *m, size_t tensor)
{
	return (double)gf_tensor_bytes(&m->tensors[tensor]);
}

/* The tensor after the last of a piece that begins at `first`, has no more bytes than the limit,
 * and leaves as many tensors as there are pieces. */
static size_t piece_end(const struct gf_model_profile *m, size_t first, double limit,
			size_t pieces_left)
{
	double bytes = bytes_of(m, first);
	size_t end = first + 1;

	while (end + pieces_left < m->ntensors && bytes + bytes_of(m, end) <= limit)
		bytes += bytes_of(m, end++);
	return end;
}

static bool fits(const struct gf_model_profile *m, size_t pieces, double limit)
{
	size_t first = 0, k;

	for (k = 0; k < m->ntensors; k++)
		if (bytes_of(m, k) > limit)
			return false;
	for (k = 0; k < pieces && first < m->ntensors; k++)
		first = piece_end(m, first, limit, 0);
	return first == m->ntensors;
}

/* The least limit to whole bytes. */
static double least_limit(const struct gf_model_profile *m, size_t pieces)
{
	double low = 0, high = (double)gf_model_profile_bytes(m), middle;

	while (high - low > 1) {
		middle = floor((low + high) / 2);
		if (fits(m, pieces, middle))
			high = middle;
		else
			low = middle;
	}
	return high;
}

/* The period's messages, one for each fragment: contiguous tensors, the largest of them as small as
 * can be. */
static void cut(struct gf_period *p, const struct gf_model_profile *m, const struct gf_menu *menu)
{
	const double limit = least_limit(m, p->fragments);
	size_t first = 0, i, k;

	gf_list_free(&gf_message_record, p->messages, p->nmessages);
	p->messages = gf_xcalloc(p->fragments, sizeof(*p->messages));
	p->nmessages = p->fragments;
	for (i = 0; i < p->fragments; i++) {
		struct gf_message *to = &p->messages[i];
		double bytes = 0;

		to->first = first;
		first = piece_end(m, first, limit, p->fragments - 1 - i);
		to->last = first - 1;
		for (k = to->first; k < first; k++)
			bytes += bytes_of(m, k);
		gf_option_tell(&menu->options[gf_menu_pick(menu, bytes)], to);
	}
}

/* Has the period a key for that member, and did the user not set it? */
static bool is_open(const struct gf_task *t, size_t member)
{
	const struct gf_field *f;

	for (size_t k = 0; (f = gf_keys_at(t->period.plan->record, k)); k++)
		if (f->offset == member)
			return !gf_keys_have(t->axes->period_keys, f->key);
	return false;
}

#define IS_OPEN(t, member) is_open(t, offsetof(struct gf_period, member))

/* --- how much is exposed ------------------------------------------------- */

/* More fragments than these are not tried. */
#define FRAGMENTS_MOST 64
#define STEPS_MOST     ((size_t)1 << 40)

struct hiding {
	const struct gf_task *t;
	struct gf_plan *p;
	const struct gf_menu *menu;
	struct gf_sim_result inner;
	bool open_steps, open_fragments, open_delay;
	struct gf_outer_time *times;
	double least; /* share that was found; INFINITY: no steps fit */
};

/* The share of a period that is exposed, with so many steps between two exchanges. */
static double share(struct hiding *x, size_t between, size_t delay)
{
	struct gf_period p = x->p->period;
	struct gf_period_time time;
	double got;

	p.steps = between * p.fragments;
	p.delay = delay;
	gf_sim_period(&p, x->p->model, &x->inner, x->times, &time);
	got = time.exposed_s > 0 ? time.exposed_s / time.period_s : 0;
	x->least = fmin(x->least, got);
	return got;
}

/* The longest delay hides most. */
static double share_at(struct hiding *x, size_t between)
{
	return share(x, between, x->open_delay ? between - 1 : x->p->period.delay);
}

/* The fewest steps between exchanges; 0: none are enough. */
static size_t fewest_between(struct hiding *x)
{
	const struct gf_period *p = &x->p->period;
	const double hide = x->t->axes->hide;
	struct gf_period fixed = *p;
	size_t low, high = x->open_delay || !p->delay ? 1 : p->delay + 1;

	if (!x->open_steps) {
		high = p->steps / p->fragments;
		fixed.delay = x->open_delay ? 0 : p->delay;
		if (gf_period_check_steps(&fixed, NULL) < 0)
			return 0;
		return share_at(x, high) <= hide ? high : 0;
	}
	for (low = high - 1; share_at(x, high) > hide; high *= 2) {
		if (high > STEPS_MOST)
			return 0;
		low = high;
	}
	while (high - low > 1) {
		const size_t middle = low + (high - low) / 2;

		if (share_at(x, middle) <= hide)
			high = middle;
		else
			low = middle;
	}
	return high;
}

static size_t least_delay(struct hiding *x, size_t between)
{
	size_t low = 0, high = between - 1, middle;

	if (!x->open_delay)
		return x->p->period.delay;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (share(x, between, middle) <= x->t->axes->hide)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int time_fragments(struct hiding *x, size_t fragments, struct gf_error *err)
{
	GF_RELEASED(gf_plan_release) struct gf_plan outer = {0};

	x->p->period.fragments = fragments;
	cut(&x->p->period, x->p->model, x->menu);
	free(x->times);
	x->times = gf_xcalloc(fragments, sizeof(*x->times));
	gf_period_outer(x->p, &outer);
	return gf_sim_outer(&outer, &x->p->period, &x->t->outer.fabric, x->times, err);
}

static int refuse(const struct hiding *x, struct gf_error *err)
{
	if (isinf(x->least))
		return gf_error_set(err, -EINVAL,
				    "--period: hide: want steps that the fragments divide, and "
				    "more of them to the next fragment than the delay, got %zu",
				    x->p->period.steps);
	return gf_error_set(err, -ENOTSUP,
			    "--period: hide: want at most %g %% of a period exposed, found %.3g "
			    "%% at the least: more steps, or more of delay, hide more",
			    100 * x->t->axes->hide, 100 * x->least);
}

static int search(struct hiding *x, struct gf_error *err)
{
	struct gf_period *p = &x->p->period;
	size_t f = x->open_fragments ? 1 : p->fragments, best = 0, steps = 0,
	       most = x->open_fragments ? FRAGMENTS_MOST : f, between;
	int rc = 0;

	if (most > x->p->model->ntensors)
		most = x->p->model->ntensors;
	/* More fragments than steps cannot be fewer steps. */
	for (; f <= most && (!best || f < steps); f++) {
		rc = time_fragments(x, f, err);
		if (rc)
			return rc;
		between = fewest_between(x);
		if (between && (!best || between * f < steps)) {
			best = f;
			steps = between * f;
		}
	}
	rc = best ? time_fragments(x, best, err) : refuse(x, err);
	if (rc)
		return rc;
	p->delay = least_delay(x, steps / best);
	p->steps = steps;
	return 0;
}

/* Sets what the user left open of steps, fragments and delay so that no more than axes->hide of the
 * period is exposed: the fewest steps, then fragments, then steps of delay. p: with the period, but
 * for its messages; inner: a step of a group. -ENOTSUP: no such period is left; -EINVAL: none fits
 * what the user has set. */
static int hide_period(const struct gf_task *t, struct gf_plan *p,
		       const struct gf_sim_result *inner, const struct gf_menu *menu,
		       struct gf_error *err)
{
	struct hiding x = {
		.t = t,
		.p = p,
		.menu = menu,
		.inner = *inner,
		.open_steps = IS_OPEN(t, steps),
		.open_fragments = IS_OPEN(t, fragments),
		.open_delay = IS_OPEN(t, delay),
		.least = INFINITY,
	};
	int rc = search(&x, err);

	free(x.times);
	return rc;
}

/* --- the plan of all ranks ------------------------------------------------ */

static int settle(const struct gf_task *t, struct gf_plan *p, const struct gf_sim_result *inner,
		  struct gf_error *err)
{
	GF_RELEASED(gf_menu_release) struct gf_menu menu = {0};
	int rc;

	if (p->period.fragments > p->model->ntensors &&
	    (!(t->axes->hide > 0) || !IS_OPEN(t, fragments)))
		return gf_error_set(
			err, -EINVAL,
			"--period: fragments: want at most the model's %zu tensors, got %zu",
			p->model->ntensors, p->period.fragments);
	if (!(t->axes->hide > 0) && gf_period_check_steps(&p->period, err) < 0) {
		gf_error_prefix(err, "--period");
		return -EINVAL;
	}
	rc = gf_menu_init(&menu, &t->outer, err);
	if (rc < 0) {
		gf_error_prefix(err, "outer exchange");
		return rc;
	}
	if (t->axes->hide > 0)
		rc = hide_period(t, p, inner, &menu, err);
	else
		cut(&p->period, p->model, &menu);
	return rc;
}

static int predict(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	struct gf_prediction *out = p->predicted;
	struct gf_sim_result r = {.messages = out->messages};
	struct gf_period_time time;
	int rc = gf_predict_period(p, &t->outer.fabric, &r, &time, err);

	if (rc < 0)
		return rc;
	out->iteration_s = r.iteration_s;
	out->exposed_comm_s = r.exposed_comm_s;
	out->fastest_s = 0;
	out->memory = r.memory;
	if (p->memory.limit_bytes && r.memory.peak_bytes > (double)p->memory.limit_bytes)
		return gf_error_set(err, -ENOTSUP,
				    "--memory: want a plan that fits into %s, found %s with period "
				    "%s, which holds %s of it: give more, or another --period",
				    gf_human_size((double)p->memory.limit_bytes).text,
				    gf_human_size(r.memory.peak_bytes).text,
				    gf_period_name(&p->period),
				    gf_human_size(gf_sim_period_bytes(p)).text);
	p->period.period_s = time.period_s;
	p->period.exchange_s = time.exchange_s;
	p->period.exposed_s = time.exposed_s;
	return gf_uncertainty_predict(p, NULL, err);
}

int gf_task_add_period(const struct gf_task *t, struct gf_plan *p, struct gf_error *err)
{
	const struct gf_network *network = t->outer.fabric.network;
	struct gf_task tighter = *t;
	struct gf_sim_result inner = {0};
	struct gf_error unread;
	int rc;

	if (gf_period_has(&t->period, GF_PERIOD_EVERY))
		return 0;
	rc = gf_predict_plan(p, &t->problem.fabric, &inner, err);
	if (rc < 0)
		return rc;
	p->ranks = t->outer.fabric.ranks;
	gf_network_free(p->network);
	p->network = network ? gf_network_copy(network) : NULL;
	rc = 1;
	for (int i = 0; rc > 0; i++) {
		GF_RELEASED(gf_plan_release) struct gf_plan outer = {0};

		gf_list_free(&gf_message_record, p->period.messages, p->period.nmessages);
		p->period = t->period;
		rc = settle(&tighter, p, &inner, i ? &unread : err);
		if (rc < 0)
			return i ? -ENOTSUP : rc;
		gf_period_outer(p, &outer);
		rc = gf_task_keeps(&outer, t->outer.max_error, i, &tighter.outer.max_error, err);
	}
	rc = rc ?: gf_plan_check(p, err);
	return rc ?: predict(t, p, err);
}
