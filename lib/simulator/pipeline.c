/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state's clock of work (simulator/step_state.h) runs over all steps: at any moment it has lost
 * to overlap what compute that never paused would have. A step's compute that begins at work d has
 * done w of its own at work d + w, on every rank, whatever else it has met before. The record of
 * the lag turns the moment at which a rank begins its step into work.
 */
#include "simulator/pipeline.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/heap.h"

/* Steps are simulated until the last LOOK of them repeat those before, in a period of this length
 * at most; or so many steps or messages. */
#define LOOK     32
#define PERIOD   16
#define STEPS    512
#define MESSAGES 1e6
/* Fewer steps are simulated if their messages times flights are as many. */
#define FLIGHTS     5e7
#define STEPS_LEAST 4
#define SAME        1e-9

void gf_pipeline_init(struct gf_pipeline *p, const struct gf_sim_input *in, int staleness,
		      int ranks)
{
	double flights = (double)in->nmessages * staleness;
	size_t lanes = (size_t)fmax(1, fmin(in->lanes, flights));
	size_t slots = ((size_t)staleness + 1) * in->nmessages + 1;

	*p = (struct gf_pipeline){
		.in = in,
		.staleness = staleness,
		.ranks = ranks,
		.compute_s = in->model->forward_s + in->model->backward_s + gf_sim_issues_s(in) +
			     gf_sim_held_late_s(in),
		.ended_s = gf_xcalloc((size_t)ranks, sizeof(double)),
		.done_s = gf_xcalloc((size_t)ranks, sizeof(double)),
		.late = gf_xcalloc((size_t)ranks, sizeof(int)),
	};
	p->state = (struct gf_sim_state){
		.slowdown = fmax(in->model->overlap_slowdown, 1),
		.lanes = (int)lanes,
		.flights = gf_xcalloc(lanes, sizeof(*p->state.flights)),
		.start_s = gf_xcalloc(slots, sizeof(double)),
		.end_s = gf_xcalloc(slots, sizeof(double)),
	};
	/* of the steps whose exchanges have not ended */
	p->pending = gf_xcalloc(slots, sizeof(*p->pending));
	if (gf_sim_slows(in))
		p->state.lags = &p->lags;
}

void gf_pipeline_release(struct gf_pipeline *p)
{
	free(p->state.flights);
	free(p->state.start_s);
	free(p->state.end_s);
	free(p->pending);
	free(p->lags.at);
	free(p->ended_s);
	free(p->done_s);
	free(p->late);
	memset(p, 0, sizeof(*p));
}

/* --- the clock of work --------------------------------------------------- */

static double lag_of(struct gf_sim_lag x)
{
	return x.lag_s;
}

static double moment_of(struct gf_sim_lag x)
{
	return x.at_s;
}

static double work_of(struct gf_sim_lag x)
{
	return x.at_s - x.lag_s;
}

/* The lag where `key`, which does not decrease, is `at`: before the first moment there was none,
 * and after the last one it is looked for by nobody. */
static double lag_at(const struct gf_sim_lags *l, double (*key)(struct gf_sim_lag x), double at)
{
	size_t low = 0, high = l->count;
	struct gf_sim_lag from = {0}, to;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (key(l->at[middle]) < at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 0)
		from = l->at[low - 1];
	if (low == l->count)
		return lag_of(from);
	to = l->at[low];
	if (!(key(to) > key(from)))
		return lag_of(to);
	return lag_of(from) +
	       (lag_of(to) - lag_of(from)) * (at - key(from)) / (key(to) - key(from));
}

/* When that much work has been done. */
static double reached_s(const struct gf_pipeline *p, double work_s)
{
	return work_s + lag_at(&p->lags, work_of, work_s);
}

/* No rank asks for what was before. */
static void forget(struct gf_sim_lags *l, double before_s)
{
	size_t first = 0;

	while (first + 1 < l->count && l->at[first + 1].at_s <= before_s)
		first++;
	if (first == 0)
		return;
	l->count -= first;
	memmove(l->at, l->at + first, l->count * sizeof(*l->at));
}

/* --- a step -------------------------------------------------------------- */

size_t gf_pipeline_slot(const struct gf_pipeline *p, size_t step)
{
	return step % ((size_t)p->staleness + 1) * p->in->nmessages;
}

/* Messages start as early as they may. */
static void run_to(struct gf_pipeline *p, double to_s, double to_work_s)
{
	while (p->next < p->npending &&
	       gf_sim_start_by(&p->state, &p->pending[p->next], to_s, to_work_s))
		p->next++;
}

/* When the step's exchange has ended. Time passes until then. */
static double exchanged_s(struct gf_pipeline *p, size_t step)
{
	const double *ends = p->state.end_s + gf_pipeline_slot(p, step);
	double last = 0;

	for (size_t i = 0; i < p->in->nmessages; i++) {
		while (isnan(ends[i])) {
			run_to(p, p->state.now_s, INFINITY);
			/* none is left where times are no numbers */
			if (isnan(ends[i]) && !gf_sim_pass_phase(&p->state))
				break;
		}
		last = fmax(last, ends[i]);
	}
	return last;
}

static double line(const struct gf_pipeline *p, const double *factor, int rank, double work_s)
{
	return p->done_s[rank] + factor[rank] * work_s;
}

static int latest(const struct gf_pipeline *p, const double *factor, double work_s)
{
	int rank, last = 0;

	for (rank = 1; rank < p->ranks; rank++)
		if (line(p, factor, rank, work_s) > line(p, factor, last, work_s))
			last = rank;
	return last;
}

/*
 * Over a step's compute each rank's progress is a line. Let a be the rank that is last at the
 * start, and b the rank that is last at the end. Their lines cross once. A third line that is above
 * both of them anywhere is above them where they cross.
 */
static void find_late(struct gf_pipeline *p, const double *factor)
{
	int a = latest(p, factor, 0);
	int b = latest(p, factor, p->compute_s), rank;
	double rise = factor[b] - factor[a], at = 0;

	if (rise > 0)
		at = (p->done_s[a] - p->done_s[b]) / rise;
	p->nlate = 0;
	p->late[p->nlate++] = a;
	for (rank = 0; rank < p->ranks && b != a; rank++)
		if (rank == b || (rank != a && line(p, factor, rank, at) > line(p, factor, a, at)))
			p->late[p->nlate++] = rank;
}

/* Those of this step come after those that wait. */
static void add_messages(struct gf_pipeline *p, const double *factor)
{
	size_t base = gf_pipeline_slot(p, p->steps), i;
	double issued_s = 0, issues_s = gf_sim_issues_s(p->in);

	p->npending -= p->next;
	memmove(p->pending, p->pending + p->next, p->npending * sizeof(*p->pending));
	p->next = 0;
	find_late(p, factor);
	for (i = 0; i < p->in->nmessages; i++) {
		struct gf_sim_start *start = &p->pending[p->npending++];
		double work_s;

		*start = gf_sim_start_of(p->in->model, &p->in->messages[i]);
		work_s = p->in->model->forward_s +
			 gf_sim_ready_work_s(p->in->model, &p->in->messages[i], issued_s, issues_s);
		issued_s += start->issue_s;
		start->issue_s = 0; /* is work here */
		start->message = base + i;
		start->work_s = line(p, factor, p->late[0], work_s);
		for (int k = 1; k < p->nlate; k++)
			start->work_s = fmax(start->work_s, line(p, factor, p->late[k], work_s));
		p->state.end_s[base + i] = NAN;
	}
	/* once the first is alone, all of the step before's have ended */
	if (p->in->serial && p->in->nmessages)
		p->pending[p->npending - p->in->nmessages].mode = GF_MODE_NORMAL;
}

/* All ranks compute, the last of them until that work is done. */
static void pass_compute(struct gf_pipeline *p, double work_s)
{
	gf_sim_begin_compute(&p->state, work_s);
	run_to(p, INFINITY, work_s);
	gf_sim_reach(&p->state, work_s);
	gf_sim_end_compute(&p->state);
	for (size_t i = p->next; i < p->npending; i++)
		p->pending[i].work_s = 0; /* is done */
}

double gf_pipeline_step(struct gf_pipeline *p, const double *factor)
{
	double begun_s = 0, first_s = INFINITY;

	/* exchanges that end at no moment would pile up */
	if (!isfinite(p->state.now_s))
		return p->state.now_s;
	if (p->steps >= (size_t)p->staleness)
		p->waited_s = exchanged_s(p, p->steps - (size_t)p->staleness);
	for (int rank = 0; rank < p->ranks; rank++) {
		p->done_s[rank] = fmax(p->ended_s[rank], p->waited_s);
		begun_s = fmax(begun_s, p->done_s[rank]);
	}
	run_to(p, begun_s, INFINITY);
	gf_sim_advance(&p->state, begun_s);
	for (int rank = 0; rank < p->ranks; rank++)
		p->done_s[rank] += p->in->update_s - lag_at(&p->lags, moment_of, p->done_s[rank]);
	add_messages(p, factor);
	pass_compute(p, line(p, factor, latest(p, factor, p->compute_s), p->compute_s));
	for (int rank = 0; rank < p->ranks; rank++) {
		p->ended_s[rank] = reached_s(p, line(p, factor, rank, p->compute_s));
		first_s = fmin(first_s, p->ended_s[rank]);
	}
	p->update_end_s = reached_s(p, p->done_s[0]);
	p->forward_end_s = reached_s(p, line(p, factor, 0, p->in->model->forward_s));
	forget(&p->lags, first_s);
	p->steps++;
	return begun_s;
}

double gf_pipeline_finish(struct gf_pipeline *p)
{
	run_to(p, INFINITY, INFINITY);
	gf_sim_finish(&p->state);
	return p->state.now_s;
}

/* --- in the long run ----------------------------------------------------- */

/* A step's beginning, the end of the exchange that it may have waited for, and what all messages
 * would still take alone when its backward ends. */
struct moments {
	double begun_s, waited_s, left_s;
};

static double left_s(const struct gf_pipeline *p)
{
	const struct gf_sim_state *s = &p->state;
	double sum = 0;

	for (int k = 0; k < s->nflights; k++)
		sum += gf_sim_startup_left_s(&s->flights[k], s->now_s) + s->flights[k].left_s;
	for (size_t i = p->next; i < p->npending; i++)
		sum += p->pending[i].startup_s + p->pending[i].drain_s;
	return sum;
}

static bool alike(double a, double b)
{
	return fabs(a - b) <= SAME * fabs(b);
}

/* The least number of steps after which steps take the same times again, exchanges end as long
 * after them, and as much is left to send; 0: there is none. Steps can take the same times for a
 * while though each leaves a little more to send than the one before it: they do not wait for that
 * yet. */
static size_t period_of(const struct moments *m, size_t last)
{
	size_t period, i;

	for (period = 1; period <= PERIOD; period++) {
		const struct moments *to = m + last, *from = to - period;
		double took_s = to->begun_s - from->begun_s;

		for (i = 0; i < LOOK; i++)
			if (!alike((to - i)->begun_s - (from - i)->begun_s, took_s) ||
			    !alike((to - i)->waited_s - (from - i)->waited_s, took_s) ||
			    !alike((to - i)->left_s - (from - i)->left_s + took_s, took_s))
				break;
		if (i == LOOK)
			return period;
	}
	return 0;
}

/*
 * Steps that never repeat each other, with exchanges that end later and later: those set the pace
 * in the end. The least squares' slope through their ends hardly depends on where it begins and
 * ends, as a mean of differences would.
 */
static double slope_s(const struct moments *m, size_t first, size_t last)
{
	double n = (double)(last - first), sum = 0, squares = 0;

	for (size_t i = first; i <= last; i++) {
		double x = (double)(i - first) - n / 2;

		sum += x * (m[i].waited_s - m[first].waited_s);
		squares += x * x;
	}
	return sum / squares;
}

double gf_pipeline_pace_s(const struct gf_sim_input *in, int staleness)
{
	static const double factor = 1;
	struct moments m[STEPS + 1];
	size_t n = 0, period = 0;
	GF_RELEASED(gf_pipeline_release) struct gf_pipeline p = {0};
	double flights;

	/* a step's messages, of which `lanes` go at once, take no longer than so many turns of a
	 * network that is never idle */
	gf_pipeline_init(&p, in, staleness <= in->lanes ? staleness : in->lanes + 1, 1);
	flights = (double)in->nmessages * p.state.lanes;
	for (;; n++) {
		m[n].begun_s = gf_pipeline_step(&p, &factor);
		m[n].waited_s = p.waited_s;
		m[n].left_s = left_s(&p);
		if (n >= STEPS_LEAST && (double)n * flights > FLIGHTS)
			break;
		if (n < LOOK + PERIOD)
			continue;
		period = period_of(m, n);
		if (period || n == STEPS || (double)n * (double)in->nmessages > MESSAGES)
			break;
	}
	if (!period)
		return slope_s(m, n / 2, n);
	return (m[n].begun_s - m[n - period].begun_s) / (double)period;
}

double gf_sim_busy_s(const struct gf_predicted_message *messages, size_t n)
{
	double until_s = -INFINITY, busy_s = 0;

	for (size_t i = 0; i < n; i++) {
		const struct gf_predicted_message *m = &messages[i];

		if (m->end_s > until_s)
			busy_s += m->end_s - fmax(m->start_s, until_s);
		until_s = fmax(until_s, m->end_s);
	}
	return busy_s;
}
