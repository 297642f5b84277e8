/* SPDX-License-Identifier: BSD-3-Clause */
#include "simulator/step_state.h"

#include <math.h>

#include "base/array.h"
#include "documents/start_rule.h"

static int draining(const struct gf_sim_state *s)
{
	int i, n = 0;

	for (i = 0; i < s->nflights; i++)
		n += s->flights[i].draining;
	return n;
}

/* By how much flight f is slower now than alone. */
static double gamma_of(struct gf_sim_flight *f, int n)
{
	if (n <= 1)
		return 1.0;
	if (f->gamma_n != n) {
		f->gamma_n = n;
		f->gamma = gf_contention_at(&f->contention, n);
	}
	return f->gamma;
}

double gf_sim_slowdown(const struct gf_beside_backward *mutual, double otherwise, int n)
{
	size_t last;

	if (!mutual || !mutual->ncompute_slowdown)
		return otherwise;
	last = mutual->ncompute_slowdown - 1;
	return mutual->compute_slowdown[(size_t)n <= last ? (size_t)n - 1 : last];
}

double gf_sim_startup_beside_s(const struct gf_beside_backward *mutual, double startup_s)
{
	if (!mutual)
		return startup_s;
	return startup_s * gf_sim_drag(mutual) + mutual->startup_extra_s;
}

double gf_sim_drag(const struct gf_beside_backward *mutual)
{
	return mutual ? fmax(mutual->message_slowdown, 1) : 1;
}

double gf_sim_hindered_s(double drag, double alone_s, double left_s)
{
	if (left_s <= 0)
		return alone_s;
	return left_s > alone_s * drag ? alone_s * drag : left_s + alone_s - left_s / drag;
}

/* What a startup takes if compute runs for left_s of it. */
static double startup_beside_s(const struct gf_beside_backward *mutual, double startup_s,
			       double left_s)
{
	double all_s = gf_sim_startup_beside_s(mutual, startup_s);

	if (left_s <= 0 || left_s >= all_s)
		return left_s > 0 ? all_s : startup_s;
	return left_s + (all_s - left_s) * startup_s / all_s;
}

double gf_sim_beside_s(const struct gf_beside_backward *mutual, double startup_s, double drain_s,
		       double left_s)
{
	double takes_s;

	if (!mutual)
		return startup_s + drain_s;
	takes_s = startup_beside_s(mutual, startup_s, left_s);
	return takes_s + gf_sim_hindered_s(gf_sim_drag(mutual), drain_s, left_s - takes_s);
}

double gf_sim_startup_left_s(const struct gf_sim_flight *f, double now_s)
{
	double left_s = f->startup_end_s - now_s;

	if (f->draining)
		return 0;
	return f->beside ? left_s / f->startup_drag : left_s;
}

/* By how much backward is slower now than alone. */
static double slowdown(const struct gf_sim_state *s)
{
	double most = 1;

	for (int i = 0; i < s->nflights; i++) {
		const struct gf_beside_backward *mutual = s->flights[i].mutual;
		double own =
			mutual ? gf_sim_slowdown(mutual, s->slowdown, s->nflights) : s->slowdown;

		most = own > most ? own : most;
	}
	return most;
}

/* When backward will have done that much, if nothing more is started and what is in flight stays;
 * never before now_s. */
static double work_at(const struct gf_sim_state *s, double work_s)
{
	double unhindered = s->backward_start_s + work_s + s->lag_s;

	if (unhindered <= s->now_s)
		return s->now_s;
	if (s->nflights > 0)
		return s->now_s + (unhindered - s->now_s) * slowdown(s);
	return unhindered;
}

/* --- messages that backward slows ----------------------------------------- */

/* When backward ends, as things stand. */
static double backward_end_s(const struct gf_sim_state *s)
{
	return work_at(s, s->backward_s + s->unissued_s);
}

static bool any_beside(const struct gf_sim_state *s)
{
	for (int i = 0; i < s->nflights; i++)
		if (s->flights[i].beside)
			return true;
	return false;
}

static double message_slowdown(const struct gf_sim_flight *f)
{
	return f->beside ? gf_sim_drag(f->mutual) : 1;
}

/* A phase that would end at `end_s` if backward ran on, which it does until `until_s`. */
static double phase_end_s(const struct gf_sim_flight *f, double end_s, double until_s)
{
	if (!f->beside || end_s <= until_s)
		return end_s;
	return until_s + (end_s - until_s) / (f->draining ? message_slowdown(f) : f->startup_drag);
}

/* Backward has ended, now. */
static void unhinder(struct gf_sim_state *s)
{
	for (int i = 0; i < s->nflights; i++) {
		struct gf_sim_flight *f = &s->flights[i];

		if (f->beside && !f->draining)
			f->startup_end_s = phase_end_s(f, f->startup_end_s, s->now_s);
		f->beside = false;
	}
}

/* By how much flight f drains more slowly now than alone. */
static double drag(struct gf_sim_flight *f, int n)
{
	return gamma_of(f, n) * message_slowdown(f);
}

/* --- events ----------------------------------------------------------------
 */

/* The flight whose phase ends first (ties: the earlier message), and when. */
static int next_event(const struct gf_sim_state *s, int n, double *at_s)
{
	double until_s = any_beside(s) ? backward_end_s(s) : 0;
	int i, first = -1;

	*at_s = INFINITY;
	for (i = 0; i < s->nflights; i++) {
		struct gf_sim_flight *f = &s->flights[i];
		double left_s = f->left_s > 0 ? f->left_s : 0;
		double t = f->draining ? s->now_s + left_s * drag(f, n) : f->startup_end_s;

		t = phase_end_s(f, t, until_s);

		if (first < 0 || t < *at_s) {
			*at_s = t;
			first = i;
		}
	}
	return first;
}

/* Moves time to `to_s`; nothing may change before that. */
static void flow(struct gf_sim_state *s, int n, double to_s)
{
	double dt = to_s - s->now_s, slow = slowdown(s);

	if (slow > 1)
		s->lag_s += dt * (1 - 1 / slow);
	for (int i = 0; i < s->nflights; i++) {
		struct gf_sim_flight *f = &s->flights[i];

		if (f->draining)
			f->left_s -= dt / drag(f, n);
	}
	s->now_s = to_s;
	if (s->lags)
		*gf_array_push(&s->lags->at, &s->lags->count, &s->lags->capacity) =
			(struct gf_sim_lag){s->now_s, s->lag_s};
}

/* Moves time to `to_s`; no phase may end before that. */
static void pass(struct gf_sim_state *s, int n, double to_s)
{
	double until_s;

	if (any_beside(s)) {
		until_s = backward_end_s(s);
		if (until_s <= to_s) {
			flow(s, n, until_s);
			unhinder(s);
		}
	}
	flow(s, n, to_s);
}

/* Ends the phase of one flight; the order of the others stays. */
static void end_phase(struct gf_sim_state *s, int i)
{
	struct gf_sim_flight *f = &s->flights[i];

	if (!f->draining && f->left_s > 0) {
		f->draining = true;
		return;
	}
	if (s->end_s)
		s->end_s[f->message] = s->now_s;
	s->nflights--;
	for (; i < s->nflights; i++)
		s->flights[i] = s->flights[i + 1];
}

bool gf_sim_pass_phase(struct gf_sim_state *s)
{
	int n = draining(s), first;
	double event_s;

	if (s->nflights == 0)
		return false;
	first = next_event(s, n, &event_s);
	pass(s, n, event_s);
	end_phase(s, first);
	return true;
}

/* To the next event, or to to_s. Returns whether to_s is still ahead. */
static bool step_to(struct gf_sim_state *s, double to_s)
{
	double event_s;
	int n, first;

	if (to_s <= s->now_s)
		return false;
	n = draining(s);
	first = next_event(s, n, &event_s);
	if (first < 0 || to_s < event_s) {
		pass(s, n, to_s);
		return false;
	}
	pass(s, n, event_s);
	end_phase(s, first);
	return true;
}

void gf_sim_reach(struct gf_sim_state *s, double work_s)
{
	while (step_to(s, work_at(s, work_s)))
		;
}

void gf_sim_advance(struct gf_sim_state *s, double to_s)
{
	while (step_to(s, to_s))
		;
}

/* Backward runs, and slows this message from now on. */
static void hinder(const struct gf_sim_state *s, struct gf_sim_flight *f)
{
	f->beside = true;
	if (!f->draining && f->startup_end_s > s->now_s)
		f->startup_end_s = s->now_s + f->startup_drag * (f->startup_end_s - s->now_s);
}

static bool slowed(const struct gf_beside_backward *mutual)
{
	return mutual && (mutual->message_slowdown > 1 || mutual->startup_extra_s > 0);
}

/* A lane is free and the message is ready. */
static void launch(struct gf_sim_state *s, const struct gf_sim_start *m)
{
	struct gf_sim_flight *f = &s->flights[s->nflights++];
	double beside_s = gf_sim_startup_beside_s(m->mutual, m->startup_s);

	*f = (struct gf_sim_flight){
		.message = m->message,
		.draining = m->startup_s <= 0,
		.startup_end_s = s->now_s + m->startup_s,
		.startup_drag = m->startup_s > 0 ? beside_s / m->startup_s : INFINITY,
		.left_s = m->drain_s,
		.mutual = m->mutual,
	};
	if (s->start_s)
		s->start_s[m->message] = s->now_s;
	if (m->contention)
		f->contention = gf_contention_find(m->contention, m->size_bytes);
	s->lag_s += m->issue_s;
	s->unissued_s = fmax(s->unissued_s - m->issue_s, 0);
	if (!slowed(m->mutual) || !(backward_end_s(s) > s->now_s))
		return;
	hinder(s, f);
	f->draining = beside_s <= 0;
	f->startup_end_s = s->now_s + beside_s;
}

/* Messages come in order here; `ready` says that work_s is done, which is their gradients' or all
 * of backward's. */
static bool may_start(const struct gf_sim_state *s, const struct gf_sim_start *m, bool ready)
{
	return gf_may_start(&(struct gf_held){
		.by_gradients = !ready,
		.simultaneous = m->mode == GF_MODE_SIMULTANEOUS,
		.active = s->nflights,
		.lanes = s->lanes,
	});
}

void gf_sim_start(struct gf_sim_state *s, const struct gf_sim_start *m)
{
	gf_sim_reach(s, m->work_s);
	while (!may_start(s, m, true))
		gf_sim_pass_phase(s);
	launch(s, m);
}

bool gf_sim_start_by(struct gf_sim_state *s, const struct gf_sim_start *m, double to_s,
		     double to_work_s)
{
	bool ready = false;

	for (;;) {
		double ready_s = work_at(s, m->work_s), until_s, event_s;
		int n, first;

		ready |= ready_s <= s->now_s;
		if (may_start(s, m, ready))
			break;
		n = draining(s);
		first = next_event(s, n, &event_s);
		until_s = fmin(to_s, work_at(s, to_work_s));
		if (until_s < fmin(event_s, ready ? INFINITY : ready_s)) {
			if (until_s > s->now_s)
				pass(s, n, until_s);
			return false;
		}
		if (!ready && ready_s < event_s) {
			pass(s, n, ready_s);
			ready = true;
		} else if (first < 0) {
			return false;
		} else {
			pass(s, n, event_s);
			end_phase(s, first);
		}
	}
	launch(s, m);
	return true;
}

void gf_sim_begin_compute(struct gf_sim_state *s, double end_work_s)
{
	s->backward_s = end_work_s;
	for (int i = 0; i < s->nflights; i++)
		if (slowed(s->flights[i].mutual))
			hinder(s, &s->flights[i]);
}

void gf_sim_end_compute(struct gf_sim_state *s)
{
	s->backward_s = 0;
	unhinder(s);
}

void gf_sim_finish(struct gf_sim_state *s)
{
	while (gf_sim_pass_phase(s))
		;
}
