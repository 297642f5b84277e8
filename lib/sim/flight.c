/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/flight.h"

#include <math.h>

#include "base/array.h"

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
		f->gamma = f->contention ? gf_contention_gamma(f->contention,
							       f->size_bytes, n)
					 : (double)n;
	}
	return f->gamma;
}

/* The flight whose phase ends first (ties: the earlier message), and when. */
static int next_event(const struct gf_sim_state *s, int n, double *at_s)
{
	int i, first = -1;

	*at_s = INFINITY;
	for (i = 0; i < s->nflights; i++) {
		struct gf_sim_flight *f = &s->flights[i];
		double t = f->draining ? s->now_s + fmax(f->left_s, 0) *
							    gamma_of(f, n)
				       : f->startup_end_s;

		if (first < 0 || t < *at_s) {
			*at_s = t;
			first = i;
		}
	}
	return first;
}

/* Moves time to `to_s`; no phase may end before that. */
static void pass(struct gf_sim_state *s, int n, double to_s)
{
	double dt = to_s - s->now_s;
	int i;

	if (s->nflights > 0 && s->slowdown > 1)
		s->lag_s += dt * (1 - 1 / s->slowdown);
	for (i = 0; i < s->nflights; i++) {
		struct gf_sim_flight *f = &s->flights[i];

		if (f->draining)
			f->left_s -= dt / gamma_of(f, n);
	}
	s->now_s = to_s;
	if (s->lags)
		*gf_array_push(&s->lags->at, &s->lags->count,
			       &s->lags->capacity) =
			(struct gf_sim_lag){s->now_s, s->lag_s};
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

/* When backward will have done that much, if nothing more is started and what
 * is in flight stays; never before now_s. */
static double work_at(const struct gf_sim_state *s, double work_s)
{
	double unhindered = s->backward_start_s + work_s + s->lag_s;

	if (unhindered <= s->now_s)
		return s->now_s;
	if (s->nflights > 0 && s->slowdown > 1)
		return s->now_s + (unhindered - s->now_s) * s->slowdown;
	return unhindered;
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

void gf_sim_reach(struct gf_sim_state *s, double work_s)
{
	for (;;) {
		double ready_s = work_at(s, work_s), event_s;
		int n, first;

		if (ready_s <= s->now_s)
			return;
		n = draining(s);
		first = next_event(s, n, &event_s);
		if (first < 0 || ready_s < event_s) {
			pass(s, n, ready_s);
			return;
		}
		pass(s, n, event_s);
		end_phase(s, first);
	}
}

void gf_sim_advance(struct gf_sim_state *s, double to_s)
{
	while (s->now_s < to_s) {
		int n = draining(s), first;
		double event_s;

		first = next_event(s, n, &event_s);
		if (first < 0 || to_s < event_s) {
			pass(s, n, to_s);
			return;
		}
		pass(s, n, event_s);
		end_phase(s, first);
	}
}

void gf_sim_start(struct gf_sim_state *s, const struct gf_sim_start *m)
{
	int allowed = m->mode == GF_MODE_SIMULTANEOUS ? s->lanes : 1;

	gf_sim_reach(s, m->work_s);
	while (s->nflights >= allowed)
		gf_sim_pass_phase(s);
	s->flights[s->nflights++] = (struct gf_sim_flight){
		.message = m->message,
		.draining = m->startup_s <= 0,
		.startup_end_s = s->now_s + m->startup_s,
		.left_s = m->drain_s,
		.size_bytes = m->size_bytes,
		.contention = m->contention,
	};
}

void gf_sim_finish(struct gf_sim_state *s)
{
	while (gf_sim_pass_phase(s))
		;
}
