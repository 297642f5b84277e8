/* SPDX-License-Identifier: BSD-3-Clause */
#include "trainer/run_report.h"

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
		sum_s += gf_timeline_at(t, i)->end_s - gf_timeline_at(t, i)->start_s;
	return count > first ? sum_s / (double)(count - first) : 0;
}

/* Of a step, and from READY on of one of its messages. */
enum time { ITERATION, FORWARD, BACKWARD, WAIT, UPDATE, LOAD, HANDLING, READY, START, END };

static double time_of(const struct gf_step_times *s, enum time which, size_t message)
{
	const double whole[] = {
		[ITERATION] = s->end_s - s->start_s,
		[FORWARD] = s->forward_s - s->start_s - s->late_s,
		[BACKWARD] = s->backward_s - s->forward_s,
		[WAIT] = s->exchanged_s - s->backward_s + s->late_s,
		[UPDATE] = s->end_s - s->exchanged_s - s->outer_s,
		[LOAD] = s->load_s,
		[HANDLING] = s->handling_s,
	};

	if (which < READY)
		return whole[which];
	return (which == READY   ? s->messages[message].ready_s
		: which == START ? s->messages[message].start_s
				 : s->messages[message].end_s) -
	       s->applied_start_s;
}

/* The median over the settled steps. */
static double over_steps(const struct gf_timeline *t, enum time which, size_t message)
{
	size_t first = gf_timeline_settled(t), count = gf_timeline_count(t), i, n = 0;
	double *values = gf_xcalloc(count + 1, sizeof(*values));
	double median;

	/* a step that waited for no message has no times of any */
	for (i = first; i < count; i++) {
		values[n] = time_of(gf_timeline_at(t, i), which, message);
		n += !isnan(values[n]);
	}
	median = n ? gf_stat_median(values, n) : 0;
	free(values);
	return median;
}

void gf_report_make(const struct gf_plan *plan, const struct gf_prediction *prediction,
		    const struct gf_timeline *timeline, struct gf_report *r)
{
	size_t i;

	memset(r, 0, sizeof(*r));
	r->nsteps = gf_timeline_count(timeline) - gf_timeline_settled(timeline);
	r->is_mean = !gf_period_has(&plan->period, GF_PERIOD_EVERY);
	r->iteration_s = r->is_mean ? mean_iteration(timeline) : over_steps(timeline, ITERATION, 0);
	r->forward_s = over_steps(timeline, FORWARD, 0);
	r->backward_s = over_steps(timeline, BACKWARD, 0);
	r->wait_s = over_steps(timeline, WAIT, 0);
	r->load_s = over_steps(timeline, LOAD, 0);
	r->handling_s = over_steps(timeline, HANDLING, 0);
	r->update_s = over_steps(timeline, UPDATE, 0);
	r->nmessages = plan->nmessages;
	r->messages = gf_xcalloc(plan->nmessages + 1, sizeof(*r->messages));
	for (i = 0; i < plan->nmessages; i++)
		r->messages[i].measured = (struct gf_predicted_message){
			.ready_s = over_steps(timeline, READY, i),
			.start_s = over_steps(timeline, START, i),
			.end_s = over_steps(timeline, END, i),
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
