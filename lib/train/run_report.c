/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/run_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "cost/stat.h"

/* Of all settled steps: one in many has an outer exchange. */
static double mean_iteration(const struct gf_timeline *t)
{
	const size_t first = gf_timeline_settled(t);
	const size_t count = gf_timeline_count(t);
	double sum_s = 0;
	size_t i;

	for (i = first; i < count; i++)
		sum_s += gf_timeline_at(t, i)->end_s -
			 gf_timeline_at(t, i)->start_s;
	return count > first ? sum_s / (double)(count - first) : 0;
}

/* The median over the settled steps of what `pick` takes out of one. */
static double over_steps(const struct gf_timeline *t, size_t message,
			 double (*pick)(const struct gf_step_times *s,
					size_t message))
{
	size_t first = gf_timeline_settled(t), count = gf_timeline_count(t), i,
	       n = 0;
	double *values = gf_xcalloc(count + 1, sizeof(*values));
	double median;

	/* a step that waited for no message has no times of any */
	for (i = first; i < count; i++) {
		values[n] = pick(gf_timeline_at(t, i), message);
		n += !isnan(values[n]);
	}
	median = n ? gf_stat_median(values, n) : 0;
	free(values);
	return median;
}

static double iteration(const struct gf_step_times *s, size_t m)
{
	(void)m;
	return s->end_s - s->start_s;
}

static double forward(const struct gf_step_times *s, size_t m)
{
	(void)m;
	return s->forward_s - s->start_s - s->late_s;
}

static double backward(const struct gf_step_times *s, size_t m)
{
	(void)m;
	return s->backward_s - s->forward_s;
}

static double waiting(const struct gf_step_times *s, size_t m)
{
	(void)m;
	return s->exchanged_s - s->backward_s + s->late_s;
}

static double updating(const struct gf_step_times *s, size_t m)
{
	(void)m;
	return s->end_s - s->exchanged_s - s->outer_s;
}

static double loading(const struct gf_step_times *s, size_t m)
{
	(void)m;
	return s->load_s;
}

static double handling(const struct gf_step_times *s, size_t m)
{
	(void)m;
	return s->handling_s;
}

static double ready(const struct gf_step_times *s, size_t m)
{
	return s->messages[m].ready_s - s->applied_start_s;
}

static double start(const struct gf_step_times *s, size_t m)
{
	return s->messages[m].start_s - s->applied_start_s;
}

static double end(const struct gf_step_times *s, size_t m)
{
	return s->messages[m].end_s - s->applied_start_s;
}

void gf_report_make(const struct gf_plan *plan,
		    const struct gf_prediction *prediction,
		    const struct gf_timeline *timeline, struct gf_report *r)
{
	size_t i;

	memset(r, 0, sizeof(*r));
	r->nsteps = gf_timeline_count(timeline) - gf_timeline_settled(timeline);
	r->is_mean = !gf_period_has(&plan->period, GF_PERIOD_EVERY);
	r->iteration_s = r->is_mean ? mean_iteration(timeline)
				    : over_steps(timeline, 0, iteration);
	r->forward_s = over_steps(timeline, 0, forward);
	r->backward_s = over_steps(timeline, 0, backward);
	r->wait_s = over_steps(timeline, 0, waiting);
	r->load_s = over_steps(timeline, 0, loading);
	r->handling_s = over_steps(timeline, 0, handling);
	r->update_s = over_steps(timeline, 0, updating);
	r->nmessages = plan->nmessages;
	r->messages = gf_xcalloc(plan->nmessages + 1, sizeof(*r->messages));
	for (i = 0; i < plan->nmessages; i++)
		r->messages[i].measured = (struct gf_predicted_message){
			.ready_s = over_steps(timeline, i, ready),
			.start_s = over_steps(timeline, i, start),
			.end_s = over_steps(timeline, i, end),
		};
	if (!prediction)
		return;
	r->has_prediction = true;
	r->predicted_iteration_s = prediction->iteration_s;
	r->predicted_low_s = prediction->iteration_low_s;
	r->predicted_high_s = prediction->iteration_high_s;
	for (i = 0; i < plan->nmessages; i++)
		r->messages[i].predicted = prediction->messages[i];
}

void gf_report_release(struct gf_report *r)
{
	free(r->messages);
	memset(r, 0, sizeof(*r));
}
