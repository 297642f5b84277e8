/* SPDX-License-Identifier: BSD-3-Clause */
#include "planner/hide.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "sim/period_time.h"

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
	double least; /* share that was found */
};

static bool is_open(const struct gf_task *t, const char *option)
{
	return !gf_axes_asked(t->axes, option) &&
	       gf_axis_find(t->period.plan->record, option);
}

/* The share of a period that is exposed, with so many steps between two
 * exchanges. */
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
	return share(x, between,
		     x->open_delay ? between - 1 : x->p->period.delay);
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

static int time_fragments(struct hiding *x, size_t fragments,
			  struct gf_error *err)
{
	struct gf_plan outer;
	int rc;

	x->p->period.fragments = fragments;
	gf_period_cut(&x->p->period, x->p->model, x->menu);
	free(x->times);
	x->times = gf_xcalloc(fragments, sizeof(*x->times));
	gf_period_outer(x->p, &outer);
	rc = gf_sim_outer(&outer, &x->p->period, &x->t->outer.fabric, x->times,
			  err);
	gf_plan_release(&outer);
	return rc;
}

/* The fewest steps, then fragments, then steps of delay. */
static int search(struct hiding *x, struct gf_error *err)
{
	struct gf_period *p = &x->p->period;
	size_t f = x->open_fragments ? 1 : p->fragments, best = 0, steps = 0,
	       most = x->open_fragments ? FRAGMENTS_MOST : f, between;
	int rc = 0;

	if (most > x->p->model->ntensors)
		most = x->p->model->ntensors;
	for (; rc == 0 && f <= most && (!best || f < steps); f++) {
		rc = time_fragments(x, f, err);
		between = rc ? 0 : fewest_between(x);
		if (between && (!best || between * f < steps)) {
			best = f;
			steps = between * f;
		}
	}
	if (rc == 0 && !best && isinf(x->least))
		rc = gf_error_set(err, -EINVAL,
				  "--hide: want --period-steps that the "
				  "fragments divide, and more of them to the "
				  "next fragment than a --delay, got %zu",
				  p->steps);
	else if (rc == 0 && !best)
		rc = gf_error_set(err, -ENOTSUP,
				  "--hide: want at most %g %% of a period "
				  "exposed, found %.3g %% at the least: more "
				  "of --period-steps or --delay hide more",
				  100 * x->t->axes->hide, 100 * x->least);
	rc = rc ? rc : time_fragments(x, best, err);
	if (rc < 0)
		return rc;
	p->delay = least_delay(x, steps / best);
	p->steps = steps;
	return 0;
}

int gf_period_hide(const struct gf_task *t, struct gf_plan *p,
		   const struct gf_sim_result *inner,
		   const struct gf_menu *menu, struct gf_error *err)
{
	struct hiding x = {
		.t = t,
		.p = p,
		.menu = menu,
		.inner = *inner,
		.open_steps = is_open(t, "period-steps"),
		.open_fragments = is_open(t, "fragments"),
		.open_delay = is_open(t, "delay"),
		.least = INFINITY,
	};
	int rc = search(&x, err);

	free(x.times);
	return rc;
}
